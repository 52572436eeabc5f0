"""The parts of a step are those of a training's own step, each once and in order."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
import torch
from torch import nn
from torch.autograd import DeviceType  # type: ignore[attr-defined]

from attention_impls.dense.full import Full
from attention_impls.positions.sinusoidal import Sinusoidal
from lra.core.dataset import Dataset, Split
from lra.core.profile_metrics import OPERATOR, PARTS, part_metric, training_seconds
from lra.core.protocol import ModelSpec, Rows, TrainSpec
from lra.measure import profile
from lra.measure.profile import (
    TOP,
    Profile,
    StepTimer,
    measure_profile,
    padding_share,
    sample_steps,
    time_parts,
)
from lra.models.layers import Layers
from lra.training.setup import Network, Training, model_for
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
        DATA, MODEL, network=Network.of(Layers.of(Full), Sinusoidal), rules="fixed", seed=0,
    )  # fmt: skip


def step(own: nn.Module, *, pad: bool = False, **changes: object) -> Step:
    spec = msgspec.structs.replace(SPEC, **changes)
    made = Step(own, Training(DATA, spec, seed=0, pad_to_length=pad), device=CPU)
    made.join()
    return made


class Ticks:
    """A clock that is a second later, or another time, whenever it is read."""

    def __init__(self, seconds: float = 1.0) -> None:
        self._seconds = seconds
        self._ticks: Iterator[int] = itertools.count()

    def __call__(self) -> float:
        return self._seconds * next(self._ticks)


def test_each_part_is_timed_once_a_step_and_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    for name in PARTS:
        part = getattr(Step, name)
        monkeypatch.setattr(
            Step, name, lambda *a, part=part, name=name: (called.append(name), part(*a))[1]
        )
    own, waits = step(model()), []
    with time_parts(own, lambda: waits.append(0), Ticks()) as parts:
        StepTimer(own, lambda: None, Ticks())([3, 1])
    assert called == [*PARTS, *PARTS]
    assert parts == dict.fromkeys(PARTS, 2.0)
    assert len(waits) == 2 * len(PARTS)
    assert not set(PARTS) & vars(own).keys(), "the step is as it was"


def test_in_micro_batches_some_parts_run_several_times() -> None:
    own = step(model(), micro_batches=2)
    with time_parts(own, lambda: None, Ticks()) as parts:
        StepTimer(own, lambda: None, Ticks())([0])
    several = {"batch", "forward", "backward"}
    assert parts == {name: 2.0 if name in several else 1.0 for name in PARTS}


def test_steps_in_parts_end_in_the_weights_of_plain_steps() -> None:
    plain, timed = model(), model()
    StepTimer(step(plain), lambda: None, Ticks())(range(6))
    own = step(timed)
    with time_parts(own, lambda: None, Ticks()):
        StepTimer(own, lambda: None, Ticks())(range(6))
    for one, other in zip(plain.parameters(), timed.parameters(), strict=True):
        assert torch.equal(one, other)
    assert not torch.equal(next(iter(plain.parameters())), next(iter(model().parameters())))


def test_batches_are_spread_over_the_lengths_of_an_epoch() -> None:
    own = step(model())
    longest = {n: own.order.longest_E[own.order.rows(n)].max() for n in range(own.order.batches)}
    assert own.order.batches == 10
    assert sorted(sample_steps(own, 50)) == list(range(10))
    few = sample_steps(own, 5)
    assert len({*few}) == 5
    assert [longest[n] for n in few] == sorted(longest.values())[1::2]


def test_padding_is_what_an_epoch_computes_and_no_token_fills() -> None:
    real = int(DATA.train.lengths.sum())
    whole = padding_share(step(model(), pad=True))
    assert whole == pytest.approx(1 - real / (40 * LONGEST))
    assert 0.0 < padding_share(step(model())) < whole


def profiled(
    own: nn.Module | None = None,
    data: Dataset = DATA,
    *,
    seconds: float = 2.0,
    tick: float = 1.0,
    clock: Ticks | None = None,
    **changes: object,
) -> Profile:
    """On a clock of its own, by which a stretch takes a tick, however many steps it has."""
    return measure_profile(
        model() if own is None else own,
        Training(data, msgspec.structs.replace(SPEC, **changes), seed=0),
        device=CPU,
        seconds=seconds,
        clock=clock or Ticks(tick),
    )


@pytest.fixture
def stretches(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The batches of each stretch that is made."""
    made: list[list[int]] = []
    run = StepTimer.__call__

    def noted(self: StepTimer, batches: Sequence[int]) -> float:
        made.append([*batches])
        return run(self, batches)

    monkeypatch.setattr(StepTimer, "__call__", noted)
    return made


class Profiler:
    """Stands for torch's: of each event it has seen three milliseconds."""

    def __init__(self, *keys: str) -> None:
        self._keys = keys

    def __call__(self, **how: object) -> Profiler:
        return self

    def __enter__(self) -> Profiler:
        return self

    def __exit__(self, *ending: object) -> None:
        """Nothing to end."""

    def key_averages(self) -> list[SimpleNamespace]:
        return [
            SimpleNamespace(
                key=key,
                is_user_annotation=False,
                device_type=DeviceType.CPU,
                self_cpu_time_total=3000.0,
            )
            for key in self._keys
        ]


def test_a_profile_has_every_figure_with_its_unit() -> None:
    found = profiled()
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
    assert found.method["execution"] == "eager"


def test_parts_are_seconds_a_step() -> None:
    """Five steps, in each of which the clock is read twice a part."""
    found = profiled().metrics
    assert [found[part_metric(part)].value for part in PARTS] == [1.0] * len(PARTS)
    assert found["step_in_parts_seconds"].value == pytest.approx((5 * 2 * len(PARTS) + 1) / 5)


def test_the_longest_batch_warms_up_and_the_rest_follow_in_turn(
    stretches: list[list[int]],
) -> None:
    profiled()
    few = sample_steps(step(model()), 5)
    # Warm up, new lengths, all, how long a step takes, twice more, two stretches, in parts, under
    # the profiler, counted.
    assert stretches == [few[-1:], few[:-1], *[few] * 7, few[::2], *([one] for one in few)]


@pytest.mark.parametrize("bucketed", [True, False])
def test_each_batch_is_met_before_it_counts(bucketed: bool, stretches: list[list[int]]) -> None:
    found = profiled(seconds=20.0, tick=0.1, bucketed=bucketed)
    few, whole = (sample_steps(step(model(), bucketed=bucketed), most) for most in (5, 50))
    assert len(found.metrics["step_seconds"].samples) == 5
    new = [few[:-1]] if bucketed else []
    # Twice before, five stretches, in parts, under the profiler.
    assert stretches[:-5] == [few[-1:], *new, few, few, *[whole] * 9]


class SlowOnce(Ticks):
    """On which one stretch takes three ticks more."""

    def __init__(self, stretch: int) -> None:
        super().__init__()
        self._later = 2 * stretch + 1

    def __call__(self) -> float:
        seconds = super().__call__()
        return seconds + 3.0 if seconds >= self._later else seconds


def test_a_step_at_a_new_length_is_told_apart() -> None:
    found = profiled(clock=SlowOnce(1)).metrics
    assert found["first_step_seconds"].value == pytest.approx(4.0 / 4)
    assert found["step_seconds"].value == pytest.approx(1.0 / 5)


def test_of_batches_that_are_rounded_to_one_length_the_first_is_new() -> None:
    own = step(model())
    few = sample_steps(own, 5)
    assert profile._warm_up_batches(own, few) == few[:-1]
    own.collate.multiple = 8
    longest = [own.order.longest_E[own.order.rows(done)].max() for done in few]
    assert len({-(-n // 8) for n in longest}) < len(few)
    (*new,) = profile._warm_up_batches(own, few)
    rounded = [own.collate.padded(int(n)) for n in longest]
    assert new == [few[rounded.index(n)] for n in sorted(set(rounded))[:-1]]


def test_the_rate_is_that_of_the_median_step() -> None:
    found = profiled(clock=SlowOnce(6)).metrics
    assert found["step_seconds"].samples == (4.0 / 5, 1.0 / 5)
    assert found["step_seconds"].value == pytest.approx(0.5)
    assert found["steps_per_second"].value == pytest.approx(2.0)


def test_of_one_length_none_is_new() -> None:
    assert "first_step_seconds" not in profiled(bucketed=False).metrics
    whole = Dataset(*[of_one_length(rows) for rows in (40, 20, 20)], 2, 6, LONGEST, 1)
    assert "first_step_seconds" not in profiled(data=whole).metrics
    assert "first_step_seconds" not in profiled(batch=40).metrics


def of_one_length(rows: int) -> Split:
    tokens = np.random.default_rng(rows).integers(1, 6, size=(rows, LONGEST)).astype(np.uint8)
    return Split.of([*tokens], tokens[:, 0].astype(np.int64) % 2, 1)


@pytest.mark.parametrize(("seconds", "stretches"), [(0.01, 2), (4.0, 4), (1000.0, 5)])
def test_stretches_are_made_while_there_is_time(seconds: float, stretches: int) -> None:
    found = profiled(seconds=seconds)
    assert found.method["stretches"] == stretches
    assert len(found.metrics["step_seconds"].samples) == stretches


def test_a_stretch_has_fifty_batches_at_most_and_the_profiler_ten() -> None:
    longer = Dataset(split(60), split(20), split(20), 2, vocabulary=6, length=LONGEST, inputs=1)
    found = profiled(data=longer, seconds=1000.0, tick=0.01, batch=1)
    assert found.method["batches"].startswith("50 of an epoch's 60,")
    assert found.method["operators"].endswith("of 10 steps")


def test_rows_are_evaluated_as_a_validation_does_and_training_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = model()
    evaluated: list[tuple[bool, bool]] = []
    trained: list[bool] = []
    forward, step_forward = profile.forward, Step.forward

    def noted(*arguments: object) -> object:
        evaluated.append((own.training, torch.is_grad_enabled()))
        return forward(*arguments)  # type: ignore[arg-type]

    def stepped(*arguments: object) -> object:
        trained.append(own.training)
        return step_forward(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(profile, "forward", noted)
    monkeypatch.setattr(Step, "forward", stepped)
    profiled(own)
    # Twenty rows in batches of eight, three times.
    assert evaluated == [(False, False)] * 9
    assert trained and all(trained)


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        # Torch's own loop is none of them.
        (
            ("aten::mm", "autograd::engine::evaluate_function: MmBackward0", "_Read"),
            {"mm": 0.001, "_Read": 0.001},
        ),
        # Graphs that were compiled are one.
        (
            ("aten::mm", "## Call CompiledFxGraph f1 ##", "## Call CompiledFxGraph f2 ##"),
            {"compiled graphs": 0.002, "mm": 0.001},
        ),
    ],
)
def test_operators_are_seconds_a_step(
    keys: tuple[str, ...], wanted: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.profiler, "profile", Profiler(*keys))
    found = profiled().metrics
    operators = {name: found[name].value for name in found if name.startswith(OPERATOR)}
    assert operators == {OPERATOR + name: seconds for name, seconds in wanted.items()}
    assert found["operators_seconds"].value == pytest.approx(sum(wanted.values()))


def test_the_operators_that_take_most_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.profiler, "profile", Profiler(*map(str, range(TOP + 1))))
    found = profiled().metrics
    assert sum(name.startswith(OPERATOR) for name in found) == TOP


@pytest.mark.parametrize(
    ("tick", "steps"),
    # In half a second there are two steps of 0.2 s, five of 0.1 s and all ten of 0.02 s each.
    [(1.0, 3), (0.5, 5), (0.1, 10)],
)
def test_short_steps_are_profiled_in_greater_number(
    tick: float, steps: int, stretches: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.profiler, "profile", Profiler("aten::mm"))
    found = profiled(seconds=20.0, tick=tick)
    under = stretches[-6]
    assert len({*under}) == len(under) == steps
    assert found.method["operators"].endswith(f"of {steps} steps")
    assert found.metrics[OPERATOR + "mm"].value == pytest.approx(0.003 / steps)


def test_operations_are_the_mean_of_five_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([10, 20, 30, 40, 100])
    monkeypatch.setattr(profile, "count_operations", lambda call: next(counts))
    assert profiled().metrics["operations"].value == pytest.approx(40.0)


def test_a_training_takes_its_steps_its_validations_and_its_test() -> None:
    rows = Rows(train=40, validation=20, test=30)
    # A hundred steps, validated after 30, 60, 90 and 100.
    assert training_seconds(SPEC, rows, step=0.5, row=0.1) == pytest.approx(50 + 4 * 2 + 3)
