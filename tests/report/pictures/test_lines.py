"""Ticks of lengths, and of what a plot shows of them."""

from __future__ import annotations

import pytest
from lra.report.pictures.lines import log_axes, ticks_of
from matplotlib.figure import Figure


def test_lengths_that_crowd_have_no_tick() -> None:
    assert ticks_of([256, 512, 1024, 2048, 3000, 4096, 8192]) == [256, 512, 1024, 2048, 4096, 8192]
    assert ticks_of([1000, 1001, 1002]) == [1002]
    assert ticks_of([]) == []


@pytest.mark.parametrize("low", [1.0, 3.1, 8.7])
@pytest.mark.parametrize("span", [1.2, 1.49, 1.71, 4.9, 60.0, 5000.0])
def test_a_value_can_be_read_between_ticks_whatever_the_span(low: float, span: float) -> None:
    axes = Figure().subplots()
    log_axes(axes, [256, 512], [low, low * span], str)
    bottom, top = axes.get_ylim()
    shown = [tick for tick in axes.yaxis.get_majorticklocs() if bottom <= tick <= top]
    assert 2 <= len(shown) <= 12
