"""The error of an approximation: by hand, against laws, and what is refused."""

from __future__ import annotations

import math
from statistics import mean
from typing import Any

import pytest
import torch
from cells import TOY
from torch import nn

from attention_impls.contract import Context, Dims, Layer, MechanismConfig
from attention_impls.dense.grouped_query import GroupedQuery
from attention_impls.dense.sdpa import Sdpa
from attention_impls.kernel.linear import Linear
from attention_impls.kernel.performer import Performer, PerformerConfig
from attention_impls.learned.reformer import Reformer, ReformerConfig
from attention_impls.learned.sinkhorn import Sinkhorn, SinkhornConfig
from attention_impls.lowrank.nystromformer import Nystromformer, NystromformerConfig
from attention_impls.pattern.longformer import Longformer, LongformerConfig
from attention_impls.pattern.sliding_window import SlidingWindow, SlidingWindowConfig
from attention_impls.recurrent.lstm import Lstm
from lra.core.cells import ErrorCell
from lra.core.errors import UnsupportedError
from lra.measure import error
from lra.measure.error import measure_error, predicted, predicted_error, relative_error
from lra.measure.live_tensors import tensor_peak

NAMES = ("output_error", "gradient_error_q", "gradient_error_k", "gradient_error_v")


def cell(**changes: Any) -> ErrorCell:
    return ErrorCell(**{**TOY, "batch": 2, "head_width": 8, **changes})


def errors(
    wanted: ErrorCell, mechanism: type[Layer], config: MechanismConfig | None = None
) -> dict[str, float]:
    found = measure_error(wanted, mechanism, config or mechanism.Config()).metrics
    values = {name: metric.value for name, metric in found.items()}
    assert tuple(values) == NAMES
    return {name: value for name, value in values.items() if value is not None}


@pytest.mark.parametrize("direction", ["bidirectional", "causal"])
@pytest.mark.parametrize("mechanism", [Sdpa, GroupedQuery])
def test_exact_attention_is_off_by_rounding(mechanism: type[Layer], direction: str) -> None:
    found = errors(cell(direction=direction), mechanism)
    assert all(0.0 < value < 1e-6 for value in found.values()), found
    coarse = errors(cell(direction=direction, dtype="bfloat16"), mechanism)
    assert all(1e-4 < value < 2e-2 for value in coarse.values()), coarse


@pytest.mark.parametrize("rows", [1, 7, 24, 100])
def test_blocks_of_rows_change_nothing(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(error, "ROWS", rows)
    for direction in ("bidirectional", "causal"):
        assert max(errors(cell(direction=direction), Sdpa).values()) < 1e-6


def test_twice_the_output_has_error_1_and_another_output_what_one_computes_by_hand() -> None:
    class Twice(Sdpa):
        def attend(self, q: Any, k: Any, v: Any, *rest: Any, **extra: Any) -> Any:
            out, state = super().attend(q, k, v, *rest, **extra)
            return 2 * out, state

    class Values(Sdpa):
        def attend(self, q: Any, k: Any, v: Any, *rest: Any, **extra: Any) -> Any:
            return v.clone(), None

    assert errors(cell(), Twice) == pytest.approx(dict.fromkeys(NAMES, 1.0), rel=1e-5)
    wanted = cell(batch=1, heads=1, length=3, head_width=2, input_scale=0.5)
    draws = torch.Generator().manual_seed(0)
    q, k, v, upstream = (torch.randn(3, 2, generator=draws).double() for _ in range(4))
    weights = (0.25 * q @ k.T / math.sqrt(2)).softmax(-1)
    found = errors(wanted, Values)
    assert found["output_error"] == pytest.approx(
        float((v - weights @ v).norm() / (weights @ v).norm()), rel=1e-5
    )
    exact_v = weights.T @ upstream
    assert found["gradient_error_v"] == pytest.approx(
        float((upstream - exact_v).norm() / exact_v.norm()), rel=1e-5
    )
    # It has no gradient by its queries and keys: all of the exact one is missing.
    assert (found["gradient_error_q"], found["gradient_error_k"]) == (1.0, 1.0)


def test_performer_falls_with_features_at_the_rate_it_declares_and_grows_with_the_inputs() -> None:
    def off(features: int, scale: float) -> dict[str, float]:
        config = PerformerConfig(features=features)
        found = [
            errors(cell(input_scale=scale, seed=seed, heads=4), Performer, config)
            for seed in range(6)
        ]
        return {name: mean(one[name] for one in found) for name in NAMES}

    few, many = off(32, 0.35), off(512, 0.35)
    rate = predicted(Performer, PerformerConfig(features=32))["predicted_rate"]
    assert rate == 0.5
    slope = math.log(few["output_error"] / many["output_error"]) / math.log(512 / 32)
    assert slope == pytest.approx(rate, abs=0.15)
    assert all(many[name] < few[name] for name in NAMES)
    assert off(32, 1.0)["output_error"] > 2 * few["output_error"]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_what_layers_share_is_the_layers_own(dtype: str) -> None:
    class Scaled(Sdpa):
        @classmethod
        def build_shared(cls, dims: Dims, config: MechanismConfig) -> nn.Module:
            return nn.Linear(3, 1, bias=False)

        def __init__(self, *arguments: Any, shared: nn.Module, **rest: Any) -> None:
            super().__init__(*arguments, shared=shared, **rest)
            # Kept out of the layer's own parameters: the model counts it.
            self.table = [shared]

        def attend(self, *arguments: Any, **extra: Any) -> Any:
            out, state = super().attend(*arguments, **extra)
            assert not self.table[0].training
            # Refuses a type that is not its own.
            return torch.mm(self.table[0].weight, out.new_ones(3, 1)) * out, state

    wanted = cell(dtype=dtype)
    alone = measure_error(wanted, Sdpa, Sdpa.Config()).parameters
    assert measure_error(wanted, Scaled, Scaled.Config()).parameters == alone + 3


def test_seeds_draw_inputs_and_features() -> None:
    first, again, other = (errors(cell(seed=seed), Performer) for seed in (0, 0, 1))
    assert first == again != other


def test_a_law_is_told_where_only_the_budget_differs() -> None:
    law = {"predicted_rate": 0.5, "predicted_budget": ["features"]}
    assert predicted(Performer, PerformerConfig(features=7)) == law
    assert predicted(Performer, PerformerConfig(features=7, kernel="relu")) == {}
    assert predicted(SlidingWindow, SlidingWindowConfig()) == {}
    assert measure_error(cell(), Performer, PerformerConfig()).method.items() >= law.items()


@pytest.mark.parametrize(
    ("mechanism", "exact", "less"),
    [
        (SlidingWindow, SlidingWindowConfig(24, 24), SlidingWindowConfig(2, 2)),
        (Nystromformer, NystromformerConfig(24, convolution=0), NystromformerConfig(4)),
        (Longformer, LongformerConfig(window=48, leading=0), LongformerConfig(window=4)),
        (Sinkhorn, SinkhornConfig(block=24), SinkhornConfig(block=4)),
    ],
)
def test_where_it_equals_softmax_only_rounding_is_left(
    mechanism: type[Layer], exact: MechanismConfig, less: MechanismConfig
) -> None:
    assert max(errors(cell(), mechanism, exact).values()) < 2e-6
    assert errors(cell(), mechanism, less)["output_error"] > 0.05


@pytest.mark.parametrize("parity", ["none", "lra2021"])
def test_reformer_nears_softmax_over_its_queries_as_keys_by_hand(parity: str) -> None:
    wanted = cell(batch=1, heads=1, length=3, head_width=2, input_scale=0.5)
    draws = torch.Generator().manual_seed(0)
    q, _, v, upstream = (torch.randn(3, 2, generator=draws).double() for _ in range(4))
    q = (q / 2).requires_grad_()
    if parity == "none":
        logits = q @ (q / q.norm(dim=1, keepdim=True)).T - 1e9 * torch.eye(3)
    else:
        logits = q @ q.T * math.sqrt(2)
    exact = logits.softmax(-1) @ v
    (gradient,) = torch.autograd.grad(exact, q, upstream)

    class Nothing(Reformer):
        def attend(self, q: Any, k: Any, v: Any, *rest: Any, **extra: Any) -> Any:
            return 3 * q + 0 * k + 0 * v, None

    config = ReformerConfig(rounds=1, parity=parity)  # type: ignore[arg-type]
    found = measure_error(wanted, Nothing, config)
    assert found.method["exact_keys"] == "of its own"
    assert found.metrics["output_error"].value == pytest.approx(
        float(((3 * q - exact).norm() / exact.norm()).detach()), rel=1e-5
    )
    assert found.metrics["gradient_error_q"].value == pytest.approx(
        float((3 * upstream - gradient).norm() / gradient.norm()), rel=1e-5
    )
    assert "zero" in str(found.metrics["gradient_error_k"].why_null)


@pytest.mark.parametrize("direction", ["bidirectional", "causal"])
@pytest.mark.parametrize("length", [1, 24])
def test_reformer_that_sees_all_pairs_is_exact_and_more_rounds_come_nearer(
    direction: str, length: int
) -> None:
    all_pairs = cell(direction=direction, length=length)
    assert max(errors(all_pairs, Reformer, ReformerConfig(chunk=12)).values()) < 2e-6
    if length > 1:
        longer = cell(direction=direction, length=96)
        few, many = (
            errors(longer, Reformer, ReformerConfig(chunk=4, rounds=rounds))["output_error"]
            for rounds in (1, 16)
        )
        assert many < 0.6 * few


@pytest.mark.parametrize(
    ("mechanism", "changes", "told"),
    [
        (Lstm, {}, r"toy.*\bkeys\b"),
        (Linear, {}, r"toy.*\bsoftmax\b"),
        (Nystromformer, {"direction": "causal"}, r"toy.*\bcausal\b"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_line(
    mechanism: type[Layer], changes: dict[str, Any], told: str
) -> None:
    with pytest.raises(UnsupportedError, match=told) as caught:
        measure_error(cell(**changes), mechanism, mechanism.Config())
    assert "\n" not in str(caught.value)


def test_no_ratio_to_nothing_and_none_of_what_is_no_number() -> None:
    one = torch.ones(2)
    assert "zero" in str(relative_error(one, torch.zeros(2)).why_null)
    assert relative_error(one / 0.0, one).why_null == "it is inf"
    assert relative_error(one * math.nan, one).why_null == "it is nan"
    alone = measure_error(cell(length=1), Sdpa, Sdpa.Config()).metrics
    assert alone["gradient_error_q"].value is None
    assert alone["gradient_error_v"].value == 0.0


def test_exact_attention_needs_no_matrix_of_all_pairs() -> None:
    n = 2048
    q, k, v, upstream = torch.randn(4, 1, 2, n, 4)
    layer = Sdpa(Dims(width=8, qkv_width=8, heads=2, max_length=n))
    peak = tensor_peak(lambda: error._exact(layer, q, k, v, upstream, Context()))
    assert peak < 2.5 * 8 * n * n


@pytest.mark.parametrize(("width", "scale"), [(8, 0.25), (16, 0.5), (32, 0.125)])
def test_performers_error_is_the_predicted_one_where_inputs_are_small(
    width: int, scale: float
) -> None:
    config = PerformerConfig(features=512)
    wanted = {"length": 400, "heads": 8, "batch": 1, "head_width": width, "input_scale": scale}
    squares = [
        errors(cell(seed=seed, **wanted), Performer, config)["output_error"] ** 2
        for seed in range(4)
    ]
    law = predicted_error(cell(**wanted), Performer, config)["predicted_error"]
    # Orthogonal draws err less than the independent ones of the law; a scale twice as large errs
    # more than twice as much.
    assert 0.7 * law < math.sqrt(mean(squares)) < 1.1 * law


def test_the_prediction_falls_with_features_and_grows_ever_faster_with_scale() -> None:
    def law(scale: float, features: int = 64) -> float:
        config = PerformerConfig(features=features)
        found = Performer.predicted_error(config, head_width=32, input_scale=scale)
        assert found is not None
        return found

    assert law(0.25, 256) == pytest.approx(law(0.25, 64) / 2)
    # At tiny inputs the features' own size counts: linear in the scale.
    assert law(0.002) == pytest.approx(2 * law(0.001), rel=1e-3)
    assert 2.0 < law(0.25) / law(0.125) < law(0.5) / law(0.25) < law(0.75) / law(0.375)


def test_nothing_is_predicted_where_no_law_holds() -> None:
    config = PerformerConfig()
    for changes in ({"input_scale": 1.0}, {"input_scale": 50.0}, {"direction": "causal"}):
        wanted = cell(**{"head_width": 32, "input_scale": 0.25, **changes})
        assert predicted_error(wanted, Performer, config) == {}
    small = cell(input_scale=0.25)
    for other in (
        PerformerConfig(kernel="relu"),
        PerformerConfig(norms="sqrt"),
        PerformerConfig(parity="lra2021"),
    ):
        assert predicted_error(small, Performer, other) == {}
    assert predicted_error(small, Sdpa, Sdpa.Config()) == {}
    assert "predicted_error" in measure_error(small, Performer, config).method
