"""One efficiency cell: a layer built alone, its peak memory, then its latency.

B batch, N length, D width, H heads, K head width
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attention_impls.contract import Attention, Context, Dims, Layer, MechanismConfig
from lra.core.cells import EfficiencyCell
from lra.core.errors import UnsupportedError
from lra.core.records import Metric
from lra.measure import memory
from lra.measure.control import SIZE, measure_control
from lra.measure.latency import HostStopwatch, Stopwatch, cuda_stopwatch, measure_latency

TINY = 16
"""Length of the call that has libraries set up what they need."""


@dataclass(frozen=True)
class Efficiency:
    """What one efficiency cell found."""

    metrics: dict[str, Metric]
    parameters: int
    method: dict[str, Any]


def measure_efficiency(
    cell: EfficiencyCell,
    mechanism: type[Layer],
    config: MechanismConfig,
    *,
    report: Callable[[str], None] = lambda phase: None,
) -> Efficiency:
    """Measure one mechanism at one length; raises `UnsupportedError` for what it cannot do.

    Memory comes before time, while the process has done little else; the control frames both.
    """
    device = torch.device(cell.device)
    stopwatch: Stopwatch = cuda_stopwatch(device) if device.type == "cuda" else HostStopwatch()
    report("build")
    layer = build_layer(cell, mechanism, config).to(device)
    call, between = prepare_call(cell, layer, cell.length, device)
    report("control")
    control_before = measure_control(device, stopwatch)
    report("memory")
    tiny, untiny = prepare_call(cell, layer, min(TINY, cell.length), device)
    tiny()
    untiny()
    del tiny, untiny
    metrics = memory.measure_memory(call, device, between=between)
    report("time")
    latency = measure_latency(call, stopwatch, seconds=cell.seconds, between=between)
    metrics["latency"] = latency.metric()
    if device.type == "cuda":
        wall = HostStopwatch(synchronize=lambda: torch.cuda.synchronize(device))
        metrics["latency_wall"] = measure_latency(
            call, wall, seconds=cell.seconds, between=between
        ).metric()
    report("control")
    metrics["control_before"] = control_before.metric()
    metrics["control_after"] = measure_control(device, stopwatch).metric()
    return Efficiency(
        metrics=metrics,
        parameters=sum(p.numel() for p in layer.parameters() if p.requires_grad),
        method={
            "timer": stopwatch.name,
            "timed_region": _REGION[cell.mode],
            "warmup_calls": latency.warmup_calls,
            "steady": latency.steady,
            "memory": memory.method(device),
            "control": f"product of two {SIZE[device.type]} x {SIZE[device.type]} float32 matrices",
            "inputs": "N(0, 1), made off the clock",
            "garbage_collection": "before, never inside",
            "compile": "eager",
            "threads": torch.get_num_threads(),
        },
    )


_REGION = {
    "forward": "one forward pass under no_grad, in evaluation mode",
    "train": "one forward and one backward pass down to inputs and parameters, in training mode; "
    "gradients are cleared between calls, off the clock",
}


def build_layer(cell: EfficiencyCell, mechanism: type[Layer], config: MechanismConfig) -> Layer:
    """Return the layer of a cell on the CPU, in the cell's type and mode."""
    if cell.direction == "causal" and mechanism.card.capabilities.causal == "no":
        raise UnsupportedError(f"{cell.mechanism.name} cannot be causal; leave that direction out")
    if cell.direction == "bidirectional" and not mechanism.card.capabilities.bidirectional:
        raise UnsupportedError(f"{cell.mechanism.name} is causal only; leave that direction out")
    width = cell.heads * cell.head_width
    dims = Dims(width=width, qkv_width=width, heads=cell.heads, max_length=cell.length)
    torch.manual_seed(0)
    shared: nn.Module | None = mechanism.build_shared(dims, config)
    layer = mechanism(dims, config, shared=shared, seed=0)
    if shared is not None:
        # As a model does: moved, counted and cleared with the layer, once.
        layer.add_module("shared_by_all", shared)
    return layer.to(getattr(torch, cell.dtype)).train(cell.mode == "train")


def prepare_call(
    cell: EfficiencyCell, layer: Layer, length: int, device: torch.device
) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return the call to measure and what must run between two of them; inputs are made here."""
    forward, inputs = _forward(cell, layer, length, device)
    generator = torch.Generator().manual_seed(1)
    # The output has the shape of the last input: of x, or of the values.
    upstream = _normal(inputs[-1].shape, cell, device, generator)
    if cell.mode == "forward":

        def infer() -> Tensor:
            with torch.no_grad():
                return forward()

        return infer, lambda: None

    for tensor in inputs:
        tensor.requires_grad_()
    leaves = [*inputs, *layer.parameters()]

    def clear() -> None:
        for leaf in leaves:
            leaf.grad = None

    def train() -> None:
        torch.autograd.backward(forward(), upstream)

    return train, clear


def _forward(
    cell: EfficiencyCell, layer: Layer, length: int, device: torch.device
) -> tuple[Callable[[], Tensor], list[Tensor]]:
    """The forward pass at the cell's level, and its inputs."""
    context = Context(causal=cell.direction == "causal")
    generator = torch.Generator().manual_seed(0)
    if cell.level == "layer":
        x_BND = _normal((cell.batch, length, layer.dims.width), cell, device, generator)
        return lambda: layer(x_BND, context).y_BND, [x_BND]
    if not isinstance(layer, Attention):
        raise UnsupportedError(
            f"{cell.mechanism.name} has no queries and keys of its own; measure it at level layer"
        )
    shape = (cell.batch, cell.heads, length, cell.head_width)
    q_BHNK, k_BHNK, v_BHNV = (_normal(shape, cell, device, generator) for _ in range(3))
    attend = layer.attend
    return lambda: attend(q_BHNK, k_BHNK, v_BHNV, context)[0], [q_BHNK, k_BHNK, v_BHNV]


def _normal(
    shape: tuple[int, ...], cell: EfficiencyCell, device: torch.device, generator: torch.Generator
) -> Tensor:
    """N(0, 1): other values, zeros above all, change a processor's power and with it its clock."""
    return torch.randn(shape, generator=generator).to(device, getattr(torch, cell.dtype))
