"""What stands below a cost table: how far its figures can be trusted, and what it lacks."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from lra.report.costs.disturbed import SIGNS
from lra.report.costs.place import LOOSE, Costs
from lra.report.entries import Entry
from lra.report.rows import EXACT
from lra.report.words import listing, percent, quantity, span

_FOREIGN = {
    "cpu": ("peak_allocated_bytes", "peak_reserved_bytes", "peak_device_bytes"),
    "cuda": ("peak_resident_bytes",),
}
"""Measures of memory that only the other kind of device has."""
_LEAST = (", which the system's counting", ", the least that the system's counting")
"""Words of a reason in records, and what they mean."""


def taken_notes(measured: Sequence[Entry], known: Costs) -> list[str]:
    """Return of how many processes and samples figures are, where there are several."""
    numbers = [cost.processes for cost in known.by_place.values() if cost.value is not None]
    samples = span([e.samples for e in measured if e.samples])
    notes = []
    if max(numbers, default=1) > 1:
        each = f"; {samples} samples in each" if samples else ""
        notes.append(
            f"{span(numbers)} processes a figure: their median, in no more digits than their "
            f"range allows{each}."
        )
    elif samples:
        notes.append(f"{samples} samples a figure.")
    return notes + known.partly_notes()


def time_notes(entries: Sequence[Entry], known: Costs) -> list[str]:
    """Return what the marks of times mean, and how still the machine held."""
    notes = []
    if any(cost.loose for cost in known.by_place.values()):
        notes.append(
            f"~: the quartiles lie more than {100 * LOOSE:g} % of the median apart, for a ratio "
            "those of either figure."
        )
    if any(cost.disturbed for cost in known.by_place.values()):
        notes.append(
            f"!: the machine was busy, {SIGNS}; --rerun disturbed measures these cells again."
        )
    before, after = (
        {(e.origin, e.record): e.value for e in entries if e.metric == name and e.value}
        for name in ("control_before", "control_after")
    )
    pairs = [(before[record], after[record]) for record in sorted(before.keys() & after.keys())]
    if pairs:
        middle = quantity(median([value for pair in pairs for value in pair]), "s")
        drift = max(max(pair) / min(pair) for pair in pairs) - 1
        notes.append(
            f"Control (a plain matrix product in the same processes): {middle}, "
            f"up to {percent(drift, 1)} % apart before and after a cell."
        )
    return notes


def missing_notes(
    entries: Sequence[Entry], known: Costs, lengths: Sequence[int], metric: str
) -> list[str]:
    """Return why a ratio is n/a, and what these cells could not measure."""
    notes = []
    gone = [(n, known.exact("run", n)) for n in lengths]
    words = [f"{n} ({cost.word})" for n, cost in gone if cost.value is None]
    if words and any(e.origin == "run" for e in entries):
        notes.append(f"n/a: no ratio, because {EXACT} has no figure at {listing(words)}.")
    # Of memory also the measures that are in no table.
    told = [e for e in entries if e.metric == metric or {e.metric[:5], metric[:5]} == {"peak_"}]
    null = {
        (e.metric.replace("_", " "), e.word, e.reason.replace(*_LEAST))
        for e in told
        if e.reason and e.status == "ok" and e.metric not in _FOREIGN.get(e.device, ())
    }
    return notes + [f"{name}: {word} ({reason})." for name, word, reason in sorted(null)]


def exactness_notes(group: Sequence[Entry]) -> tuple[str, ...]:
    """Return how far a decoding step is from the parallel form at most, and of which steps nothing
    is known."""
    tried = [e for e in group if e.metric == "decode_error"]
    found = [(e.value, e) for e in tried if e.value is not None]
    lacking: dict[str, set[int]] = {}
    for e in tried:
        if e.value is None and e.status == "ok":
            lacking.setdefault(e.label, set()).add(e.length)
    told = []
    if found:
        worst, entry = max(found, key=lambda pair: pair[0])
        told.append(
            "In the same processes a step was compared with the parallel form: it differs by at "
            f"most {worst:.0e} of the largest output ({entry.label} after {entry.length} "
            "positions)."
        )
    if lacking:
        parts = [
            f"{name} after {listing([str(n) for n in sorted(ns)])}" for name, ns in lacking.items()
        ]
        told.append(
            "Of these steps the difference from the parallel form is not finite: "
            f"{'; '.join(parts)} positions."
        )
    return tuple(told)
