"""How many parameters the models of a table have, beside those around exact attention."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from lra.report.entries import Entry
from lra.report.rows import EXACT, Rows
from lra.report.words import listing

UNEQUAL = 0.1
"""Parameter counts further than this share from exact attention's are marked."""


def exact_sizes(entries: Iterable[Entry]) -> dict[str, int]:
    """Return exact attention's parameters by protocol, the run's before the reference's."""
    own = [e for e in entries if e.mechanism == EXACT and e.parameters]
    own.sort(key=lambda e: e.origin == "run")
    return {e.protocol: e.parameters for e in own if e.parameters}


def distance(size: int, exact: int | None) -> float:
    """Return how much larger a model is than exact attention's, as a share; 0 where that has no
    size."""
    return size / exact - 1 if exact else 0.0


def size_notes(rows: Rows, *, several: bool) -> list[str]:
    """Return a sentence on the mechanisms whose models are of another size, each by the most of
    its tasks; `several` says whether there are several."""
    exact = exact_sizes(entry for own in rows.values() for entry in own)
    told = []
    for (origin, label), own in rows.items():
        off = max((_off(entry, exact) for entry in own), key=abs)
        if abs(off) > UNEQUAL:
            mark = " (reference)" if origin == "reference" else ""
            told.append(f"{label}{mark} {100 * off:+.0f} %")
    if not told:
        return []
    most = "; largest difference over the tasks" if several else ""
    return [
        f"Parameters differ from {EXACT}'s by more than {100 * UNEQUAL:.0f} %{most}: "
        f"{listing(told)} (table under Protocol)."
    ]


def same_function(rows: Rows, exact: Collection[str]) -> tuple[str, ...]:
    """Return the labels of rows that compute what exact attention computes: those of `exact`
    mechanisms with just its parameters, so that no heads share keys."""
    sizes = exact_sizes(entry for own in rows.values() for entry in own)
    alike = [
        own[0].label
        for own in rows.values()
        if own[0].mechanism in exact and _is_of_size(own, sizes)
    ]
    return tuple(dict.fromkeys(alike))


def _off(entry: Entry, exact: Mapping[str, int]) -> float:
    return distance(entry.parameters, exact.get(entry.protocol)) if entry.parameters else 0.0


def _is_of_size(own: Iterable[Entry], sizes: Mapping[str, int]) -> bool:
    known = {e.protocol: e.parameters for e in own if e.parameters}
    return bool(known) and all(sizes.get(protocol) == size for protocol, size in known.items())
