"""Several seeds in the same steps: what each has alone, up to rounding."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
import torch
from torch import Tensor

from lra.core.protocol import TrainSpec
from lra.training import loop
from lra.training.loop import Run, train
from lra.training.outcome import Diverged, Interrupted, Trained
from lra.training.stacked import abreast, train_stacked, why_not_stacked

SEEDS = (0, 1, 2)
CLOSE = {"cpu": 1e-9, "cuda": 1e-5}
"""How far a weight may be from that of the seed by itself, in float64; a GPU's kernels for several
may round the loss, in float32, otherwise than those for one."""


def changed(spec: TrainSpec, **fields: object) -> TrainSpec:
    return msgspec.structs.replace(spec, **fields)


def a_model(toy: ModuleType, seed: int, **options: object) -> torch.nn.Module:
    return toy.model(**{"mechanism": toy.Plain, "seed": seed} | options).double()


def a_run(
    toy: ModuleType,
    seed: int,
    spec: TrainSpec,
    *,
    folder: Path | None = None,
    stop: Callable[[], bool] | None = None,
    model: torch.nn.Module | None = None,
    inputs: int = 1,
    rows: int = 400,
    place: str = "cpu",
) -> Run:
    model = model if model is not None else a_model(toy, seed, inputs=inputs)
    return Run(
        model,
        toy.dataset(inputs=inputs, rows=rows),
        spec,
        seed=seed,
        device=torch.device(place),
        checkpoint=None if folder is None else folder / f"{seed}.pt",
        stop=stop,
    )


def alone(toy: ModuleType, seed: int, spec: TrainSpec, **options: Any) -> tuple[Trained, Run]:
    run = a_run(toy, seed, spec, **options)
    return train(run), run


def assert_close(one: Trained, other: Trained, run: Run, other_run: Run) -> None:
    assert (one.test.correct, one.best_step) == (other.test.correct, other.best_step)
    close = CLOSE[run.device.type]
    for point, twin in zip(one.curve, other.curve, strict=True):
        assert (point.step, point.learning_rate) == (twin.step, twin.learning_rate)
        assert point.train_loss == pytest.approx(twin.train_loss, rel=max(1e-6, close))
        assert point.validation_accuracy == twin.validation_accuracy
    state = other_run.model.state_dict()
    for name, value in run.model.state_dict().items():
        torch.testing.assert_close(value, state[name], rtol=0, atol=close)


@pytest.mark.parametrize("place", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("inputs", [1, 2])
@pytest.mark.parametrize("clip", [None, 0.5])
def test_every_seed_ends_where_it_ends_alone(
    toy: ModuleType, tmp_path: Path, inputs: int, clip: float | None, place: str
) -> None:
    # In batches of 30 and 31: seeds have different numbers of rows in a step.
    options = {"inputs": inputs, "rows": 391, "place": place}
    spec = changed(toy.SPEC, clip=clip, weight_decay=0.1)
    runs = [a_run(toy, seed, spec, folder=tmp_path, **options) for seed in SEEDS]
    assert why_not_stacked(runs) == ""
    first = train_stacked(runs)
    reference, its_run = alone(toy, 0, spec, **options)
    assert_close(first, reference, runs[0], its_run)
    for seed in SEEDS[1:]:
        own = a_run(toy, seed, spec, folder=tmp_path, **options)
        assert (own.standing.step, own.standing.stacked) == (spec.steps, 3)
        reference, its_run = alone(toy, seed, spec, **options)
        assert_close(train(own), reference, own, its_run)
    assert len({tuple(p.train_loss for p in run.standing.curve) for run in runs}) == 3


def test_seconds_are_shared(toy: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(10**6))
    monkeypatch.setattr("lra.training.stacked.perf_counter", lambda: float(next(ticks)))
    spec = changed(toy.SPEC, steps=10, evaluate_every=10)
    runs = [a_run(toy, seed, spec) for seed in SEEDS]
    train_stacked(runs)
    # One tick a step.
    assert [run.standing.seconds for run in runs] == pytest.approx([10 / 3] * 3)


def test_interrupted_anywhere_all_go_on_from_their_checkpoints(
    toy: ModuleType, tmp_path: Path
) -> None:
    spec = changed(toy.SPEC, evaluation_batch=40)
    reached: list[tuple[int, ...]] = []
    for allowed in (3, 15, 21, 24, 70, 200):
        polls = iter(range(allowed))
        stop = lambda polls=polls: next(polls, None) is None  # noqa: E731
        runs = [a_run(toy, seed, spec, folder=tmp_path, stop=stop) for seed in SEEDS]
        reached.append(tuple(run.standing.step for run in runs))
        try:
            trained = train_stacked(runs)
            break
        except Interrupted as ending:
            stopped = [a_run(toy, seed, spec, folder=tmp_path).standing.step for seed in SEEDS]
            assert stopped == [ending.step] * 3
    assert len(reached) > 3, reached
    assert all(len(set(steps)) == 1 for steps in reached), reached
    reference, its_run = alone(toy, 0, spec)
    assert_close(trained, reference, runs[0], its_run)
    for seed in SEEDS[1:]:
        own = a_run(toy, seed, spec, folder=tmp_path)
        trained = train(own)
        reference, its_run = alone(toy, seed, spec)
        assert_close(trained, reference, own, its_run)


class Remembers(torch.nn.Module):
    """A head that has of its seed what is neither parameter nor buffer."""

    def __init__(self, head: torch.nn.Module, seed: int) -> None:
        super().__init__()
        self.head, self.factor = head, 1.0 + seed / 100

    def forward(self, x: Tensor) -> Tensor:
        return self.head(x) * self.factor


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:
        return 2 * x

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> Tensor:
        return 2 * gradient


class Explodes(torch.nn.Module):
    """A head whose weights leave the numbers, from the first step on."""

    def __init__(self, head: torch.nn.Module) -> None:
        super().__init__()
        self.head = head
        self.factor = torch.nn.Parameter(torch.ones((), dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(x) * self.factor


@pytest.mark.parametrize("bad", [0, 1])
def test_a_seed_that_diverges_leaves_the_others(toy: ModuleType, tmp_path: Path, bad: int) -> None:
    def explosive(seed: int, folder: Path | None = None) -> Run:
        model = a_model(toy, seed)
        model.head = Explodes(model.head)
        return a_run(toy, seed, toy.SPEC, folder=folder, model=model)

    runs = [explosive(seed, tmp_path) for seed in SEEDS]
    runs[bad].model.head.factor.data.fill_(float("inf"))
    if bad == 0:
        with pytest.raises(Diverged):
            train_stacked(runs)
    else:
        reference = explosive(0)
        assert_close(train_stacked(runs), train(reference), runs[0], reference)
        assert runs[2].standing.step == toy.SPEC.steps
    # Each job goes on from its checkpoint: the one says what became of it, the others end well.
    for seed in SEEDS:
        own, reference = explosive(seed, tmp_path), explosive(seed)
        assert own.standing.step > 0
        if seed == bad:
            with pytest.raises(Diverged):
                train(own)
        else:
            assert_close(train(own), train(reference), own, reference)


def test_seeds_that_stand_elsewhere_are_told_apart(toy: ModuleType, tmp_path: Path) -> None:
    polls = iter(range(25))
    ahead = a_run(toy, 1, toy.SPEC, folder=tmp_path, stop=lambda: next(polls, None) is None)
    with pytest.raises(Interrupted):
        train(ahead)
    runs = [a_run(toy, seed, toy.SPEC, folder=tmp_path) for seed in SEEDS]
    assert runs[1].standing.step > 0
    assert abreast(runs) == [runs[0], runs[2]]
    assert abreast(runs[1:]) == [runs[1]]


@pytest.mark.parametrize("every", [0.0, 1e9])
def test_all_are_saved_or_none(
    toy: ModuleType, monkeypatch: pytest.MonkeyPatch, every: float
) -> None:
    """Whenever they are killed, they go on together."""
    monkeypatch.setattr(loop, "SAVE_EVERY", every)
    cheap = itertools.cycle([True, False, False])
    monkeypatch.setattr(Run, "is_cheap_to_save", lambda self: next(cheap))
    runs = [a_run(toy, seed, toy.SPEC) for seed in SEEDS]
    saved: list[tuple[int, int]] = []
    monkeypatch.setattr(
        Run, "save", lambda self, tally=None: saved.append((runs.index(self), self.standing.step))
    )
    train_stacked(runs)
    assert len({step for _, step in saved}) == (60 if every == 0.0 else 1)
    for first in range(0, len(saved), 3):
        group = saved[first : first + 3]
        assert sorted(number for number, _ in group) == [0, 1, 2]
        assert len({step for _, step in group}) == 1


def test_a_stop_between_two_questions_loses_nothing(toy: ModuleType, tmp_path: Path) -> None:
    """It is asked once: what is answered is what is done."""
    answers = itertools.cycle([False] * 9 + [True])
    stop = lambda: next(answers)  # noqa: E731
    runs = [a_run(toy, seed, toy.SPEC, folder=tmp_path, stop=stop) for seed in SEEDS]
    with pytest.raises(Interrupted) as caught:
        train_stacked(runs)
    stood = [a_run(toy, seed, toy.SPEC, folder=tmp_path).standing.step for seed in SEEDS]
    assert stood == [caught.value.step] * 3


@pytest.mark.parametrize(
    ("fields", "options", "why"),
    [
        ({"micro_batches": 2}, {}, "micro-batches"),
        ({"recompute": True}, {}, "recomputed"),
        ({"execution": "compiled"}, {}, "compiled"),
        ({}, {"changes": True}, "may change between two steps"),
        ({}, {"branches": True}, "data-dependent"),
        ({}, {"shares": True}, "layers share parameters"),
        ({}, {"remembers": True}, "its answers differ from those apart, by "),
        ({}, {"own function": True}, "it has an autograd function of its own"),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_cannot_be_stacked_is_said_and_leaves_nothing_behind(
    toy: ModuleType, fields: dict, options: dict, why: str
) -> None:
    spec = changed(toy.SPEC, **fields)
    runs = []
    for seed in SEEDS:
        # With dropout, for its draws.
        mechanism = toy.Softmax if "changes" in options else toy.Plain
        model = a_model(toy, seed, mechanism=mechanism, dropout=0.1)
        if "branches" in options:
            model.register_forward_hook(lambda module, given, out: out if out.sum() > 0 else -out)
        if "shares" in options:
            model.register_parameter("again", model.head[0].bias)
        if "remembers" in options:
            model.head = Remembers(model.head, seed)
        if "own function" in options:
            model.register_forward_hook(lambda module, given, out: Doubled.apply(out))
        runs.append(a_run(toy, seed, spec, model=model))
    before = [{n: v.clone() for n, v in run.model.state_dict().items()} for run in runs]
    draws = torch.get_rng_state()
    assert why in why_not_stacked(runs)
    assert torch.equal(torch.get_rng_state(), draws)
    for run, state in zip(runs, before, strict=True):
        assert all(torch.equal(value, state[n]) for n, value in run.model.state_dict().items())
        assert all(p.grad is None for p in run.model.parameters())
        assert not run.step.optimiser.state


def test_dropout_differs_from_seed_to_seed(toy: ModuleType) -> None:
    """Seeds that start alike and see the same rows still differ where noise is drawn."""
    curves = []
    for dropout in (0.0, 0.3):
        spec = changed(toy.SPEC, steps=5, evaluate_every=5)
        runs = [a_run(toy, 0, spec, model=a_model(toy, 0, dropout=dropout)) for _ in range(2)]
        train_stacked(runs)
        curves.append([run.standing.curve[0].train_loss for run in runs])
    assert curves[0][0] == pytest.approx(curves[0][1], rel=1e-12)
    assert curves[1][0] != pytest.approx(curves[1][1], rel=1e-3)
