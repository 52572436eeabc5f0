"""Rotary positions are honoured: the oracle's result, from queries and keys that were turned."""

from __future__ import annotations

from collections.abc import Iterator

from lra.core.findings import Case
from lra.verify.law import Law
from lra.verify.laws import oracle
from lra.verify.requests import masks, requests
from lra.verify.subject import Subject


def cases(subject: Subject) -> Iterator[Case]:
    """Every request under rotary positions."""
    return requests(subject, masks=masks(subject, "scattered"), positions=("rope",))


LAW = Law(
    name="rotary",
    says="queries and keys turned by their positions give the oracle's result",
    claimed=lambda card: card.capabilities.rotary,
    cases=cases,
    check=oracle.check,
    oracle=True,
)
