"""Attention is linear in the values: weights do not depend on them."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from lra.core.findings import Case
from lra.verify.law import Law, Untried, require_same
from lra.verify.requests import masks, requests
from lra.verify.subject import Subject, attend

TOLERANCE = 1e-9


def cases(subject: Subject) -> Iterator[Case]:
    """Every request."""
    if not subject.is_attention:
        raise Untried("it has no values apart from its inputs")
    return requests(subject, masks=masks(subject, "scattered"))


@torch.no_grad()
def check(subject: Subject, case: Case) -> None:
    """Check that attention over 3 v - 2 w is three times that over v less two times that over w."""
    layer = subject.build(case)
    context = subject.context(case, layer)
    heads = subject.heads(case, layer, context)
    v = heads.v_BGMV
    generator = torch.Generator().manual_seed(case.seed + 7)
    w = torch.randn(v.shape, generator=generator, dtype=torch.float64).to(v)
    over_v, over_w, over_both = (
        attend(layer, heads._replace(v_BGMV=x), context) for x in (v, w, 3 * v - 2 * w)
    )
    require_same(over_both, 3 * over_v - 2 * over_w, "attention over 3 v - 2 w", TOLERANCE)


LAW = Law(
    name="linearity",
    says="attention is linear in the values",
    claimed=lambda card: card.linear,
    cases=cases,
    check=check,
)
