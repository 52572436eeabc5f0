"""Queries may read another sequence, shorter or longer; each stands at its place in it.

The oracle-free half: a part of the source, asked as queries, sees the source as the whole does.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from lra.core.findings import Case
from lra.verify.law import Law, same
from lra.verify.laws import oracle
from lra.verify.requests import crossings, masks, schemes
from lra.verify.subject import Subject

SIZES = ((1, 2), (2, 1), (5, 9), (9, 5), (1, 37), (37, 1), (30, 41))


def cases(subject: Subject) -> Iterator[Case]:
    """Fewer queries than keys, and more."""
    for n, m in SIZES:
        for causal, mask, scheme in product(
            crossings(subject), masks(subject, "scattered"), schemes(subject)
        ):
            yield Case(n=n, m=m, causal=causal, mask=mask, position=scheme)


def check(subject: Subject, case: Case) -> None:
    """Compare with the oracle, where there is one, and a part of the source with the whole."""
    if subject.has_oracle:
        oracle.check(subject, case)
    assert case.m is not None
    if case.n > case.m:
        return
    layer = subject.build(case)
    source_BMD = subject.inputs(case)[1]
    assert source_BMD is not None
    context = subject.context(case, layer)
    # Causal queries stand at the end of the keys, others at their beginning.
    part = slice(case.m - case.n, case.m) if case.causal else slice(0, case.n)
    found = layer(source_BMD[:, part], context, source_BMD=source_BMD).y_BND
    wanted = layer(source_BMD, context, source_BMD=source_BMD).y_BND[:, part]
    same(
        found,
        wanted,
        "a part of the source as queries, against the whole",
        subject.allowed(oracle.OUTPUT),
    )


LAW = Law(
    name="cross",
    says="queries read another sequence of any length, each from its place in it",
    claimed=lambda card: card.capabilities.cross,
    cases=cases,
    check=check,
    claim={"cross": True},
)
