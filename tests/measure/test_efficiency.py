"""Efficiency cells: what is built, what is called, what is cleared, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from cells import toy_card, toy_cell
from torch import Tensor, nn

from attention_impls.contract import Attention, Context, Dims, Layer, MechanismConfig, Out
from lra.core import catalogue, loading
from lra.core.cells import EfficiencyCell
from lra.core.errors import UnsupportedError
from lra.core.protocol import Mechanism
from lra.measure import control, efficiency
from lra.measure.calls import build_layer, minimum_bytes, prepare_call
from lra.measure.efficiency import measure_efficiency
from lra.measure.latency import FLOOR, HostStopwatch
from lra.measure.operations import count_operations, declared_operations

pytestmark = pytest.mark.usefixtures("small_control")

CPU = torch.device("cpu")


class Mean(Attention):
    """Attends to everything alike; remembers what it was given."""

    card = toy_card(bidirectional=True)
    seen: list[tuple[Tensor, Tensor, Tensor, Context, bool, bool]]

    def attend(
        self, q_BHNK: Tensor, k_BHMK: Tensor, v_BHMV: Tensor, context: Context, state: Any = None
    ) -> tuple[Tensor, Any]:
        self.seen = [
            *getattr(self, "seen", []),
            (q_BHNK, k_BHMK, v_BHMV, context, self.training, torch.is_grad_enabled()),
        ]
        return v_BHMV.mean(dim=2, keepdim=True) + 0.0 * (q_BHNK + k_BHMK), None

    def oracle(
        self, q_BHNK: Tensor, k_BHMK: Tensor, v_BHMV: Tensor, context: Context
    ) -> tuple[Tensor, Tensor]:
        raise NotImplementedError


class Shared(Mean):
    """Scales by a parameter that all layers share."""

    @classmethod
    def build_shared(cls, dims: Dims, config: MechanismConfig) -> nn.Module:
        return nn.Linear(3, 1, bias=False)

    def __init__(self, *arguments: Any, shared: nn.Module | None = None, **rest: Any) -> None:
        super().__init__(*arguments, shared=shared, **rest)
        assert shared is not None
        # Kept out of the layer's own parameters: the model counts it.
        self.table = [shared]

    def attend(
        self, q_BHNK: Tensor, k_BHMK: Tensor, v_BHMV: Tensor, context: Context, state: Any = None
    ) -> tuple[Tensor, Any]:
        out_BHNV, state = super().attend(q_BHNK, k_BHMK, v_BHMV, context, state)
        return out_BHNV * self.table[0].weight.sum(), state


class CausalOnly(Mean):
    card = toy_card(causal="strict")


class NoHeads(Layer):
    card = toy_card(bidirectional=True)

    def forward(self, x_BND: Tensor, context: Context, **rest: Any) -> Out:
        return Out(x_BND)


def cell(**changes: Any) -> EfficiencyCell:
    return toy_cell(**{"mechanism": Mechanism(name="mean"), "batch": 2, **changes})


def call_once(kind: type[Layer], wanted: EfficiencyCell) -> Layer:
    layer = build_layer(wanted, kind, kind.Config())
    call, _ = prepare_call(wanted, layer, CPU)
    call()
    return layer


def test_all_metrics_and_the_method_are_there() -> None:
    phases: list[str] = []
    found = measure_efficiency(cell(), Mean, Mean.Config(), report=phases.append)
    assert set(found.metrics) == {
        "first_call",
        "latency",
        "peak_resident_bytes",
        "peak_allocated_bytes",
        "peak_reserved_bytes",
        "peak_device_bytes",
        "peak_tensor_bytes",
        "operations",
        "declared_operations",
        "minimum_bytes",
        "energy",
        "energy_seconds",
        "idle_power",
        "control_before",
        "control_after",
    }
    for name in ("latency", "control_before", "control_after"):
        assert len(found.metrics[name].samples) >= FLOOR
    assert found.parameters == 4 * (8 * 8 + 8)
    assert "no_grad" in found.method["timed_region"]
    assert found.method["threads"] == torch.get_num_threads()
    # x and y, 2 x 24 x 8 each, and the four projections with biases, in float32.
    assert found.metrics["minimum_bytes"].value == 4 * (2 * 2 * 24 * 8 + 4 * (8 * 8 + 8))
    trained = measure_efficiency(cell(mode="train", level="attention"), Mean, Mean.Config())
    assert trained.metrics["minimum_bytes"].value == 2 * 4 * (4 * 2 * 24 * 8)
    energy = found.metrics["energy"]
    assert energy.value is None and "CPU" in str(energy.why_null)
    # Memory before time, each in a pass of its own, the control around time alone; what disturbs
    # others comes last.
    assert phases == [
        "build", "first call", "memory", "control", "time", "control", "energy", "operations",
    ]  # fmt: skip


def test_counting_that_fails_loses_no_figure_but_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(call: object, between: object) -> int:
        raise AssertionError("no formula")

    monkeypatch.setattr(efficiency, "count_operations", refuses)
    metrics = measure_efficiency(cell(), Mean, Mean.Config()).metrics
    assert metrics["operations"].value is None
    assert "AssertionError" in str(metrics["operations"].why_null)
    assert metrics["latency"].value


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_forward_is_evaluation_without_gradients_on_normal_inputs(dtype: Any) -> None:
    layer = call_once(Mean, cell(level="attention", length=2000, dtype=dtype))
    assert isinstance(layer, Mean)
    ((q, k, v, context, training, with_gradients),) = layer.seen
    assert not training and not with_gradients and not context.causal
    for tensor in (q, k, v):
        assert tensor.dtype is getattr(torch, dtype)
        assert tuple(tensor.shape) == (2, 2, 2000, 4)
        assert abs(tensor.float().mean()) < 0.05
        assert abs(tensor.float().std() - 1.0) < 0.05
    assert not torch.equal(q, k) and not torch.equal(k, v)


def test_train_fills_gradients_and_clears_them_between() -> None:
    wanted = cell(mode="train")
    layer = build_layer(wanted, Mean, Mean.Config())
    assert isinstance(layer, Mean)
    call, between = prepare_call(wanted, layer, CPU)
    call()
    *_, training, with_gradients = layer.seen[-1]
    assert training and with_gradients
    first = {name: parameter.grad for name, parameter in layer.named_parameters()}
    assert all(gradient is not None for gradient in first.values())
    between()
    assert all(parameter.grad is None for parameter in layer.parameters())
    call()
    for name, parameter in layer.named_parameters():
        torch.testing.assert_close(parameter.grad, first[name])


def test_train_at_the_level_of_attention_goes_down_to_queries_keys_and_values() -> None:
    wanted = cell(mode="train", level="attention")
    layer = build_layer(wanted, Mean, Mean.Config())
    assert isinstance(layer, Mean)
    call, between = prepare_call(wanted, layer, CPU)
    call()
    inputs = layer.seen[-1][:3]
    assert all(tensor.grad is not None for tensor in inputs)
    between()
    assert all(tensor.grad is None for tensor in inputs)


def test_parameters_that_layers_share_are_counted_and_cleared_with_the_layer() -> None:
    wanted = cell(mode="train", dtype="bfloat16")
    layer = build_layer(wanted, Shared, Shared.Config())
    assert isinstance(layer, Shared)
    weight = layer.table[0].weight
    assert weight.dtype is torch.bfloat16
    call, between = prepare_call(wanted, layer, CPU)
    call()
    assert weight.grad is not None
    between()
    assert weight.grad is None
    assert sum(p.numel() for p in layer.parameters()) == 4 * (8 * 8 + 8) + 3


def test_a_direction_that_the_card_does_not_claim_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"mean.*\bcausal\b"):
        measure_efficiency(cell(direction="causal"), Mean, Mean.Config())
    with pytest.raises(UnsupportedError, match=r"\bcausal\b"):
        measure_efficiency(cell(), CausalOnly, CausalOnly.Config())
    causal = call_once(CausalOnly, cell(direction="causal"))
    assert isinstance(causal, CausalOnly) and causal.seen[0][3].causal


def test_the_level_of_attention_needs_queries_and_keys() -> None:
    with pytest.raises(UnsupportedError, match="level layer"):
        call_once(NoHeads, cell(level="attention"))
    call_once(NoHeads, cell())


def test_the_control_is_a_product_of_the_stated_size(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[tuple[int, ...]] = []
    product = torch.mm

    def watched(left: Tensor, right: Tensor, *, out: Tensor) -> Tensor:
        sizes.extend((tuple(left.shape), tuple(right.shape)))
        return product(left, right, out=out)

    monkeypatch.setattr(torch, "mm", watched)
    found = control.measure_control(CPU, HostStopwatch())
    assert set(sizes) == {(16, 16)}
    assert len(found.seconds) == FLOOR


@pytest.mark.parametrize("mode", ["forward", "train"])
@pytest.mark.parametrize("name", sorted(catalogue.names("mechanism")))
def test_attention_alone_is_that_of_the_mechanism_itself(name: str, mode: Any) -> None:
    """Arguments beside queries, keys and values are there, and its own heads of keys."""
    kind = loading.load(catalogue.find("mechanism", name))
    wanted = cell(level="attention", length=40, heads=4, mode=mode, batch=2)
    layer = build_layer(wanted, kind, kind.Config())
    if not isinstance(layer, Attention):
        with pytest.raises(UnsupportedError, match="level layer"):
            prepare_call(wanted, layer, CPU)
        return
    call, between = prepare_call(wanted, layer, CPU)
    counted = count_operations(call, between=between)
    moved = 2 * 40 * 4 * (4 + 2 * layer.kv_heads + 4) * 4
    assert minimum_bytes(wanted, layer) == moved * (2 if mode == "train" else 1)
    if mode == "forward":
        # Some of a layer's operations stand beside its attention: networks, projections of its own.
        assert counted <= 2 * layer.operations(40)
    if mode == "forward" and name in ("full", "sdpa", "multi_query", "linear", "sliding_window"):
        assert counted == 2 * (layer.operations(40) - layer.projection_operations(40))


@pytest.mark.parametrize("changes", [{}, {"direction": "causal"}, {"batch": 3}])
def test_declared_operations_are_those_of_the_whole_batch(changes: dict[str, Any]) -> None:
    kind = loading.load(catalogue.find("mechanism", "full"))
    found = measure_efficiency(cell(**changes), kind, kind.Config()).metrics
    assert found["declared_operations"].value == found["operations"].value != 0.0


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"mode": "train"}, "mode train"),
        ({"mode": "decode", "direction": "causal"}, "mode decode"),
        ({"level": "attention"}, "level attention"),
        ({"dtype": "bfloat16"}, "bfloat16"),
    ],
)
def test_what_is_not_declared_is_null_with_the_reason(changes: dict[str, Any], why: str) -> None:
    kind = loading.load(catalogue.find("mechanism", "full"))
    layer = build_layer(cell(**changes), kind, kind.Config())
    found = declared_operations(cell(**changes), layer)
    assert found.value is None and why in str(found.why_null)
    silent = declared_operations(cell(), build_layer(cell(), NoHeads, NoHeads.Config()))
    assert silent.value is None and "declares no operations" in str(silent.why_null)
