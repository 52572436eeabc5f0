"""Mechanisms whose accuracy and whose speed are of different versions of their source, in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from lra.report.entries import Entry
from lra.report.words import listing, visible

_NAMED = 10
"""More mechanisms than this are counted beside those; report.csv has the hashes of each."""


def other_versions(entries: Iterable[Entry]) -> list[str]:
    """Return a sentence that names those of the run; nothing where there is none.

    An edit makes both due, but one of the two may have been measured since.
    """
    sources: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for entry in entries:
        if entry.origin == "run" and entry.kind in ("quality", "efficiency"):
            sources[entry.mechanism][entry.kind].add(entry.mechanism_hash)
    names = sorted(
        visible(name)
        for name, own in sources.items()
        if len(own) > 1 and not own["quality"] & own["efficiency"]
    )
    if not names:
        return []
    left = len(names) - _NAMED
    told = listing([*names[:_NAMED], *([f"{left} more"] if left > 0 else [])])
    return [
        f"Accuracy and speed of {told} are of different versions of the source: running the same "
        "commands again measures what is out of date."
    ]
