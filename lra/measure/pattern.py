"""Attention pattern of a mechanism: which pairs of positions may interact, and how strongly they
do.

Weights are the oracle's; for a mechanism without them (a recurrence, other people's attention) the
dependence is measured by gradients. All in float64 on the CPU, other people's in float32 where they
take nothing else.

B batch   N positions   D model width   H heads   K width of a head
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from attention_impls.contract import Attention, Context, Dims, Layer, MechanismConfig
from lra.core.cells import ShowCell
from lra.core.errors import LraError, UnsupportedError
from lra.core.pattern import Pattern, pack
from lra.core.vectors import read_vectors
from lra.measure.layer import build

ROUNDING = 1e-12
"""Share of the largest dependence below which one counts as none: a convolution by way of Fourier
transforms makes everything depend on everything a little."""

MOST_NUMBERS = 2**14
"""Largest output, positions times features, whose dependence is measured: larger ones take
minutes."""

COPIED = 2**18
"""Largest number of elements of an input and its copies together, where gradients are taken."""


def measure_pattern(
    cell: ShowCell, mechanism: type[Layer], config: MechanismConfig, *, source: str | None
) -> Pattern:
    """Return the pattern of an untrained layer; `source` is the file of the input, if any.

    Raises `UnsupportedError` for a direction that the mechanism does not claim.
    """
    layer = _layer(cell, mechanism, config)
    x_1ND = _input(cell, source)
    context = Context(causal=cell.direction == "causal")
    with torch.no_grad():
        # Requests outside the card are refused here, as everywhere.
        try:
            layer(x_1ND, context)
        except RuntimeError:
            if not mechanism.card.assumed:
                raise
            # Somebody's own code may take nothing but float32.
            layer, x_1ND = layer.float(), x_1ND.float()
            layer(x_1ND, context)
        support_HNN, weights_HNN = _declared(layer, x_1ND, context)
    if support_HNN is not None and weights_HNN is not None:
        return _packed(support_HNN, weights_HNN, "weights", measured=False)
    felt_1NN = dependence(layer, x_1ND, context).unsqueeze(0)
    if support_HNN is None:
        felt = felt_1NN > ROUNDING * felt_1NN.max()
        return _packed(felt, felt_1NN, "dependence", measured=True)
    return _packed(support_HNN, felt_1NN, "dependence", measured=False)


def dependence(layer: Layer, x_1ND: Tensor, context: Context) -> Tensor:
    """Return |d y_i / d x_j|, summed over the features of both, (N, N).

    Copies of the input give the gradient of one output element each: no example of a batch depends
    on another.
    """
    _, n, width = x_1ND.shape
    if n * width > MOST_NUMBERS:
        raise LraError(
            f"it has no weights, and gradients of {n} x {width} numbers would take too long; "
            f"give at most {MOST_NUMBERS:,}, by fewer positions or features"
        )
    felt_NN = x_1ND.new_zeros(n, n)
    for numbers_B in torch.split(torch.arange(n * width), max(1, COPIED // (n * width))):
        x_BND = x_1ND.repeat(len(numbers_B), 1, 1).requires_grad_()
        y_BE = layer(x_BND, context).y_BND.flatten(1)
        if not y_BE.requires_grad:
            raise LraError("its output has no gradient, and it has no oracle: nothing to draw")
        picked = y_BE.gather(1, numbers_B.unsqueeze(1)).sum()
        (gradient_BND,) = torch.autograd.grad(picked, x_BND)
        felt_NN.index_add_(0, numbers_B // width, gradient_BND.abs().sum(-1))
    return felt_NN


def _layer(cell: ShowCell, mechanism: type[Layer], config: MechanismConfig) -> Layer:
    dims = Dims(
        width=cell.width,
        qkv_width=cell.heads * cell.head_width,
        heads=cell.heads,
        max_length=cell.length,
    )
    return build(mechanism, dims, config).double().eval()


def _input(cell: ShowCell, source: str | None) -> Tensor:
    if source is not None:
        return torch.from_numpy(read_vectors(Path(source))).unsqueeze(0)
    generator = torch.Generator().manual_seed(0)
    return torch.randn(1, cell.length, cell.width, generator=generator, dtype=torch.float64)


def _declared(layer: Layer, x_1ND: Tensor, context: Context) -> tuple[Tensor | None, Tensor | None]:
    """Return the support, (1 or H, N, N), and the oracle's weights, (H, N, N); None for each that
    is not there.

    The contract's own support, where the mechanism declares none, says nothing without weights.
    """
    if not isinstance(layer, Attention):
        return None, None
    n = x_1ND.shape[1]
    q_BHNK, k_BGNK, v_BGNV, extra = layer.project(x_1ND, context, None, None)
    weights_HNN = None
    try:
        _, weights_BHNN = layer.oracle(q_BHNK, k_BGNK, v_BGNV, context, **extra)
        weights_HNN = weights_BHNN[0]
    except UnsupportedError:
        if type(layer).support is Attention.support:
            return None, None
    support = layer.support(n, n, context, **extra)
    return support.reshape(-1, n, n), weights_HNN


def _packed(
    support_HNN: Tensor,
    values_HNN: Tensor,
    kind: Literal["weights", "dependence"],
    *,
    measured: bool,
) -> Pattern:
    if not bool(values_HNN.isfinite().all()):
        raise LraError(f"its {kind} are not finite on this input; give smaller numbers")
    return pack(
        support_HNN.numpy(),
        values_HNN.numpy(),
        kind,
        measured=measured,
    )
