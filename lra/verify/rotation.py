"""Some of a law's cases for each mechanism: other ones for another mechanism, all in the full
form."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from random import Random
from typing import Any, TypeVar

from lra.core.findings import Case
from lra.core.hashing import value_hash
from lra.verify.subject import Subject

Kind = TypeVar("Kind")


def rotate(cases: Iterable[Kind], most: int, subject: Subject, law: str) -> list[Kind]:
    """Return at most so many cases in their order, chosen by the names of mechanism and law."""
    every = list(cases)
    if subject.full or len(every) <= most:
        return every
    # Places in the list follow its own cycles: evenly spread ones could miss one of them.
    chosen = choices(subject, law).sample(range(len(every)), most)
    return [every[place] for place in sorted(chosen)]


def spread(cases: Iterable[Case], most: int, subject: Subject, law: str) -> list[Case]:
    """Return at most so many cases in their order, such that any two parts of a request meet in
    each way that they can, and three as far as there is room; the names decide among equals."""
    every = list(cases)
    if subject.full or len(every) <= most:
        return every
    left = {place: _meetings(every[place]) for place in range(len(every))}
    order = choices(subject, law).sample(range(len(every)), len(every))
    chosen: list[int] = []
    for _ in range(most):
        best = max(order, key=lambda place: [len(meetings) for meetings in left[place]])
        chosen.append(best)
        order.remove(best)
        for place in order:
            for meetings, seen in zip(left[place], left[best], strict=True):
                meetings -= seen
    return [every[place] for place in sorted(chosen)]


def _meetings(case: Case) -> tuple[set[Any], set[Any]]:
    """Return pairs of what a case asks for, and triples; its configuration takes part in pairs."""
    asked = [
        ("crossed", case.m is not None),
        ("causal", case.causal),
        ("mask", case.mask),
        ("position", case.position),
        ("training", case.training),
        ("dtype", case.dtype),
        *([("special", True)] if case.special else []),
    ]
    pairs = combinations([*asked, ("trial", case.trial)], 2)
    return set(pairs), set(combinations(asked, 3))


def choices(subject: Subject, law: str) -> Random:
    """Return a generator that the names of mechanism and law decide."""
    return Random(value_hash([subject.mechanism.__name__, law]))
