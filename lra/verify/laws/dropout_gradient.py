"""Dropout is the same draw in the forward pass and in the backward pass.

Under one seed a pass is an ordinary function, so that its gradient has to agree with finite
differences; others draw in between, as the layers above do. In float32 and in half precision,
where kernels differ and finite differences say nothing, attention over values is a matrix A by the
draw: u A w is the same from either side.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from attention_impls.contract import Context, Heads, Layer
from lra.core.findings import Case, DtypeName
from lra.verify.dropping import DRAW, OTHER, RATE, drawn, dropping, require_dropout
from lra.verify.law import Broken, Law, binds_all, gradients, is_not_empty
from lra.verify.laws.gradcheck import STEPS, allowed_gap, finite_difference_error
from lra.verify.mixed_requests import ROUNDED, biased, differentiated, every_request
from lra.verify.requests import directions, half_dtypes
from lra.verify.rotation import spread
from lra.verify.subject import Subject, attend, seed_torch

COUNT = 12
"""Number of cases of the short form."""
LENGTHS = (2, 5, 16, 37)
APART: dict[DtypeName, float] = {"float32": ROUNDED, "bfloat16": 8e-3, "float16": 1e-3}
"""Largest difference of the two sides, relative to their sizes: one rounding of all in half
precision."""


def cases(subject: Subject) -> Iterator[Case]:
    """Every kind of request in training."""
    require_dropout(subject, directions(subject)[0])
    own = every_request(subject, LENGTHS, training=True, heads=2)
    yield from spread(own, COUNT, subject, "dropout_gradient")


def check(subject: Subject, case: Case) -> None:
    """Compare gradients of one draw with differences of it; turn attention around."""
    if subject.precise == torch.float64:
        _differences(subject, case)
    if is_turned(subject, case):
        for dtype in ("float32", *half_dtypes(subject)):
            _turned_around(subject, case, dtype)


def is_turned(subject: Subject, case: Case) -> bool:
    """Return whether attention is a matrix over the values, to be tried in other types."""
    return subject.is_attention and subject.card.linear and case.m is None


def _differences(subject: Subject, case: Case) -> None:
    layer = dropping(subject, case)
    x_BND, source_BMD = subject.inputs(case)
    context = biased(subject.context(case, layer), case, layer, subject)
    leaves = differentiated(layer, context, x_BND, source_BMD)
    generator = torch.Generator().manual_seed(case.seed)
    y_BND = drawn(layer, x_BND, context, source_BMD)
    upstream = _normal(y_BND, generator)
    seed_torch(OTHER)
    found = gradients(y_BND, leaves.values(), upstream)
    along = [_normal(leaf, generator) for leaf in leaves.values()]
    norm = sum(float(gradient.square().sum()) for gradient in found) ** 0.5

    def projected() -> float:
        return float((drawn(layer, x_BND, context, source_BMD) * upstream).sum())

    gaps = []
    for step in STEPS[subject.is_ours]:
        gaps.append(finite_difference_error(projected, list(leaves.values()), found, along, step))
        if gaps[-1] <= allowed_gap(subject, norm, y_BND, upstream):
            return
    raise Broken(
        "the gradient under dropout is not that of the outputs drawn: along a random direction "
        f"they are {min(gaps) / max(norm, 1e-30):.1e} of its norm apart"
    )


def _turned_around(subject: Subject, case: Case, dtype: DtypeName) -> None:
    layer = dropping(subject, case, dtype=getattr(torch, dtype))
    context = subject.context(case, layer)
    heads = subject.heads(case, layer, context)
    generator = torch.Generator().manual_seed(case.seed + 1)
    out_BHNV = _attended(layer, heads, context)
    if not out_BHNV.requires_grad:
        return
    u, w = _normal(out_BHNV, generator), _normal(heads.v_BGMV, generator)
    seed_torch(OTHER)
    (back,) = gradients(out_BHNV, [heads.v_BGMV], u)
    over_w = _attended(layer, heads._replace(v_BGMV=w.clone().requires_grad_()), context).detach()
    one, other = float((back.double() * w).sum()), float((over_w.double() * u).sum())
    size = float(back.double().norm() * w.double().norm())
    allowed = APART[dtype]
    if not abs(one - other) <= allowed * max(size, 1.0):
        raise Broken(
            f"in {dtype}, the gradient of the values under dropout belongs to another draw than "
            f"the outputs: off by {abs(one - other) / max(size, 1.0):.1e}, allowed {allowed:.0e}"
        )


def _attended(layer: Layer, heads: Heads, context: Context) -> Tensor:
    seed_torch(DRAW)
    return attend(layer, heads, context)


def _normal(like: Tensor, generator: torch.Generator) -> Tensor:
    numbers = torch.randn(like.shape, dtype=torch.float64, generator=generator)
    return numbers.to(like.device, like.dtype)


LAW = Law(
    name="dropout_gradient",
    says="gradients are those of the very weights that were kept",
    claimed=binds_all,
    cases=cases,
    check=check,
    takes=lambda case: is_not_empty(case) and case.training,
    dropout=RATE,
    in_single=is_turned,
)
