"""Ticks of lengths."""

from __future__ import annotations

from lra.report.pictures.lines import ticks_of


def test_lengths_that_crowd_have_no_tick() -> None:
    assert ticks_of([256, 512, 1024, 2048, 3000, 4096, 8192]) == [256, 512, 1024, 2048, 4096, 8192]
    assert ticks_of([1000, 1001, 1002]) == [1002]
    assert ticks_of([]) == []
