"""Gradients are those of the function computed: they agree with finite differences, without an
oracle.

Along random directions, of either sign: an error in a gradient must not cancel in a sum, nor be
small beside an absolute tolerance, so the gap is relative to the gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import msgspec
import torch
from torch import Tensor

from lra.core.findings import Case
from lra.verify.law import Broken, Law, Untried, binds_all, gradients
from lra.verify.requests import crossed_requests, masks, requests
from lra.verify.subject import Subject

DIRECTIONS = 3
STEPS = {True: (1e-6, 1e-8), False: (1e-3, 1e-4, 1e-5, 1e-7)}
"""Steps of the finite differences, for ours and for others': float32 inside needs large ones;
kinks, as of a ReLU, and jumps, as of hashed positions, need small ones. An honest gradient agrees
at one of them, a wrong one at none."""
TOLERANCE = {True: 1e-6, False: 1e-2}
"""Tolerance of the gap, relative to the norm of the gradient."""
ROUNDING = 16 * torch.finfo(torch.float64).eps
"""Error of a projection in float64, relative to the size of its terms. Where inputs hardly matter,
as under weights of a single key, it is more than a millionth of their gradient."""


def cases(subject: Subject) -> Iterator[Case]:
    """Every request without a position scheme, to another sequence too."""
    kinds = masks(subject, "behind")
    yield from requests(subject, masks=kinds, positions=("none",), heads=1)
    if subject.card.capabilities.cross:
        for case in crossed_requests(subject, positions=("none",)):
            yield msgspec.structs.replace(case, heads=1)


def check(subject: Subject, case: Case) -> None:
    """Compare the gradients of the input, and of all parameters together, with finite differences
    of a random projection of the output."""
    if subject.precise != torch.float64:
        raise Untried("it takes no float64, which finite differences need")
    layer = subject.build(case)
    context = subject.context(case, layer)
    x_BND, source_BMD = subject.inputs(case)
    read = [x_BND, *([] if source_BMD is None else [source_BMD])]
    leaves = [*read, *(one for one in layer.parameters() if one.requires_grad)]
    generator = torch.Generator().manual_seed(case.seed)

    def normal(like: Tensor) -> Tensor:
        drawn = torch.randn(like.shape, dtype=torch.float64, generator=generator)
        return drawn.to(like.device, like.dtype)

    for _ in range(DIRECTIONS):
        y_BND: Tensor = layer(x_BND, context, source_BMD=source_BMD).y_BND
        upstream = normal(y_BND)
        if not y_BND.requires_grad:
            raise Broken("the output has no gradient")

        def projected(upstream: Tensor = upstream) -> float:
            found_BND = layer(x_BND, context, source_BMD=source_BMD).y_BND
            return float((found_BND * upstream).sum())

        found = gradients(y_BND, leaves, upstream)
        for what, own in (
            ("the input", slice(0, len(read))),
            ("its parameters", slice(len(read), None)),
        ):
            directions = [normal(leaf) for leaf in leaves[own]]
            norm = sum(float(gradient.square().sum()) for gradient in found[own]) ** 0.5
            if math.isnan(norm):
                raise Broken(f"the gradient of {what} is NaN")
            allowed = allowed_gap(subject, norm, y_BND, upstream)
            gaps = []
            for step in STEPS[subject.is_ours]:
                gaps.append(
                    finite_difference_error(projected, leaves[own], found[own], directions, step)
                )
                if gaps[-1] <= allowed:
                    break
            else:
                apart = f"{min(gaps) / norm:.1e} of its norm" if norm else f"{min(gaps):.1e}"
                raise Broken(
                    f"the gradient of {what} is not that of finite differences: along a random "
                    f"direction they are {apart} apart"
                )


def allowed_gap(subject: Subject, norm: float, out: Tensor, upstream: Tensor) -> float:
    """Return the largest gap of an honest gradient with a norm, of a projection of `out`."""
    is_ours = subject.is_ours
    terms = float((out.detach() * upstream).abs().sum())
    return TOLERANCE[is_ours] * norm + ROUNDING * terms / STEPS[is_ours][0]


@torch.no_grad()
def finite_difference_error(
    projected: Callable[[], float],
    leaves: list[Tensor],
    along: Sequence[Tensor],
    directions: list[Tensor],
    step: float,
) -> float:
    """Return the gap between a gradient along a direction and central differences; NaN is within no
    tolerance."""
    slope = sum(float((g * d).sum()) for g, d in zip(along, directions, strict=True))
    start = [leaf.clone() for leaf in leaves]
    ends = []
    for sign in (1, -1):
        for leaf, old, direction in zip(leaves, start, directions, strict=True):
            leaf.copy_(old + sign * step * direction)
        ends.append(projected())
    for leaf, old in zip(leaves, start, strict=True):
        leaf.copy_(old)
    return abs((ends[0] - ends[1]) / (2 * step) - slope)


LAW = Law(
    name="gradcheck",
    says="gradients agree with finite differences",
    claimed=binds_all,
    cases=cases,
    check=check,
)
