"""Extent of what a law was tried on."""

from __future__ import annotations

from collections.abc import Sequence

from lra.core.findings import Case, Tried
from lra.verify.dropping import has_dropout
from lra.verify.law import Law
from lra.verify.subject import Subject


def extent(law: Law, subject: Subject, cases: Sequence[Case]) -> Tried | None:
    """Return the extent of these cases; None where there is none. Lengths of a law that measures
    are for its figures, and no length is judged apart."""
    full = [case for case in cases if case.batch and case.n]
    if not full:
        return None
    own = [str(subject.dtype(case)).removeprefix("torch.") for case in full]
    if any(law.in_single(subject, case) for case in full):
        own.append("float32")
    refusals = {size: " ".join(why.split()) for size, why in subject.refusals.items() if why}
    return Tried(
        lengths=None if law.measured else _range([max(case.n, case.m or 0) for case in full]),
        heads=_range([case.heads for case in full]),
        head_widths=_range([case.head_width for case in full]),
        batches=_range([case.batch for case in full]),
        dropout=law.dropout if law.dropout and has_dropout(subject) else 0.0,
        dtypes=tuple(sorted(set(law.dtypes or own))),
        refusals=dict(sorted(refusals.items())),
    )


def _range(sizes: Sequence[int]) -> tuple[int, int]:
    return min(sizes), max(sizes)
