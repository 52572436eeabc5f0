from __future__ import annotations

import pytest

from lra.core.protocol import TrainSpec
from lra.core.scales import load_scale
from lra.training.schedule import learning_rate

PAPER = load_scale("paper")


@pytest.mark.parametrize(
    ("task", "peak_step", "peak", "end"),
    [
        # lra.md of the original's facts, table "Task-level settings in the released configs".
        ("listops", 1000, 1.6e-3, 7e-4),
        ("text", 8000, 5.6e-4, 3.5e-4),
        ("retrieval", 5000, 3.5e-4, 3.5e-4),
        ("image", 175, 5e-4, 0.0),
        ("pathfinder", 312, 1e-3, 0.0),
        ("pathfinder64", 625, 1e-3, 0.0),
        ("path_x", 2500, 1e-3, 0.0),
        ("pathfinder256", 5000, 1e-3, 2.5e-7),
    ],
)
def test_released_rates(task: str, peak_step: int, peak: float, end: float) -> None:
    spec = PAPER.train_spec(task)
    rates = [learning_rate(spec, step) for step in range(spec.steps + 1)]
    assert rates[0] == 0.0
    assert rates.index(max(rates)) == peak_step
    assert rates[peak_step] == pytest.approx(peak, rel=0.02)
    assert rates[spec.steps] == pytest.approx(end, rel=0.02, abs=1e-7)


def test_rsqrt_is_the_originals_formula() -> None:
    spec = PAPER.train_spec("listops")
    assert learning_rate(spec, 500) == pytest.approx(0.05 * 0.5 / 1000**0.5)
    assert learning_rate(spec, 4000) == pytest.approx(0.05 / 4000**0.5)


def test_cosine_is_the_originals_formula() -> None:
    spec = PAPER.train_spec("image")
    # The cycle is all the steps and begins when the warm-up ends.
    assert learning_rate(spec, 175 + 17500) == pytest.approx(2.5e-4)


def spec_of(schedule: str, **fields: float) -> TrainSpec:
    return TrainSpec(batch=1, schedule=schedule, evaluate_every=1, **fields)


FLAT = {"steps": 100, "learning_rate": 2.0, "warmup": 10, "flat": 0.5}
"""Warms up, stays for half of the steps, then decays to zero."""
FLAT_RATES = {0: 0.0, 5: 1.0, 10: 2.0, 30: 2.0, 50: 2.0, 75: 1.0, 100: 0.0}


@pytest.mark.parametrize(
    ("spec", "rates"),
    [
        (spec_of("cosine", **FLAT), FLAT_RATES),
        (spec_of("linear", **FLAT), FLAT_RATES),
        (spec_of("linear", steps=100, learning_rate=1.0, warmup=20), {20: 1.0, 60: 0.5, 100: 0.0}),
        (
            spec_of("constant", steps=9, learning_rate=3.0, warmup=2),
            {0: 0.0, 1: 1.5, 2: 3.0, 8: 3.0},
        ),
    ],
)
def test_rates_by_hand(spec: TrainSpec, rates: dict[int, float]) -> None:
    found = {step: learning_rate(spec, step) for step in rates}
    assert found == pytest.approx(rates, abs=1e-12)


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine", "rsqrt"])
def test_without_warm_up_the_first_step_has_the_full_rate(schedule: str) -> None:
    assert learning_rate(spec_of(schedule, steps=9, learning_rate=3.0), 0) == 3.0
    # A warm-up longer than the training never ends.
    late = spec_of(schedule, steps=9, learning_rate=3.0, warmup=100)
    assert 0 < learning_rate(late, 8) < 3.0 * 0.0801
