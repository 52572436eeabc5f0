"""Keys of times: those of committed files, and another for each cell."""

from __future__ import annotations

from typing import Any

import pytest
from cli.gate import timing

from lra.changes.measurements import measurements
from lra.core.scales import load_suite
from lra.engine.gate.baselines import Baselines
from lra.engine.gate.cell_keys import time_key
from lra.engine.gate.revision import HOME
from lra.engine.gate.times import SUITE
from lra.engine.gate.update import CALIBRATED
from lra.report.load.select import join


def key(name: str, **own: Any) -> str:
    (one,) = measurements(join([timing(name, times={"latency": 1.0}, **own)], []))
    return time_key(one.row)


def test_the_cells_that_a_check_times_are_found_in_the_committed_noise() -> None:
    (block,) = load_suite(str(SUITE)).efficiency
    asked = {
        key(name, mode=mode, length=length, heads=heads, head_width=width)
        for name in CALIBRATED
        for mode in block.modes
        for length in block.lengths
        for heads in block.heads
        for width in block.head_widths
    }
    assert asked == Baselines(HOME / "results/baselines", "amd-epyc-2c").noise().keys()


@pytest.mark.parametrize(
    "other",
    [
        {"batch": 4}, {"heads": 8}, {"head_width": 32}, {"dtype": "bfloat16"}, {"length": 1024},
        {"execution": "compiled"}, {"level": "attention"}, {"direction": "causal"},
        {"scale": "small"}, {"mode": "forward"},
    ],
    ids=str,
)  # fmt: skip
def test_times_of_two_cells_have_two_keys(other: dict[str, Any]) -> None:
    assert key("linear", **other) != key("linear") != key("performer")
