"""Queries may read another sequence, shorter or longer; each has its place in it.

Without an oracle: some of the queries, asked alone, see the source as they do among the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, product

import msgspec

from lra.core.findings import Case
from lra.verify.law import Law, require_same
from lra.verify.laws import oracle
from lra.verify.requests import cross_directions, masks, other_dtypes, position_schemes
from lra.verify.subject import Subject

SIZES = ((1, 2), (2, 1), (5, 9), (9, 5), (1, 37), (37, 1), (30, 41))

TYPED = ((5, 9), (9, 5))
"""Sizes tried in another type too."""

FAR_SIZES = ((3, 301), (601, 2), (17, 333), (2, 1031))
"""Sizes tried with one request each."""


def cases(subject: Subject) -> Iterator[Case]:
    """Fewer queries than keys, and more; all configurations in turn, half of it in training."""
    trials, types = cycle(range(len(subject.configs))), cycle(other_dtypes(subject))
    ways = list(
        product(cross_directions(subject), masks(subject, "scattered"), position_schemes(subject))
    )
    for turn, (n, m) in enumerate(SIZES):
        for place, (causal, mask, scheme) in enumerate(ways):
            trains = subject.trains_quietly and (place + turn) % 2 == 1
            plain = Case(n=n, m=m, causal=causal, mask=mask, position=scheme, training=trains)
            yield msgspec.structs.replace(plain, trial=next(trials))
            if (n, m) in TYPED:
                yield msgspec.structs.replace(plain, trial=next(trials), dtype=next(types))
    for (n, m), (causal, mask, scheme) in zip(FAR_SIZES, cycle(ways), strict=False):
        yield Case(n=n, m=m, causal=causal, mask=mask, position=scheme)


def check(subject: Subject, case: Case) -> None:
    """Compare with the oracle, where there is one, and a part of the queries with all of them."""
    if subject.has_oracle:
        oracle.check(subject, case)
    if subject.mechanism.mixes_queries:
        return
    assert case.m is not None
    layer = subject.build(case)
    x_BND, source_BMD = subject.inputs(case)
    assert source_BMD is not None
    context = subject.context(case, layer)
    # As many queries as keys, and more where the case has more.
    all_BND = x_BND if case.n > case.m else source_BMD
    most, some = all_BND.shape[1], min(case.n, case.m)
    # Causal queries are aligned with the end of the keys, others with their beginning.
    part = slice(most - some, most) if case.causal else slice(0, some)
    found = layer(all_BND[:, part], context, source_BMD=source_BMD).y_BND
    wanted = layer(all_BND, context, source_BMD=source_BMD).y_BND[:, part]
    what = "some of the queries, against all"
    require_same(found, wanted, what, subject.allowed(oracle.OUTPUT, case))


LAW = Law(
    name="cross",
    says="queries read another sequence of any length, each from its place in it",
    claimed=lambda card: card.capabilities.cross,
    cases=cases,
    check=check,
    claim={"cross": True},
)
