"""Which entries of two sides are of one figure: what was asked, and under which conditions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from lra.report.entries import Entry

Key = tuple[Any, ...]

ASKED = (
    "kind", "scale", "rules", "track", "task", "length", "mode", "level", "direction", "batch",
    "heads", "head_width", "dtype", "execution", "input_scale", "device", "metric",
)  # fmt: skip
"""What both sides must have been asked to be one cell."""
CONDITIONS = {
    "config": "another configuration",
    "machine": "another machine",
    "threads": "another number of threads",
    "source": "another source of data",
    "data_hash": "other data",
    "protocol": "another protocol of training",
    "model": "another model",
    "torch": "another version of torch",
    "measured_by": "measured by another version of the code",
}
"""What has to be the same besides for two figures to be compared."""
_POOLED = {"quality": ("machine", "threads", "torch"), "error": ("machine", "threads")}
"""Conditions that by kind of cell change nothing but rounding."""

_WHERE = {
    "rules": "{} rules", "track": "{} track", "source": "data: {}", "machine": "on {}",
    "threads": "{} threads", "torch": "torch {}",
}  # fmt: skip
"""What a cell's name says of where it was run and with what, if that varies."""


def paired(
    before: Iterable[Entry],
    after: Iterable[Entry],
    asked: tuple[str, ...],
    conditions: tuple[str, ...],
) -> list[tuple[list[Entry], list[Entry]]]:
    """Return the entries of one figure on both sides: first those under the same conditions, then
    of what is left; only where each side has a single candidate."""
    strict, pairs = (*asked, *conditions), []
    rest = [list(_grouped(side, (*strict, "label")).values()) for side in (before, after)]
    for names in (strict, asked):
        one, other = (_candidates(side, names) for side in rest)
        for shared in sorted(one.keys() & other.keys(), key=repr):
            if len(one[shared]) == len(other[shared]) == 1:
                pairs.append((one[shared][0], other[shared][0]))
        met = {id(own) for pair in pairs for own in pair}
        rest = [[own for own in side if id(own) not in met] for side in rest]
    return pairs


def _candidates(
    groups: Iterable[list[Entry]], names: tuple[str, ...]
) -> dict[Key, list[list[Entry]]]:
    found: dict[Key, list[list[Entry]]] = defaultdict(list)
    for own in groups:
        found[key(own[0], names)].append(own)
    return found


def _grouped(entries: Iterable[Entry], names: tuple[str, ...]) -> dict[Key, list[Entry]]:
    found: dict[Key, list[Entry]] = defaultdict(list)
    for e in entries:
        found[key(e, names)].append(e)
    return dict(found)


def key(e: Entry, names: Iterable[str]) -> Key:
    """Return these fields of an entry; empty for what does not matter of its kind of cell."""
    pooled = _POOLED.get(e.kind, ())
    return tuple("" if name in pooled else getattr(e, name) for name in names)


def whereabouts(entries: Iterable[Entry]) -> Callable[[Entry], list[str]]:
    """Return what says of a cell, in words, what tells it from others of its kind: the machine
    where there are several."""

    def place(e: Entry) -> Key:
        return (e.kind, *key(e, _WHERE))

    places = {place(e) for e in entries}

    def words(e: Entry) -> list[str]:
        own = place(e)
        alike = [other for other in places if other[0] == e.kind]
        return [
            told.format(own[n])
            for n, told in enumerate(_WHERE.values(), start=1)
            if own[n] and len({other[n] for other in alike}) > 1
        ]

    return words
