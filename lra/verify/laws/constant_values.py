"""Weights sum to one: where all values are the same, so is the output."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from lra.core.findings import Case
from lra.verify.law import Law, Untried, require_same
from lra.verify.requests import masks, requests
from lra.verify.subject import Subject, attend

TOLERANCE = 1e-9


def cases(subject: Subject) -> Iterator[Case]:
    """Every request in which each query has something to attend to."""
    if not subject.is_attention:
        raise Untried("it has no values apart from its inputs")
    return requests(subject, masks=masks(subject, "behind"))


@torch.no_grad()
def check(subject: Subject, case: Case) -> None:
    """Give every real position one value, and padding another."""
    layer = subject.build(case)
    context = subject.context(case, layer)
    heads = subject.heads(case, layer, context)
    v = heads.v_BGMV
    constant = v[:, :, :1].expand_as(v).clone()
    if context.key_mask_BM is not None:
        constant = constant.masked_fill(~context.key_mask_BM[:, None, :, None], 5.0)
    out_BHNV = attend(layer, heads._replace(v_BGMV=constant), context)
    share = out_BHNV.shape[1] // v.shape[1]
    wanted = v[:, :, :1].repeat_interleave(share, dim=1).expand_as(out_BHNV)
    if context.query_mask_BN is not None:
        real = context.query_mask_BN[:, None, :, None]
        out_BHNV, wanted = out_BHNV * real, wanted * real
    require_same(out_BHNV, wanted, "attention over one value for all", TOLERANCE)


LAW = Law(
    name="constant_values",
    says="weights sum to one: equal values come out as they are",
    claimed=lambda card: card.weights != "free",
    cases=cases,
    check=check,
)
