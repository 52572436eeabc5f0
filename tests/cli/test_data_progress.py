"""Progress of a set in the making, without a terminal: a line a part, or a hundred lines."""

from __future__ import annotations

import pytest

from lra.cli.data_progress import show_progress


def told(parts: int, done: int, capsys: pytest.CaptureFixture[str]) -> list[str]:
    watch = show_progress("listops")
    watch.begun(parts, done)
    for number in range(done, parts):
        watch.part(f"part {number}")
    watch.close()
    return capsys.readouterr().err.splitlines()


def test_up_to_a_hundred_parts_have_a_line_each(capsys):
    assert told(100, 0, capsys) == [f"[{n + 1}/100] listops: part {n}" for n in range(100)]


def test_of_more_parts_each_hundredth_has_a_line(capsys):
    lines = told(1000, 0, capsys)
    assert lines == [f"[{n}/1000] listops: part {n - 1}" for n in range(10, 1001, 10)]


def test_what_was_there_already_is_one_line(capsys):
    assert told(1000, 985, capsys) == [
        "listops: goes on after 985 of 1000 parts",
        "[986/1000] listops: part 985",
        "[990/1000] listops: part 989",
        "[1000/1000] listops: part 999",
    ]
