"""No output depends on the value of a later position, whatever chose the earlier ones that it
reads."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from lra.core.findings import Case
from lra.verify.law import Law, Untried, require_same
from lra.verify.laws.causality import GROWTH, TOLERANCE
from lra.verify.requests import masks, requests
from lra.verify.subject import Subject, attend


def cases(subject: Subject) -> Iterator[Case]:
    """Every causal request, in float32 too."""
    if not subject.is_attention:
        raise Untried("it has no values apart from its inputs")
    kinds = masks(subject, "scattered")
    return requests(subject, causal=(True,), masks=kinds, dtypes=("float32",))


@torch.no_grad()
def check(subject: Subject, case: Case) -> None:
    """Grow all values after a place: outputs up to it stay."""
    layer = subject.build(case)
    context = subject.context(case, layer)
    heads = subject.heads(case, layer, context)
    out_BHNV = attend(layer, heads, context)
    for last in sorted({0, case.n // 2, case.n - 2} & set(range(case.n - 1))):
        for growth in GROWTH:
            other = heads.v_BGMV.clone()
            other[:, :, last + 1 :] *= growth
            found = attend(layer, heads._replace(v_BGMV=other), context)
            stays = slice(0, last + 1)
            what = f"outputs up to position {last} when later values are multiplied by {growth:g}"
            require_same(
                found[:, :, stays], out_BHNV[:, :, stays], what, subject.allowed(TOLERANCE, case)
            )


LAW = Law(
    name="values_causality",
    says="no output feels a later value",
    claimed=lambda card: card.capabilities.causal != "no",
    cases=cases,
    check=check,
    claim={"causal": "values-only"},
)
