"""Weights are not negative: no output leaves the range of the values that it may read.

Where outputs are linear in the values, unit vectors as values show the weights themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from attention_impls.contract import Context, Heads, Layer
from lra.core.findings import Case
from lra.verify.law import Broken, Law, Untried
from lra.verify.requests import SHORT, masks, requests
from lra.verify.subject import Subject, attend

TOLERANCE = 1e-9


def cases(subject: Subject) -> Iterator[Case]:
    """Every request in which each query has something to attend to."""
    if not subject.is_attention:
        raise Untried("it has no values apart from its inputs")
    return requests(subject, masks=masks(subject, "behind"))


@torch.no_grad()
def check(subject: Subject, case: Case) -> None:
    """Compare each output with the least and the greatest value that it may read; read the
    weights."""
    layer = subject.build(case)
    context = subject.context(case, layer)
    heads = subject.heads(case, layer, context)
    real_BN = torch.ones(case.batch, case.n, dtype=torch.bool, device=heads.v_BGMV.device)
    if context.key_mask_BM is not None:
        real_BN = context.key_mask_BM
    _require_in_range(layer, heads, context, real_BN)
    if subject.card.linear:
        _weights(layer, heads, context, real_BN)


def _require_in_range(layer: Layer, heads: Heads, context: Context, real_BN: Tensor) -> None:
    out_BHNV, v = attend(layer, heads, context), heads.v_BGMV
    values = v.repeat_interleave(out_BHNV.shape[1] // v.shape[1], dim=1)
    padding = ~real_BN[:, None, :, None]
    low, high = (values.masked_fill(padding, end) for end in (torch.inf, -torch.inf))
    if context.causal:
        least, greatest = low.cummin(2).values, high.cummax(2).values
    else:
        least, greatest = low.amin(2, keepdim=True), high.amax(2, keepdim=True)
    outside = torch.maximum(least - out_BHNV, out_BHNV - greatest).masked_fill(padding, 0.0)
    if not float(outside.amax()) <= TOLERANCE:
        raise Broken(f"an output leaves the range of the values by {float(outside.amax()):.1e}")


def _weights(layer: Layer, heads: Heads, context: Context, real_BN: Tensor) -> None:
    """Read the columns of the weights, as many at a time as a value is wide: all for short inputs,
    the first and the last for long ones."""
    v = heads.v_BGMV
    n, width = v.shape[2:]
    starts = range(0, n, width) if n <= SHORT else (0, n - width)
    units = torch.eye(n, dtype=v.dtype, device=v.device)
    query = real_BN[:, None, :, None].to(v.dtype)
    total = torch.zeros_like(query)
    for start in starts:
        columns = units[:, start : start + width]
        columns = torch.nn.functional.pad(columns, (0, width - columns.shape[1])).expand_as(v)
        weights_BHNV = attend(layer, heads._replace(v_BGMV=columns), context) * query
        if not float(weights_BHNV.amin()) >= -TOLERANCE:
            raise Broken(f"a weight is negative: {float(weights_BHNV.amin()):.1e}")
        total = total + weights_BHNV.sum(-1, keepdim=True)
    if n <= SHORT and not float((total - query).abs().amax()) <= TOLERANCE:
        raise Broken("weights do not sum to one")


LAW = Law(
    name="convexity",
    says="weights are not negative: outputs stay in the range of the values",
    claimed=lambda card: card.weights == "convex",
    cases=cases,
    check=check,
)
