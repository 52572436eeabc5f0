"""The parts of a step are those of a training's own step, each once and in order."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import msgspec
import numpy as np
import pytest
import torch
from torch import nn

from attention_impls.dense.full import Full
from attention_impls.positions.sinusoidal import Sinusoidal
from lra.core.dataset import Dataset, Split
from lra.core.profiled import OPERATOR, PARTS, part_metric, training_seconds
from lra.core.protocol import ModelSpec, Rows, TrainSpec
from lra.measure.profile import Stretch, in_parts, measure_profile, padding_share, spread
from lra.training.setup import model_for, padded_length, step_for
from lra.training.step import Step

CPU = torch.device("cpu")
SPEC = TrainSpec(
    steps=100, batch=4, learning_rate=1e-2, evaluate_every=30, evaluation_batch=8, clip=1.0
)
MODEL = ModelSpec(layers=1, width=8, qkv_width=8, heads=2, mlp_width=8)
LONGEST = 16


def split(rows: int) -> Split:
    draws = np.random.default_rng(rows)
    lengths = [LONGEST, *draws.integers(1, LONGEST + 1, size=rows - 1)]
    sequences = [draws.integers(1, 6, size=n).astype(np.uint8) for n in lengths]
    return Split.of(sequences, np.array([int(s[0]) % 2 for s in sequences]), 1)


DATA = Dataset(split(40), split(20), split(20), classes=2, vocabulary=6, length=LONGEST, inputs=1)


def model() -> nn.Module:
    return model_for(
        DATA, MODEL, mechanism=Full, config=Full.Config(), position=Sinusoidal, rules="fixed",
        seed=0,
    )  # fmt: skip


def step(own: nn.Module, *, pad: bool = False, **changes: object) -> Step:
    spec = msgspec.structs.replace(SPEC, **changes)
    length = padded_length(DATA, spec, rules="fixed", pad_to_length=pad)
    made = step_for(own, DATA, spec, length=length, seed=0, rules="fixed", device=CPU)
    made.join()
    return made


class Ticks:
    """A clock that is a second later whenever it is read."""

    def __init__(self) -> None:
        self._ticks: Iterator[int] = itertools.count()

    def __call__(self) -> float:
        return float(next(self._ticks))


def test_each_part_is_timed_once_a_step_and_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    for name in PARTS:
        part = getattr(Step, name)
        monkeypatch.setattr(
            Step, name, lambda *a, part=part, name=name: (called.append(name), part(*a))[1]
        )
    own, waits = step(model()), []
    with in_parts(own, lambda: waits.append(0), Ticks()) as parts:
        Stretch(own, lambda: None, Ticks())([3, 1])
    assert called == [*PARTS, *PARTS]
    assert parts == dict.fromkeys(PARTS, 2.0)
    assert len(waits) == 2 * len(PARTS)
    assert not set(PARTS) & vars(own).keys(), "the step is as it was"


def test_in_micro_batches_some_parts_run_several_times() -> None:
    own = step(model(), micro_batches=2)
    with in_parts(own, lambda: None, Ticks()) as parts:
        Stretch(own, lambda: None, Ticks())([0])
    several = {"batch", "forward", "backward"}
    assert parts == {name: 2.0 if name in several else 1.0 for name in PARTS}


def test_steps_in_parts_end_in_the_weights_of_plain_steps() -> None:
    plain, timed = model(), model()
    Stretch(step(plain), lambda: None, Ticks())(range(6))
    own = step(timed)
    with in_parts(own, lambda: None, Ticks()):
        Stretch(own, lambda: None, Ticks())(range(6))
    for one, other in zip(plain.parameters(), timed.parameters(), strict=True):
        assert torch.equal(one, other)
    assert not torch.equal(next(iter(plain.parameters())), next(iter(model().parameters())))


def test_batches_are_spread_over_the_lengths_of_an_epoch() -> None:
    own = step(model())
    longest = {n: own.order.longest_E[own.order.rows(n)].max() for n in range(own.order.batches)}
    assert own.order.batches == 10
    assert sorted(spread(own, 50)) == list(range(10))
    few = spread(own, 5)
    assert len({*few}) == 5
    assert [longest[n] for n in few] == sorted(longest.values())[1::2]


def test_padding_is_what_an_epoch_computes_and_no_token_fills() -> None:
    real = int(DATA.train.lengths.sum())
    whole = padding_share(step(model(), pad=True), LONGEST)
    assert whole == pytest.approx(1 - real / (40 * LONGEST))
    assert 0.0 < padding_share(step(model()), None) < whole


def test_a_profile_has_every_figure_with_its_unit() -> None:
    """On a clock of its own a stretch takes a second, however many steps it has."""
    found = measure_profile(
        model(), DATA, SPEC, rules="fixed", device=CPU, pad_to_length=False, seconds=2.0,
        clock=Ticks(),
    )  # fmt: skip
    units = {name: metric.unit for name, metric in found.metrics.items()}
    assert units["steps_per_second"] == "1/s"
    assert (units["operations"], units["padding"]) == ("count", "share")
    assert {units[part_metric(part)] for part in PARTS} == {"s"}
    operators = [metric for name, metric in found.metrics.items() if name.startswith(OPERATOR)]
    assert operators and all(metric.unit == "s" and metric.value for metric in operators)
    whole = found.metrics["operators_seconds"].value
    assert sum(metric.value or 0.0 for metric in operators) <= (whole or 0.0)
    assert "kernels" not in units, "there is no GPU"
    step = found.metrics["step_seconds"]
    # Two stretches of five batches.
    assert step.samples == (0.2, 0.2)
    assert (step.q1, step.value, step.q3) == pytest.approx((0.2, 0.2, 0.2))
    assert found.metrics["steps_per_second"].value == pytest.approx(5.0)
    # Twenty rows of validation in batches of eight.
    assert found.metrics["row_seconds"].value == pytest.approx(1 / 20)
    assert found.metrics["operations"].value
    assert found.method["batches"].startswith("5 of an epoch's 10,")
    assert found.method["stretches"] == 2


def test_a_training_takes_its_steps_its_validations_and_its_test() -> None:
    rows = Rows(train=40, validation=20, test=30)
    # A hundred steps, validated after 30, 60, 90 and 100.
    assert training_seconds(SPEC, rows, step=0.5, row=0.1) == pytest.approx(50 + 4 * 2 + 3)
