"""Some of a law's cases for each mechanism: other ones for another mechanism, all in the full
form."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import TypeVar

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


def choices(subject: Subject, law: str) -> Random:
    """Return a generator that the names of mechanism and law decide."""
    return Random(value_hash([subject.mechanism.__name__, law]))
