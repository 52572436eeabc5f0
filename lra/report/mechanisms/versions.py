"""Mechanisms whose figures are of different versions of their source, in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from lra.core.escape import escape_controls
from lra.report.entries import Entry
from lra.report.words import listing_of

_NAMED = 10
"""More mechanisms than this are counted beside those; report.csv has the versions of each."""


def other_versions(entries: Iterable[Entry]) -> list[str]:
    """Return a sentence that names those of the run; nothing where there is none.

    An edit makes both due, but one of the two may have been measured since.
    """
    sources: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    rows: dict[str, dict[tuple[str, ...], dict[str, set[str]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(set))
    )
    for entry in entries:
        if entry.origin == "run" and entry.kind in ("quality", "efficiency"):
            sources[entry.mechanism][entry.kind].add(entry.mechanism_version)
        if entry.origin == "run" and entry.kind == "quality":
            row = (entry.label, entry.scale, entry.rules, entry.track)
            rows[entry.mechanism][row][entry.task].add(entry.mechanism_version)
    apart = [
        name
        for name, own in sources.items()
        if len(own) > 1 and not own["quality"] & own["efficiency"]
    ]
    mixed = [name for name, own in rows.items() if any(map(_differ, own.values()))]
    again = "running the same commands again measures what is out of date."
    return [
        f"{what} of {_named(names)} are of different versions of the source: {again}"
        for what, names in (
            ("Accuracy and speed", apart),
            ("Accuracies on different tasks", mixed),
        )
        if names
    ]


def _differ(by_task: Mapping[str, set[str]]) -> bool:
    """Whether tasks of one row have no version in common."""
    return len(by_task) > 1 and not set.intersection(*by_task.values())


def _named(names: Iterable[str]) -> str:
    return listing_of(sorted(escape_controls(name) for name in names), _NAMED)
