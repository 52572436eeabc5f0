"""Which machine, versions and commit the records come from, and how they were measured."""

from __future__ import annotations

from collections.abc import Sequence

from lra.core.cells import BaselineCell, EfficiencyCell, ErrorCell, MeasuredCell
from lra.core.escape import escape_controls
from lra.core.records import Record
from lra.report.entries import Kept
from lra.report.select import Selection
from lra.report.table import Cell as Place
from lra.report.table import Row, Table, sorted_groups
from lra.report.words import NO_VALUE, count, flat, listing, machine_words

_TOLD = {
    "timed_region": "Timed",
    "timer": "Clock",
    "inputs": "Inputs",
    "upstream": "Gradient of the output",
    "exact": "Compared with",
    "error": "Error",
    "memory": "Memory",
    "control": "Control",
    "garbage_collection": "Garbage collection",
    "bag of tokens": "Bag of tokens",
    "exact solver": "Exact solver",
    "compile": "Execution",
    "device": "Device",
    "threads": "Threads",
}
"""What a reader can use of the methods in records, and the words for it."""


def provenance_table(selection: Selection) -> Table:
    """Return where the records come from: one row per machine class, versions and commit."""
    sources = list(_sources(selection.kept))
    columns: tuple[str, ...]
    columns = ("machine class", "torch", "threads", "versions", "commit", "cells", "measured")
    lines = [(*texts[1:], str(len(group)), dates(group)) for texts, group in sources]
    notes = []
    place = columns.index("versions")
    if len(lines) > 1 and len({line[place] for line in lines}) == 1:
        # A list of ten libraries in each row hides what differs.
        notes.append(f"Versions, the same everywhere: {lines[0][place]}.")
        columns, *lines = (line[:place] + line[place + 1 :] for line in (columns, *lines))
    rows = [
        Row(
            label="this run" if group[0].origin == "run" else "reference",
            cells=tuple(map(Place, line)),
            origin=group[0].origin,
        )
        for line, (_, group) in zip(lines, sources, strict=True)
    ]
    for whose, number in (
        ("of this run", selection.superseded),
        ("of the reference", selection.superseded_reference),
    ):
        if number:
            older, verb = count(number, "older record"), "is" if number == 1 else "are"
            notes.append(f"{older} {whose} {verb} left out: a newer one answers the same question.")
    if selection.unrelated:
        other = count(selection.unrelated, "reference record is", "reference records are")
        notes.append(f"{other} left out: no cell of the run shares the protocol.")
    return Table(
        id="provenance",
        title="Where the records come from",
        caption="Dates are when a cell started, UTC.",
        corner="records",
        columns=columns,
        rows=tuple(rows),
        notes=tuple(notes),
        numeric=False,
    )


def _sources(kept: Sequence[Kept]) -> list[tuple[tuple[str, ...], list[Kept]]]:
    def source(one: Kept) -> tuple[str, ...]:
        record = one.record
        cell = record.cell
        place = (machine_words(cell.machine), cell.torch, str(cell.threads))
        return (str(one.origin != "run"), *place, _versions(record), _commit(record))

    return [(tuple(map(str, key)), group) for key, group in sorted_groups(kept, source)]


def measuring(selection: Selection) -> tuple[str, ...]:
    """Return how the run's cells were measured, a paragraph for each kind of them."""
    methods: dict[str, list[dict[str, str]]] = {}
    for kept in selection.own:
        methods.setdefault(_kind(kept.cell), []).append(flat(kept.record.method))
    paragraphs = []
    for kind, found in sorted(methods.items()):
        told = {word: sorted({m[key] for m in found if key in m}) for key, word in _TOLD.items()}
        parts = [f"{word}: {'; or '.join(texts)}." for word, texts in told.items() if texts]
        paragraphs += [" ".join([f"{kind}.", *parts])] if parts else []
    return tuple(paragraphs)


def _kind(cell: MeasuredCell) -> str:
    if isinstance(cell, EfficiencyCell):
        return "Timings"
    if isinstance(cell, ErrorCell):
        return "Errors"
    return "Simple baselines" if isinstance(cell, BaselineCell) else "Trainings"


def _versions(record: Record) -> str:
    origin = record.provenance
    libraries = {k: v for k, v in sorted(origin.libraries.items()) if k != "torch"}
    ours = {"lra": origin.version} if origin.version else {}
    return (
        ", ".join(escape_controls(f"{k} {v}") for k, v in {**ours, **libraries}.items()) or NO_VALUE
    )


def _commit(record: Record) -> str:
    commit = record.provenance.git_commit
    if commit is None:
        return "not in a git checkout"
    return escape_controls(commit[:12]) + (" with changes" if record.provenance.git_dirty else "")


def dates(kept: Sequence[Kept]) -> str:
    """Return the first and last day on which the cells started."""
    days = sorted({one.record.started_at[:10] for one in kept})
    return days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"


def subtitle(selection: Selection) -> str:
    """Return machine, torch and dates of the run, for the top of the page."""
    own = selection.own
    machines = sorted({machine_words(kept.cell.machine) for kept in own})
    versions = sorted({kept.cell.torch for kept in own})
    return f"{listing(machines)}; torch {listing(versions)}; {dates(own)}"


def footer(selection: Selection) -> str:
    """Return machine, torch, commit, number of cells and dates in one line."""
    own = selection.own
    reference = len(selection.kept) - len(own)
    cells = count(len(own), "cell") + (f" and {reference} reference cells" if reference else "")
    machines = sorted({machine_words(kept.cell.machine) for kept in own})
    versions = sorted({kept.cell.torch for kept in own})
    commits = sorted({_commit(kept.record) for kept in own})
    return (
        f"{cells}, measured {dates(own)} on {listing(machines)} with torch {listing(versions)}; "
        f"commit{'s' * (len(commits) > 1)} {listing(commits)}."
    )
