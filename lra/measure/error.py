"""One error cell: outputs and gradients of a mechanism against softmax attention in float64.

Both begin with the same queries, keys, values and gradient of the output, rounded to the
mechanism's dtype: the figures hold the error of the mechanism and of its arithmetic, not that of
rounded inputs. A mechanism may make keys of its own and leave pairs out (`Attention.comes_near`);
exact attention is then over these, made anew in float64. Anything else that a mechanism derives
from its input comes from a random one. Parameters are untrained, and no position is padded.

B batch   N length, of queries   M keys   D width   H heads   G heads of keys and values
K head width   V value width
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import torch
from torch import Tensor

from attention_impls._oracle import softmax_oracle
from attention_impls.contract import (
    Attention,
    Context,
    Dims,
    Exact,
    Layer,
    MechanismConfig,
    default_scale,
)
from lra.core.cells import ErrorCell
from lra.core.errors import UnsupportedError
from lra.core.records import Metric
from lra.measure.layer import build

ROWS = 512
"""Queries per block of exact attention: a block of weights at length 4096 is 17 MB, whatever the
number of heads."""


@dataclass(frozen=True)
class Error:
    """Metrics, number of parameters and method of one error cell."""

    metrics: dict[str, Metric]
    parameters: int
    method: dict[str, Any]


class _Answer(NamedTuple):
    """An output, and the gradients for a given gradient of the output."""

    output_BHNV: Tensor
    q_BHNK: Tensor
    k_BGNK: Tensor
    v_BGNV: Tensor


def measure_error(
    cell: ErrorCell,
    mechanism: type[Layer],
    config: MechanismConfig,
    *,
    report: Callable[[str], None] = lambda phase: None,
) -> Error:
    """Return the relative errors of one mechanism on one input, in the Frobenius norm.

    The reference is softmax attention over these queries and keys, or over those that the mechanism
    makes of them (`Attention.comes_near`): Reformer's keys are its queries.

    Raises `UnsupportedError` for a mechanism without queries and keys, for one that does not claim
    to approximate softmax attention, and for a direction that it lacks.
    """
    _refuse(cell, mechanism)
    device, dtype = torch.device(cell.device), getattr(torch, cell.dtype)
    report("build")
    layer = _build(cell, mechanism, config).to(device, dtype)
    context = Context(causal=cell.direction == "causal")
    generator = torch.Generator().manual_seed(cell.seed)

    def normal(*shape: int, scale: float = 1.0) -> Tensor:
        return (scale * torch.randn(shape, generator=generator)).to(device, dtype)

    groups, sizes = layer.kv_heads, (cell.length, cell.head_width)
    q_BHNK = normal(cell.batch, cell.heads, *sizes, scale=cell.input_scale)
    k_BGNK = normal(cell.batch, groups, *sizes, scale=cell.input_scale)
    v_BGNV = normal(cell.batch, groups, *sizes)
    upstream_BHNV = normal(cell.batch, cell.heads, *sizes)
    x_BND = normal(cell.batch, cell.length, layer.dims.width)

    report("mechanism")
    with torch.no_grad():
        extra = layer.project(x_BND, context, None, None).extra
    leaves = [x.requires_grad_() for x in (q_BHNK, k_BGNK, v_BGNV)]
    near = layer.comes_near(q_BHNK, k_BGNK, v_BGNV, context)
    if near is None:
        raise UnsupportedError(
            f"{cell.mechanism.name} does not claim to come near softmax attention; leave it out"
        )
    q, k, v, own = near.heads
    output_BHNV, _ = layer.attend(q, k, v, context, **{**extra, **own})
    gradients = torch.autograd.grad(
        output_BHNV, leaves, upstream_BHNV, allow_unused=True, materialize_grads=True
    )
    found = _Answer(output_BHNV.detach(), *gradients)
    report("exact")
    exact = _exact(layer, q_BHNK, k_BGNK, v_BGNV, upstream_BHNV, context)
    names = ("output_error", "gradient_error_q", "gradient_error_k", "gradient_error_v")
    return Error(
        metrics={
            name: relative_error(one, wanted)
            for name, one, wanted in zip(names, found, exact, strict=True)
        },
        parameters=sum(p.numel() for p in layer.parameters() if p.requires_grad),
        method={
            "exact": "softmax attention in float64, of the inputs as the mechanism's type has them",
            "exact_keys": "of its own" if mechanism.card.softmax == "of its own" else "as given",
            "error": "Frobenius norm of the difference, over that of the exact result",
            "inputs": "N(0, 1), queries and keys times the input scale; untrained parameters",
            "upstream": "N(0, 1)",
            "training_mode": False,
            "threads": torch.get_num_threads(),
            **predicted(mechanism, config),
            **predicted_error(cell, mechanism, config),
        },
    )


def relative_error(found: Tensor, exact: Tensor) -> Metric:
    """Return the norm of the difference over the norm of `exact`; None where that is 0."""
    size = float(exact.double().norm())
    if size == 0.0:
        return Metric(value=None, unit="ratio", why_null="the exact result is zero")
    error = float((found.double() - exact.double()).norm()) / size
    if not torch.isfinite(torch.tensor(error)):
        return Metric(value=None, unit="ratio", why_null=f"it is {error}")
    return Metric(value=error, unit="ratio")


def predicted_error(
    cell: ErrorCell, mechanism: type[Layer], config: MechanismConfig
) -> dict[str, float]:
    """Return the error that theory predicts for a cell's inputs; nothing where there is no
    prediction."""
    causal = cell.direction == "causal"
    found = mechanism.predicted_error(
        config, head_width=cell.head_width, input_scale=cell.input_scale, causal=causal
    )
    return {} if found is None else {"predicted_error": found}


def predicted(mechanism: type[Layer], config: MechanismConfig) -> dict[str, Any]:
    """Return the declared exponent of the error's decrease, and the settings that are its budget;
    nothing where no law is declared, or `config` differs from the law's in other settings.

    The exponent is half of the one that a mechanism declares, for the mean squared error.
    """
    law = mechanism.convergence()
    if law is None:
        return {}
    configs = [one for _, one in law.budgets]
    budget = [
        name
        for name in config.__struct_fields__
        if any(getattr(one, name) != getattr(configs[0], name) for one in configs)
    ]
    others = set(config.__struct_fields__) - set(budget)
    if any(getattr(config, name) != getattr(configs[0], name) for name in others):
        return {}
    return {"predicted_rate": law.rate / 2, "predicted_budget": budget}


def _refuse(cell: ErrorCell, mechanism: type[Layer]) -> None:
    name, card = cell.mechanism.name, mechanism.card
    if not issubclass(mechanism, Attention):
        raise UnsupportedError(
            f"{name} has no queries and keys, so it has no error against softmax; leave it out"
        )
    if cell.direction == "causal" and card.capabilities.causal == "no":
        raise UnsupportedError(f"{name} cannot be causal; leave that direction out")
    if cell.direction == "bidirectional" and not card.capabilities.bidirectional:
        raise UnsupportedError(f"{name} is causal only; leave that direction out")


def _build(cell: ErrorCell, mechanism: type[Layer], config: MechanismConfig) -> Attention:
    """Return the layer on the CPU, in evaluation mode; the cell's seed draws all that is random in
    it."""
    width = cell.heads * cell.head_width
    dims = Dims(width=width, qkv_width=width, heads=cell.heads, max_length=cell.length)
    layer = build(mechanism, dims, config, seed=cell.seed)
    assert isinstance(layer, Attention), "refused before"
    return layer.eval()


def _exact(
    layer: Attention,
    q_BHNK: Tensor,
    k_BGNK: Tensor,
    v_BGNV: Tensor,
    upstream_BHNV: Tensor,
    context: Context,
) -> _Answer:
    """Return the softmax attention that a layer approximates, and its gradients, in float64."""
    leaves = [x.detach().double().requires_grad_() for x in (q_BHNK, k_BGNK, v_BGNV)]
    near = layer.comes_near(leaves[0], leaves[1], leaves[2], context)
    assert near is not None, "refused before"
    found = _softmax(near, upstream_BHNV.double(), context)
    made = [x for x in near.heads[:3] if x is not None]
    gradients = torch.autograd.grad(
        made, leaves, found[1:], allow_unused=True, materialize_grads=True
    )
    return _Answer(found.output_BHNV, *gradients)


def _softmax(near: Exact, upstream_BHNV: Tensor, context: Context) -> _Answer:
    """Compute it example by example, head by head, `ROWS` queries at a time, so that memory does
    not grow with the square of the length.

    A causal block gets the keys up to its own last query, since the oracle aligns the last query
    with the last key.
    """
    q, k, v = (x.detach() for x in near.heads[:3] if x is not None)
    found = _Answer(torch.empty_like(upstream_BHNV), *(torch.zeros_like(x) for x in (q, k, v)))
    batch, heads, n, width = q.shape
    served = heads // k.shape[1]
    for b, h, start in product(range(batch), range(heads), range(0, n, ROWS)):
        stop = min(start + ROWS, n)
        rows = (slice(b, b + 1), slice(h, h + 1), slice(start, stop))
        group = slice(h // served, h // served + 1)
        keys = (slice(b, b + 1), group, slice(0, stop if context.causal else n))
        leaves = [x.clone().requires_grad_() for x in (q[rows], k[keys], v[keys])]
        scaled = leaves[0] * (near.factor / default_scale(width))
        pattern = None if near.pattern_NM is None else near.pattern_NM[rows[2], keys[2]]
        output, _ = softmax_oracle(scaled, leaves[1], leaves[2], context, pattern)
        gradients = torch.autograd.grad(output, leaves, upstream_BHNV[rows])
        found.output_BHNV[rows] = output.detach()
        found.q_BHNK[rows] = gradients[0]
        found.k_BGNK[keys] += gradients[1]
        found.v_BGNV[keys] += gradients[2]
    return found
