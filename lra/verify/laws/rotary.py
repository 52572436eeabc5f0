"""Rotary positions are honoured: the oracle's result, from queries and keys that the kit turned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import torch

from attention_impls.contract import Attention, merge_heads, zero_padding
from lra.core.findings import Case
from lra.verify.law import Law, same
from lra.verify.laws import oracle
from lra.verify.requests import masks, requests
from lra.verify.subject import Subject


def cases(subject: Subject) -> Iterator[Case]:
    """Every request under rotary positions."""
    return requests(subject, masks=masks(subject, "scattered"), positions=("rope",))


def check(subject: Subject, case: Case) -> None:
    """Compare with the oracle, and with its result on heads that were projected without a position
    and turned here: a projection that forgets to turn is shared by both."""
    oracle.check(subject, case)
    if not subject.is_attention:
        return
    layer = cast(Attention, subject.build(case))
    context = subject.context(case, layer)
    assert context.position is not None
    x_BND = subject.inputs(case)[0].detach()
    still = replace(context, position=None)
    q, k, v, extra = subject.heads(case, layer, still)
    if q is None or k is None:
        return
    places_N = torch.arange(case.n, device=x_BND.device)
    q, k = (context.position.rotate(x, places_N) for x in (q, k))
    out_BHNV, _ = layer.oracle(q, k, v, still, **extra)
    wanted = zero_padding(layer.output(merge_heads(out_BHNV.to(x_BND))), context.query_mask_BN)
    found = layer(x_BND, context).y_BND
    same(found, wanted, "output against the oracle of heads turned by the kit", oracle.OUTPUT)


LAW = Law(
    name="rotary",
    says="queries and keys turned by their positions give the oracle's result",
    claimed=lambda card: card.capabilities.rotary,
    cases=cases,
    check=check,
    oracle=True,
)
