"""Rotary positions are honoured: the result is that of queries and keys rotated by the kit.

Where there is an oracle, it gives that result; a core of somebody else's gives it by itself,
without positions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import torch

from attention_impls.contract import Attention, merge_heads, zero_padding
from lra.core.findings import Case
from lra.verify.law import Law, require_close, require_same
from lra.verify.laws import oracle
from lra.verify.requests import masks, other_dtypes, requests
from lra.verify.subject import Subject, attend


def cases(subject: Subject) -> Iterator[Case]:
    """Every request under rotary positions, in every type."""
    kinds, dtypes = masks(subject, "scattered"), other_dtypes(subject)
    return requests(subject, masks=kinds, positions=("rope",), dtypes=dtypes, far=True)


def check(subject: Subject, case: Case) -> None:
    """Compare with the oracle, where there is one, and with the result on heads that were projected
    without a position and rotated here: layer and oracle share a projection that forgets to
    rotate."""
    if subject.has_oracle:
        oracle.check(subject, case)
    if not subject.is_attention:
        return
    layer = cast(Attention, subject.build(case))
    context = subject.context(case, layer)
    assert context.position is not None
    x_BND = subject.inputs(case)[0].detach()
    still = replace(context, position=None)
    heads = subject.heads(case, layer, still)
    if heads.q_BHNK is None or heads.k_BGMK is None:
        return
    places_N = torch.arange(case.n, device=x_BND.device)
    q, k = (context.position.rotate(x, places_N) for x in (heads.q_BHNK, heads.k_BGMK))
    if subject.has_oracle:
        out_BHNV, _ = layer.oracle(q, k, heads.v_BGMV, still, **heads.extra)
    else:
        out_BHNV = attend(layer, heads._replace(q_BHNK=q, k_BGMK=k), still)
    wanted = zero_padding(layer.output(merge_heads(out_BHNV.to(x_BND))), context.query_mask_BN)
    found = layer(x_BND, context).y_BND
    what = "output against that of queries and keys turned by the kit"
    if case.dtype in oracle.HALF:
        require_close(found, wanted, what, oracle.HALF[case.dtype])
    else:
        require_same(found, wanted, what, subject.allowed(oracle.OUTPUT, case))


LAW = Law(
    name="rotary",
    says="rotary positions turn queries and keys, and do nothing else",
    claimed=lambda card: card.capabilities.rotary,
    cases=cases,
    check=check,
)
