from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import msgspec
import numpy as np
import pytest
import torch

import lra
from lra.core.errors import LraError
from lra.core.protocol import TrainSpec
from lra.core.records import CurvePoint
from lra.training import loop
from lra.training.loop import Run, train
from lra.training.objective import Tally
from lra.training.outcome import Diverged, Interrupted, Progress, Score, Trained

HERE = Path(__file__).parent


def changed(spec: TrainSpec, **fields: object) -> TrainSpec:
    return msgspec.structs.replace(spec, **fields)


def numbers(curve: tuple[CurvePoint, ...]) -> list[CurvePoint]:
    """A curve without its clock."""
    return [msgspec.structs.replace(point, seconds=0.0) for point in curve]


def assert_same(
    one: Trained, other: Trained, model: torch.nn.Module, other_model: torch.nn.Module
) -> None:
    """Bit for bit, but for the clock."""
    assert numbers(one.curve) == numbers(other.curve)
    assert (one.test, one.best_step) == (other.test, other.best_step)
    assert one.validation_accuracy == other.validation_accuracy
    for name, value in model.state_dict().items():
        assert torch.equal(value, other_model.state_dict()[name]), name


def closeness(model: torch.nn.Module, other: torch.nn.Module) -> float:
    pairs = zip(model.parameters(), other.parameters(), strict=True)
    return max((a - b).abs().max().item() for a, b in pairs)


def assert_near(
    one: Trained, other: Trained, model: torch.nn.Module, other_model: torch.nn.Module
) -> None:
    """Up to the order in which a GPU adds up, of float64 models."""
    assert (one.test.correct, one.best_step) == (other.test.correct, other.best_step)
    for point, twin in zip(one.curve, other.curve, strict=True):
        assert point.train_loss == pytest.approx(twin.train_loss, rel=1e-6)
    assert closeness(model, other_model) < 1e-6


def test_it_learns(toy: ModuleType) -> None:
    spec = changed(toy.SPEC, steps=250, evaluate_every=50)
    told: list[Progress] = []
    result = train(
        Run(toy.model(), toy.dataset(rows=2000), spec, seed=0, device=toy.CPU, report=told.append)
    )
    assert result.test.accuracy > 0.95
    assert result.test.answers == 130
    assert [point.step for point in result.curve] == [50, 100, 150, 200, 250]
    assert result.curve[0].train_loss > 10 * result.curve[-1].train_loss
    assert [p.point for p in told if p.point] == list(result.curve)
    assert result.seconds == pytest.approx(250 / result.steps_per_second)
    assert result.seconds == result.curve[-1].seconds > result.curve[0].seconds > 0


def test_two_runs_give_the_same_numbers_and_another_seed_does_not(toy: ModuleType) -> None:
    models = [toy.model(dropout=0.2) for _ in range(3)]
    one, same, other = (
        train(Run(model, toy.dataset(), toy.SPEC, seed=seed, device=toy.CPU))
        for model, seed in zip(models, (4, 4, 5), strict=True)
    )
    assert_same(one, same, models[0], models[1])
    assert numbers(one.curve) != numbers(other.curve)


@pytest.mark.parametrize("inputs", [1, 2])
def test_bucketed_and_unbucketed_compute_the_same(toy: ModuleType, inputs: int) -> None:
    results, models, widths = [], [], []
    for bucketed in (True, False):
        model = toy.model(inputs=inputs).double()
        seen: set[int] = set()
        model.register_forward_pre_hook(
            lambda module, given, seen=seen: seen.add(given[0].shape[1])
        )
        spec = changed(toy.SPEC, steps=30, bucketed=bucketed)
        data = toy.dataset(inputs=inputs)
        results.append(train(Run(model, data, spec, seed=0, device=toy.CPU)))
        models.append(model)
        widths.append(seen)
    assert len(widths[0]) > 5
    assert widths[1] == {toy.LENGTH}
    # The models are float64; only the loss is float32.
    assert closeness(*models) < 1e-6
    for cut, full in zip(results[0].curve, results[1].curve, strict=True):
        assert cut.train_loss == pytest.approx(full.train_loss, rel=1e-6)
        assert cut.validation_accuracy == full.validation_accuracy


def test_padding_to_the_length_and_the_originals_rules_are_never_cut(toy: ModuleType) -> None:
    for options in ({"pad_to_length": True}, {"rules": "lra2021"}):
        model, seen = toy.model(), set()
        model.register_forward_pre_hook(
            lambda module, given, seen=seen: seen.add(given[0].shape[1])
        )
        spec = changed(toy.SPEC, steps=3, evaluate_every=3)
        train(Run(model, toy.dataset(), spec, seed=0, device=toy.CPU, **options))
        assert seen == {toy.LENGTH}


@pytest.mark.parametrize(("rules", "low", "high"), [("fixed", 0, 8), ("lra2021", 15, 20)])
def test_only_the_originals_rules_shuffle_without_regard_to_length(
    toy: ModuleType, rules: str, low: int, high: int
) -> None:
    model, spreads = toy.model(rules=rules), []

    def spy(module: torch.nn.Module, given: tuple) -> None:
        if module.training:
            spreads.append(np.ptp((given[0] > 0).sum(dim=1).numpy()))

    model.register_forward_pre_hook(spy)
    spec = changed(toy.SPEC, steps=13, bucketed=False)
    train(Run(model, toy.dataset(), spec, seed=0, rules=rules, device=toy.CPU))
    assert low <= np.mean(spreads) <= high


@pytest.mark.parametrize("pieces", [2, 5, 100])
def test_micro_batches_compute_what_one_batch_does(toy: ModuleType, pieces: int) -> None:
    models = [toy.model().double() for _ in range(2)]
    spec = changed(toy.SPEC, steps=30, evaluate_every=15)
    whole, cut = (
        train(Run(model, toy.dataset(), s, seed=0, device=toy.CPU))
        for model, s in zip(models, (spec, changed(spec, micro_batches=pieces)), strict=True)
    )
    assert closeness(*models) < 1e-6
    for one, other in zip(whole.curve, cut.curve, strict=True):
        assert other.train_loss == pytest.approx(one.train_loss, rel=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch by torch
def test_a_compiled_model_learns_about_what_an_eager_one_does(toy: ModuleType) -> None:
    models = [toy.model() for _ in range(2)]
    spec = changed(toy.SPEC, steps=30, evaluate_every=15)
    eager, compiled = (
        train(Run(model, toy.dataset(), s, seed=0, device=toy.CPU))
        for model, s in zip(models, (spec, changed(spec, execution="compiled")), strict=True)
    )
    for one, other in zip(eager.curve, compiled.curve, strict=True):
        assert other.train_loss == pytest.approx(one.train_loss, rel=1e-3)
        assert other.validation_loss == pytest.approx(one.validation_loss, rel=1e-3)


@pytest.mark.parametrize(("recompute", "runs"), [(False, 1), (True, 2)])
def test_a_block_runs_again_on_the_way_back_where_the_protocol_says_so(
    toy: ModuleType, recompute: bool, runs: int
) -> None:
    model, trained = toy.model(), []
    mlp = model.encoder.blocks[0].mlp
    mlp.register_forward_pre_hook(lambda module, given: trained.append(module.training))
    spec = changed(toy.SPEC, steps=3, evaluate_every=3, recompute=recompute)
    train(Run(model, toy.dataset(), spec, seed=0, device=toy.CPU))
    assert sum(trained) == 3 * runs


def test_the_gradient_is_clipped(toy: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    norms: list[float] = []
    step = torch.optim.AdamW.step

    def spy(self: torch.optim.AdamW) -> None:
        grads = [p.grad for group in self.param_groups for p in group["params"]]
        norms.append(torch.nn.utils.get_total_norm([g for g in grads if g is not None]).item())
        step(self)

    monkeypatch.setattr(torch.optim.AdamW, "step", spy)
    for clip in (1e-3, None):
        spec = changed(toy.SPEC, steps=2, evaluate_every=2, clip=clip)
        train(Run(toy.model(), toy.dataset(), spec, seed=0, device=toy.CPU))
    assert norms[:2] == pytest.approx([1e-3, 1e-3], rel=1e-3)
    assert min(norms[2:]) > 1e-2


def test_the_optimiser_is_decoupled_adam_at_the_schedules_rate(toy: ModuleType) -> None:
    # A weight without gradient only decays: by (1 - rate * decay) a step.
    model = toy.model()
    model.head[-1].weight.requires_grad_(False)
    unused = torch.nn.Parameter(torch.ones(1))
    model.register_parameter("unused", unused)
    model.register_forward_hook(lambda module, given, out: out + 0.0 * unused)
    spec = changed(toy.SPEC, steps=4, evaluate_every=4, warmup=2, schedule="constant",
                   learning_rate=0.1, weight_decay=0.5)  # fmt: skip
    train(Run(model, toy.dataset(), spec, seed=0, device=toy.CPU))
    rates = (0.0, 0.05, 0.1, 0.1)
    assert unused.item() == pytest.approx(np.prod([1 - rate * 0.5 for rate in rates]))


def test_after_step_runs_once_per_step_and_its_buffers_are_kept_with_the_best(
    toy: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    after_step, told = toy.Softmax.after_step, []

    def spy(self: torch.nn.Module, step: int) -> None:
        told.append(step)
        after_step(self, step)

    monkeypatch.setattr(toy.Softmax, "after_step", spy)
    model = toy.model()
    result = train(Run(model, toy.dataset(), toy.SPEC, seed=0, device=toy.CPU))
    assert told == list(range(1, toy.SPEC.steps + 1))
    assert model.encoder.blocks[0].mechanism.steps_seen == result.best_step


def test_the_best_is_chosen_by_accuracy_then_loss_and_tested_once(
    toy: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = toy.dataset()
    scores = iter([Score(50, 120, 0.1), Score(60, 120, 0.9), Score(60, 120, 0.7),
                   Score(60, 120, 0.7), Score(59, 120, 0.2)])  # fmt: skip
    asked: list[object] = []

    def scripted(model: torch.nn.Module, split: object, *args: object, **options: object) -> Score:
        asked.append(split)
        return next(scores) if split is data.validation else Score(1, 130, 1.0)

    monkeypatch.setattr(loop, "evaluate", scripted)
    model = toy.model()
    result = train(Run(model, data, changed(toy.SPEC, evaluate_every=12), seed=0, device=toy.CPU))
    assert result.best_step == 36
    assert result.validation_accuracy == 0.5
    assert asked == [data.validation] * 5 + [data.test]
    assert model.encoder.blocks[0].mechanism.steps_seen == 36


def test_the_weights_of_the_last_step_are_tested_where_the_protocol_says_so(
    toy: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = toy.dataset()
    scores = iter([Score(60, 120, 0.1), Score(50, 120, 0.9)])
    monkeypatch.setattr(
        loop,
        "evaluate",
        lambda model, split, *args, **options: (
            next(scores) if split is data.validation else Score(1, 130, 1.0)
        ),
    )
    model, spec = toy.model(), changed(toy.SPEC, evaluate_every=30, tested="last")
    result = train(Run(model, data, spec, seed=0, device=toy.CPU))
    assert (result.best_step, result.validation_accuracy) == (60, 50 / 120)
    assert model.encoder.blocks[0].mechanism.steps_seen == 60


def test_a_last_step_off_the_beat_is_validated_too(toy: ModuleType) -> None:
    spec = changed(toy.SPEC, steps=25, evaluate_every=10)
    result = train(Run(toy.model(), toy.dataset(), spec, seed=0, device=toy.CPU))
    assert [point.step for point in result.curve] == [10, 20, 25]


@pytest.mark.parametrize("rate", [float("inf"), 1e30])
def test_a_loss_that_is_not_finite_ends_soon(toy: ModuleType, rate: float) -> None:
    spec = changed(toy.SPEC, steps=5000, evaluate_every=5000, learning_rate=rate, warmup=0)
    with pytest.raises(Diverged, match="learning rate") as caught:
        train(Run(toy.model(), toy.dataset(), spec, seed=0, device=toy.CPU))
    assert caught.value.step <= 64
    assert caught.value.curve == ()


def test_a_last_step_that_explodes_is_noticed_in_validation(toy: ModuleType) -> None:
    spec = changed(toy.SPEC, steps=1, evaluate_every=1, learning_rate=float("inf"), warmup=0)
    with pytest.raises(Diverged, match=r"\bstep 1\b"):
        train(Run(toy.model(), toy.dataset(), spec, seed=0, device=toy.CPU))


@pytest.mark.parametrize("place", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_stopped_anywhere_and_continued_it_ends_in_the_same_numbers(
    toy: ModuleType, tmp_path: Path, place: str
) -> None:
    device, data = torch.device(place), toy.dataset()
    dtype, same = (torch.float32, assert_same) if place == "cpu" else (torch.float64, assert_near)
    straight_model = toy.model(dropout=0.1).to(dtype)
    # Polls: one a step, 15 in each validation, 17 in the test.
    spec = changed(toy.SPEC, evaluation_batch=8)
    straight = train(Run(straight_model, data, spec, seed=3, device=device))

    reached: list[int] = []
    for allowed in range(4, 30):
        polls = iter(range(allowed))
        model = toy.model(dropout=0.1).to(dtype)
        try:
            resumed = train(Run(
                model, data, spec, seed=3, device=device, checkpoint=tmp_path / "a.pt",
                stop=lambda polls=polls: next(polls, None) is None,
            ))  # fmt: skip
            break
        except Interrupted as ending:
            reached.append(ending.step)
    assert reached == sorted(reached)
    assert reached[0] == 4
    # In the first validation, between steps, in the last validation or the test.
    assert {20, 60} < set(reached)
    same(straight, resumed, straight_model, model)


def test_stopped_before_the_first_step(toy: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(Interrupted, match=r"\bstep 0\b.*\b60\b"):
        train(Run(
            toy.model(), toy.dataset(), toy.SPEC, seed=0, device=toy.CPU,
            checkpoint=tmp_path / "a.pt", stop=lambda: True,
        ))  # fmt: skip


def test_killed_and_continued_it_ends_in_the_same_numbers(toy: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    root = Path(lra.__file__).parents[1]
    child = subprocess.Popen(
        [sys.executable, HERE / "slow_child.py", path],
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    with child.stdout:
        # Polls: one a step, and three in each of two validations; 55 is between steps 40 and 60.
        for line in child.stdout:
            if line.strip() == "55":
                break
        os.kill(child.pid, signal.SIGKILL)
    assert child.wait(timeout=30) == -signal.SIGKILL

    data, models = toy.dataset(), [toy.model(dropout=0.1) for _ in range(2)]
    resumed_at: list[int] = []
    resumed = train(Run(
        models[1], data, toy.SPEC, seed=3, device=toy.CPU, checkpoint=path,
        report=lambda progress: resumed_at.append(progress.step),
    ))  # fmt: skip
    # The checkpoint of step 20 was there at the least.
    assert 20 not in resumed_at
    assert resumed_at[-1] == 60
    straight = train(Run(models[0], data, toy.SPEC, seed=3, device=toy.CPU))
    assert_same(straight, resumed, models[0], models[1])


def test_a_finished_checkpoint_is_only_tested_again(toy: ModuleType, tmp_path: Path) -> None:
    data, path = toy.dataset(), tmp_path / "a.pt"
    models = [toy.model() for _ in range(2)]
    first = train(Run(models[0], data, toy.SPEC, seed=0, device=toy.CPU, checkpoint=path))
    again = train(Run(models[1], data, toy.SPEC, seed=0, device=toy.CPU, checkpoint=path))
    assert_same(first, again, models[0], models[1])
    assert first.seconds == again.seconds


@pytest.mark.parametrize("counted", [None, 1])
def test_only_a_save_between_steps_counts_what_the_device_has_yet_to_do(
    toy: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counted: int | None
) -> None:
    run = Run(
        toy.model(), toy.dataset(), toy.SPEC, seed=0, device=toy.CPU, checkpoint=tmp_path / "a.pt"
    )
    waited: list[bool] = []
    monkeypatch.setattr(run, "wait", lambda: waited.append(True))
    # Amid an evaluation there is something counted so far.
    run.save(None if counted is None else Tally(counted, torch.zeros(()), torch.zeros(())))
    assert waited == ([True] if counted is None else [])


@pytest.mark.parametrize("change", ["seed", "spec", "rules", "metric", "padding", "model"])
def test_a_checkpoint_of_another_training_is_refused(
    toy: ModuleType, tmp_path: Path, change: str
) -> None:
    data, path = toy.dataset(), tmp_path / "a.pt"
    spec = changed(toy.SPEC, steps=2, evaluate_every=1)
    train(Run(toy.model(), data, spec, seed=0, device=toy.CPU, checkpoint=path))
    model = toy.model(inputs=2) if change == "model" else toy.model()
    with pytest.raises(LraError, match="another training"):
        train(
            Run(
                model,
                toy.dataset(inputs=2) if change == "model" else data,
                changed(spec, learning_rate=1.0) if change == "spec" else spec,
                seed=1 if change == "seed" else 0,
                rules="lra2021" if change == "rules" else "fixed",
                metric="bits_per_byte" if change == "metric" else "accuracy",
                pad_to_length=change == "padding",
                device=toy.CPU,
                checkpoint=path,
            )
        )
