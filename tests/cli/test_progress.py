"""Bars live on a terminal while cells run, and leave nothing on it."""

from __future__ import annotations

import io
import sys
from collections import defaultdict
from contextlib import closing
from pathlib import Path

import pytest

from lra.cli.progress import watcher
from lra.core.records import Record
from lra.engine.jobs import Job, Progress
from lra.store import Store


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def left_on(shown: str) -> list[str]:
    """The lines that stand on a terminal after it was sent `shown`."""
    lines: dict[int, dict[int, str]] = defaultdict(dict)
    row = column = 0
    for sign in shown.replace("\x1b[A", "\v"):
        if sign == "\n":
            row, column = row + 1, 0
        elif sign == "\v":
            row -= 1
        elif sign == "\r":
            column = 0
        else:
            lines[row][column] = sign
            column += 1
    return ["".join(lines[row].values()).strip() for row in sorted(lines)]


def test_a_run_on_a_terminal_shows_bars_and_leaves_one_line_per_cell(finished) -> None:
    assert "cell/s" in finished.shown or "s/cell" in finished.shown
    assert "linear listops:" in finished.shown and "%|" in finished.shown
    device, *cells = [line for line in left_on(finished.shown) if line]
    assert device.startswith("device")
    assert [line.partition(" ")[0] for line in cells] == [f"[{n}/5]" for n in range(1, 6)]
    assert all(line.endswith(" s]") for line in cells)


@pytest.fixture
def record(finished) -> Record:
    return Store(finished.store).records()[0]


def test_a_run_that_breaks_off_takes_its_bars_with_it(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    job = Job(cell=record.cell, cache="")
    with pytest.raises(KeyboardInterrupt), closing(watcher(2, quiet=False)) as watch:
        watch.progress(job, Progress(phase="train", step=3, steps=10, loss=1.0))
        assert "0/2" in terminal.getvalue() and f"{job.label}:" in terminal.getvalue()
        raise KeyboardInterrupt
    terminal.write("lra: stopped\n")
    assert [line for line in left_on(terminal.getvalue()) if line] == ["lra: stopped"]


@pytest.mark.parametrize("quiet", [True, False])
def test_without_a_terminal_there_are_no_bars(
    quiet: bool, record: Record, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = Job(cell=record.cell, cache="")
    with closing(watcher(1, quiet=quiet)) as watch:
        watch.progress(job, Progress(phase="train", step=3, steps=10))
        watch.finished(job, record)
    told = capsys.readouterr().err
    assert told.startswith("" if quiet else f"[1/1] {job.label}: ")
    assert told.count("\n") == (0 if quiet else 1)
