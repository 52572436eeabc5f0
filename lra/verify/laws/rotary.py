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
from lra.verify.requests import crossed_requests, masks, other_dtypes, requests
from lra.verify.subject import Subject, attend


def cases(subject: Subject) -> Iterator[Case]:
    """Every request under rotary positions, in every type, to another sequence too."""
    kinds, dtypes = masks(subject, "scattered"), other_dtypes(subject)
    yield from requests(subject, masks=kinds, positions=("rope",), dtypes=dtypes, far=True)
    if subject.card.capabilities.cross:
        yield from crossed_requests(subject, positions=("rope",))


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
    x_BND, source_BMD = subject.inputs(case)
    still = replace(context, position=None)
    heads = subject.heads(case, layer, still)
    if heads.q_BHNK is None or heads.k_BGMK is None:
        return
    m = case.n if case.m is None else case.m
    # The last query stands beside the last key where it may not see beyond.
    rows_N = torch.arange(case.n, device=x_BND.device) + (m - case.n) * case.causal
    q = context.position.rotate(heads.q_BHNK, rows_N)
    k = context.position.rotate(heads.k_BGMK, torch.arange(m, device=x_BND.device))
    if subject.has_oracle:
        out_BHNV, _ = layer.oracle(q, k, heads.v_BGMV, still, **heads.extra)
    else:
        out_BHNV = attend(layer, heads._replace(q_BHNK=q, k_BGMK=k), still)
    wanted = zero_padding(layer.output(merge_heads(out_BHNV.to(x_BND))), context.query_mask_BN)
    found = layer(x_BND, context, source_BMD=source_BMD).y_BND
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
