"""A mechanism declared to be softmax attention is: always, or in the configuration named for it."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from attention_impls._oracle import softmax_oracle
from lra.core.findings import Case
from lra.verify.law import Broken, Law, is_not_empty, require_same
from lra.verify.requests import masks, requests
from lra.verify.subject import Subject, attend

TOLERANCE = 1e-9


def cases(subject: Subject) -> Iterator[Case]:
    """Every request, at lengths with an exact configuration."""
    if all(subject.mechanism.exact_at(n) is None for n in subject.lengths):
        raise Broken(f"claims softmax attention, {subject.card.softmax}, and declares no exact_at")
    for case in requests(subject, masks=masks(subject, "scattered"), positions=("none",)):
        if case.trial == 0 and subject.mechanism.exact_at(case.n) is not None:
            yield case


@torch.no_grad()
def check(subject: Subject, case: Case) -> None:
    """Compare with softmax over all permitted pairs, not with the mechanism's own oracle."""
    config = subject.mechanism.exact_at(case.n)
    layer = subject.build(case, config=config)
    context = subject.context(case, layer)
    heads = subject.heads(case, layer, context)
    q, k, v = heads[:3]
    if q is None or k is None:
        raise Broken("claims softmax attention and has no queries and keys")
    share = q.shape[1] // k.shape[1]
    k_all, v_all = (x.repeat_interleave(share, dim=1) for x in (k, v))
    wanted, _ = softmax_oracle(q, k_all, v_all, context)
    found = attend(layer, heads, context)
    if context.query_mask_BN is not None:
        real = context.query_mask_BN[:, None, :, None]
        found, wanted = found * real, wanted * real
    require_same(found, wanted, "attention against softmax over all permitted pairs", TOLERANCE)


LAW = Law(
    name="exact_softmax",
    says="equals softmax attention over all permitted pairs where declared",
    claimed=lambda card: card.softmax in ("always", "configured"),
    cases=cases,
    check=check,
    takes=lambda case: is_not_empty(case) and case.trial == 0,
)
