"""One training: its numbers, its protocol, its ending."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
import torch
from training.twins import assert_same, changed, closeness, numbers

from lra.training import loop
from lra.training.outcome import Diverged, Progress, Score


def test_it_learns(toy: ModuleType) -> None:
    spec = changed(toy.SPEC, steps=250, evaluate_every=50)
    told: list[Progress] = []
    result = toy.trained(toy.model(), spec, data=toy.dataset(rows=2000), report=told.append)
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
        toy.trained(model, seed=seed) for model, seed in zip(models, (4, 4, 5), strict=True)
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
        results.append(toy.trained(model, spec, data=data))
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
        toy.trained(model, spec, training=options)
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
    toy.trained(model, spec, training={"rules": rules})
    assert low <= np.mean(spreads) <= high


@pytest.mark.parametrize("pieces", [2, 5, 100])
def test_micro_batches_compute_what_one_batch_does(toy: ModuleType, pieces: int) -> None:
    models = [toy.model().double() for _ in range(2)]
    spec = changed(toy.SPEC, steps=30, evaluate_every=15)
    whole, cut = (
        toy.trained(model, s)
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
        toy.trained(model, s)
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
    mlp = model.body.blocks[0].mlp
    mlp.register_forward_pre_hook(lambda module, given: trained.append(module.training))
    spec = changed(toy.SPEC, steps=3, evaluate_every=3, recompute=recompute)
    toy.trained(model, spec)
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
        toy.trained(toy.model(), spec)
    assert norms[:2] == pytest.approx([1e-3, 1e-3], rel=1e-3)
    assert min(norms[2:]) > 1e-2


def test_the_optimiser_is_decoupled_adam_at_the_schedules_rate(toy: ModuleType) -> None:
    # A weight without gradient only decays: by (1 - rate * decay) a step.
    model = toy.model()
    model.head[-1].weight.requires_grad_(False)
    unused = torch.nn.Parameter(torch.ones(1))
    model.register_parameter("unused", unused)
    model.head.register_forward_hook(lambda module, given, out: out + 0.0 * unused)
    spec = changed(toy.SPEC, steps=4, evaluate_every=4, warmup=2, schedule="constant",
                   learning_rate=0.1, weight_decay=0.5)  # fmt: skip
    toy.trained(model, spec)
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
    result = toy.trained(model)
    assert told == list(range(1, toy.SPEC.steps + 1))
    assert model.body.blocks[0].mechanism.steps_seen == result.best_step


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
    result = toy.trained(model, changed(toy.SPEC, evaluate_every=12), data=data)
    assert result.best_step == 36
    assert result.validation_accuracy == 0.5
    assert asked == [data.validation] * 5 + [data.test]
    assert model.body.blocks[0].mechanism.steps_seen == 36


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
    result = toy.trained(model, spec, data=data)
    assert (result.best_step, result.validation_accuracy) == (60, 50 / 120)
    assert model.body.blocks[0].mechanism.steps_seen == 60


def test_a_last_step_off_the_beat_is_validated_too(toy: ModuleType) -> None:
    spec = changed(toy.SPEC, steps=25, evaluate_every=10)
    result = toy.trained(toy.model(), spec)
    assert [point.step for point in result.curve] == [10, 20, 25]


@pytest.mark.parametrize("rate", [float("inf"), 1e30])
def test_a_loss_that_is_not_finite_ends_soon(toy: ModuleType, rate: float) -> None:
    spec = changed(toy.SPEC, steps=5000, evaluate_every=5000, learning_rate=rate, warmup=0)
    with pytest.raises(Diverged, match="lower the learning rate") as caught:
        toy.trained(toy.model(), spec)
    assert caught.value.step <= 64
    assert caught.value.curve == ()


def test_a_last_step_that_explodes_is_noticed_in_validation(toy: ModuleType) -> None:
    spec = changed(toy.SPEC, steps=1, evaluate_every=1, learning_rate=float("inf"), warmup=0)
    with pytest.raises(Diverged, match="after step 1;"):
        toy.trained(toy.model(), spec)
