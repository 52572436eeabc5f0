"""The cases of a law in sizes that take turns, where the cases name none.

A law that runs over sixty cases meets all sizes at no cost; which case has which is decided by a
hash of mechanism, law and place, so that no size goes with one request alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from random import Random
from typing import Any

import msgspec

from lra.core.findings import Case
from lra.verify.law import Law
from lra.verify.requests import SHORT
from lra.verify.rotation import choices, spread
from lra.verify.sizes import (
    BATCHES,
    BIASES,
    FAR,
    FAR_SIZES,
    LAYERS,
    LONG,
    LONG_SIZES,
    NOT_IN_THE_FIRST,
    SIZES,
    Size,
)
from lra.verify.subject import Subject

MOST = 32
"""Number of cases of up to 40 positions, in float64, that a law tries in the short form."""

PLAIN = Case(n=1)
"""Case that names no size."""


def in_rotation(law: Law, subject: Subject, cases: Iterable[Case]) -> Iterator[Case]:
    """Yield each case in a size that it can be built in, in the full form each short one in all of
    them, in the short form no more than some of those. A law that measures keeps its own sizes."""
    if law.measured:
        yield from cases
        return
    cases = _in_both_modes(law, subject, _fewer(law, subject, list(cases)))
    start = choices(subject, law.name).randrange(len(SIZES))
    for place, case in enumerate(cases):
        length = max(case.n, case.m or 0)
        sizes = FAR_SIZES if length > FAR else LONG_SIZES if length > LONG else SIZES
        first = (start + place) % len(sizes)
        turns = (*sizes[first:], *sizes[:first])
        ways = (_sized(law, subject, case, size, place) for size in turns)
        taken = (way for way in ways if not subject.refuses(way))
        found = list(islice(taken, len(sizes) if subject.full and length <= SHORT else 1))
        yield from found or [case]


def _fewer(law: Law, subject: Subject, cases: list[Case]) -> list[Case]:
    short = [case for case in cases if _is_short(case)]
    kept = {id(case) for case in spread(short, MOST, subject, law.name)}
    return [case for case in cases if id(case) in kept or not _is_short(case)]


def _in_both_modes(law: Law, subject: Subject, cases: list[Case]) -> list[Case]:
    """Return the cases, the long ones in training and in evaluation in turn, where a law is tried
    in both; in the full form each in both."""
    if len({case.training for case in cases}) < 2:
        return cases
    trains = choices(subject, f"{law.name}, training").random() < 0.5
    found = []
    for case in cases:
        if max(case.n, case.m or 0) < FAR:
            found.append(case)
            continue
        for training in (trains, not trains)[: 1 + subject.full]:
            found.append(msgspec.structs.replace(case, training=training))
        trains = not trains
    return found


def _is_short(case: Case) -> bool:
    return max(case.n, case.m or 0) <= SHORT and case.dtype == PLAIN.dtype


def _sized(law: Law, subject: Subject, case: Case, size: Size, place: int) -> Case:
    """Return a case in a size, with a batch, a layer and biases by its place; what it names
    itself stays."""
    chance = choices(subject, f"{law.name}, case {place}")
    layer, biases = (chance.choice(ways) for ways in (LAYERS, BIASES))
    new: dict[str, Any] = {"layer": layer, "biases": biases, **_heads(subject, case, size)}
    batches = [batch for batch in BATCHES if _takes_batch(law, case, batch)]
    if batches:
        is_far = max(case.n, case.m or 0) > FAR
        new["batch"] = min(batches) if is_far else chance.choice(batches)
    own = {name for name in new if getattr(case, name) != getattr(PLAIN, name)}
    changed = msgspec.structs.replace(case, **{k: v for k, v in new.items() if k not in own})
    changed = _with_kv_heads(subject, changed, chance)
    return changed if law.takes(changed) else case


def _takes_batch(law: Law, case: Case, batch: int) -> bool:
    """Whether a law takes a case with so many examples, of which one has padding if any may."""
    is_whole = batch == 1 and case.mask in NOT_IN_THE_FIRST
    return not is_whole and law.takes(msgspec.structs.replace(case, batch=batch))


def _heads(subject: Subject, case: Case, size: Size) -> dict[str, Any]:
    """Return heads and widths; as many heads as a case names, and no odd ones for positions that
    turn pairs."""
    if (case.head_width, case.width) != (PLAIN.head_width, PLAIN.width):
        return {}
    heads = size.heads if case.heads == PLAIN.heads else case.heads
    odd = size.head_width % 2 == 1 and case.position == "rope"
    head_width = size.head_width + odd
    is_equal = size.width == size.heads * size.head_width
    width = heads * head_width if is_equal else size.width
    return {
        "heads": heads,
        "head_width": head_width,
        "width": None if subject.is_square else width,
    }


def _with_kv_heads(subject: Subject, case: Case, chance: Random) -> Case:
    """Return a case with a divisor of its heads for those of keys, where that is a setting that
    nobody gave."""
    asked = getattr(subject.config_for(case), "kv_heads", 0)
    if asked is not None or case.kv_heads is not None:
        return case
    divisors = [number for number in range(1, case.heads + 1) if case.heads % number == 0]
    return msgspec.structs.replace(case, kv_heads=chance.choice(divisors))
