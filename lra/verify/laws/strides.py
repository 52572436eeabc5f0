"""Strides do not matter: inputs that are not contiguous give the same result."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import torch

from attention_impls.contract import Heads
from lra.core.findings import Case
from lra.verify.law import Law, binds_all, require_same
from lra.verify.requests import crossed_requests, masks, requests
from lra.verify.subject import Subject, attend

TOLERANCE = 1e-9


def cases(subject: Subject) -> Iterator[Case]:
    """Every request without a position scheme."""
    yield from requests(subject, masks=masks(subject, "scattered"), positions=("none",))
    if subject.card.capabilities.cross:
        for case in crossed_requests(subject, positions=("none",)):
            yield msgspec.structs.replace(case, training=False)


@torch.no_grad()
def check(subject: Subject, case: Case) -> None:
    """Try transposed inputs and inputs with gaps; behind the projections also queries, keys and
    values."""
    layer = subject.build(case)
    context = subject.context(case, layer)
    x_BND, source_BMD = (None if x is None else x.detach() for x in subject.inputs(case))
    assert x_BND is not None
    wanted = layer(x_BND, context, source_BMD=source_BMD).y_BND
    sources = (None, None) if source_BMD is None else _strided(source_BMD)
    for other, source in zip(_strided(x_BND), sources, strict=True):
        found = layer(other, context, source_BMD=source).y_BND
        require_same(found, wanted, "output of a strided input", subject.allowed(TOLERANCE))
    if not subject.is_attention:
        return
    heads = subject.heads(case, layer, context)
    out = attend(layer, heads, context)
    for way in range(2):
        q, k, v = (None if x is None else _strided(x.detach())[way] for x in heads[:3])
        assert v is not None
        found = attend(layer, Heads(q, k, v, heads.extra), context)
        require_same(
            found, out, "attention of strided queries, keys and values", subject.allowed(TOLERANCE)
        )


def _strided(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    transposed = x.transpose(1, 2).contiguous().transpose(1, 2)
    gapped = torch.stack([x, x + 1], dim=-1)[..., 0]
    return transposed, gapped


LAW = Law(
    name="strides",
    says="inputs that are not contiguous give the same",
    claimed=binds_all,
    cases=cases,
    check=check,
)
