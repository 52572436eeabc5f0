"""Timed calls: a layer or its attention alone, and the work between two calls.

B batch, N length, D width, H heads, K head width
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from attention_impls.contract import Attention, Context, Dims, Layer, MechanismConfig
from lra.core.cells import EfficiencyCell
from lra.core.errors import UnsupportedError
from lra.measure.compiled import as_executed
from lra.measure.layer import build, used_parameters


def refuse_direction(cell: EfficiencyCell, mechanism: type[Layer]) -> None:
    """Raise `UnsupportedError` for a direction that the mechanism lacks."""
    if cell.direction == "causal" and mechanism.card.capabilities.causal == "no":
        # Decoding is causal: whoever asked for the mode has not named a direction.
        what, axis = ("decode", "mode") if cell.mode == "decode" else ("be causal", "direction")
        raise UnsupportedError(f"{cell.mechanism.name} cannot {what}; leave that {axis} out")
    if cell.direction == "bidirectional" and not mechanism.card.capabilities.bidirectional:
        raise UnsupportedError(f"{cell.mechanism.name} is causal only; leave that direction out")


def build_layer(cell: EfficiencyCell, mechanism: type[Layer], config: MechanismConfig) -> Layer:
    """Return the layer of a cell on the CPU, in the cell's dtype and mode."""
    width = cell.heads * cell.head_width
    # Decoding goes one position beyond its context.
    longest = cell.length + (cell.mode == "decode")
    dims = Dims(width=width, qkv_width=width, heads=cell.heads, max_length=longest)
    layer = build(mechanism, dims, config)
    return layer.to(getattr(torch, cell.dtype)).train(cell.mode == "train")


def prepare_call(
    cell: EfficiencyCell, layer: Layer, device: torch.device
) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return the call to measure and the function to run between two calls; inputs are made
    here."""
    forward, inputs = _forward(cell, layer, device)
    generator = torch.Generator(device).manual_seed(1)
    # The output has the shape of the last input: of x, or of the queries.
    upstream = normal(inputs[-1].shape, cell, device, generator)
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


def minimum_bytes(cell: EfficiencyCell, layer: Layer) -> int:
    """Return the bytes that any such call has to move: inputs, parameters and outputs once each,
    and in training their gradients. Parameters count where the projections do."""
    positions = cell.batch * cell.length * cell.head_width
    outputs, inputs, parameters = positions * cell.heads, positions * cell.heads, 0
    if isinstance(layer, Attention) and cell.level == "attention":
        inputs += 2 * positions * layer.kv_heads
    else:
        parameters = sum(parameter.numel() for parameter in used_parameters(layer))
    once = inputs + parameters + outputs
    size: int = getattr(torch, cell.dtype).itemsize
    return once * (2 if cell.mode == "train" else 1) * size


def _forward(
    cell: EfficiencyCell, layer: Layer, device: torch.device
) -> tuple[Callable[[], Tensor], list[Tensor]]:
    """Return the forward pass at the cell's level, and its inputs."""
    context = Context(causal=cell.direction == "causal")
    generator = torch.Generator(device).manual_seed(0)
    if cell.level == "layer":
        x_BND = normal((cell.batch, cell.length, layer.dims.width), cell, device, generator)
        whole = as_executed(cell, layer)
        return lambda: whole(x_BND, context).y_BND, [x_BND]
    if not isinstance(layer, Attention):
        raise UnsupportedError(
            f"{cell.mechanism.name} has no queries and keys of its own; measure it at level layer"
        )
    x_BND = normal((cell.batch, cell.length, layer.dims.width), cell, device, generator)
    with torch.no_grad():
        # Parts of the input that it takes beside queries, keys and values.
        extra = layer.project(x_BND, context, None, None).extra
    sizes, groups = (cell.length, cell.head_width), layer.kv_heads
    q_BHNK, k_BGNK, v_BGNV = (
        normal((cell.batch, heads, *sizes), cell, device, generator)
        for heads in (cell.heads, groups, groups)
    )

    attend = as_executed(cell, layer.attend)
    return (
        lambda: attend(q_BHNK, k_BGNK, v_BGNV, context, **extra)[0],
        [k_BGNK, v_BGNV, q_BHNK],
    )


def normal(
    shape: tuple[int, ...], cell: EfficiencyCell, device: torch.device, generator: torch.Generator
) -> Tensor:
    """Return N(0, 1) numbers: other values, zeros above all, change a processor's power and with it
    its clock.

    Drawn on the device, in thousandths of the time on a GPU.
    """
    drawn = torch.randn(shape, generator=generator, device=generator.device)
    return drawn.to(device, getattr(torch, cell.dtype))
