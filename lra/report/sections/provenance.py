"""Provenance of the records: machines, versions and commits, and methods of measurement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter

import msgspec

from lra.core.cells import BaselineCell, EfficiencyCell, ErrorCell, MeasuredCell
from lra.core.records import Record
from lra.report.analysis import Analysis
from lra.report.load.measurement import Measurement, Origin
from lra.report.load.select import Evidence
from lra.report.model import Row, Section, Table, Value
from lra.report.words import NO_VALUE, count, flat, listing, machine_words

_METHODS = {
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
"""Methods in records that are of use to a reader, and their words."""
_KINDS: dict[type[MeasuredCell], str] = {
    EfficiencyCell: "Timings",
    ErrorCell: "Errors",
    BaselineCell: "Simple baselines",
}
_SHARED = ("machine class", "torch", "versions")
"""Columns that are said once where all sources share them."""
_NAMED = 3
"""Commits that the foot of the page names."""


class Source(msgspec.Struct, frozen=True, order=True):
    """One machine class, build and commit of records."""

    is_reference: bool
    machine: str
    torch: str
    threads: int
    versions: str
    commit: str


def analyse(measurements: Iterable[Measurement]) -> list[tuple[Source, list[Measurement]]]:
    """Return the records by their source, the run's first."""
    keyed = sorted(((_source(one), one) for one in measurements), key=itemgetter(0))
    return [(s, [one for _, one in own]) for s, own in groupby(keyed, itemgetter(0))]


def sections(analysis: Analysis) -> list[Section]:
    """Return the section on the provenance of the records."""
    evidence = analysis.evidence
    return [present(analyse(evidence.measurements), evidence)] if evidence.measurements else []


def present(sources: Sequence[tuple[Source, Sequence[Measurement]]], evidence: Evidence) -> Section:
    """Return the sources as a table, with the methods of the run's cells."""
    columns = ["machine class", "torch", "threads", "versions", "commit", "cells", "measured"]
    lines = []
    for source, own in sources:
        texts = [source.machine, source.torch, str(source.threads), source.versions, source.commit]
        lines.append([*texts, str(len(own)), dates(own)])
    # A list of ten libraries in each row would hide the differences.
    same = [
        name
        for name, texts in zip(columns, zip(*lines, strict=True), strict=True)
        if name in _SHARED and len(lines) > 1 and len({*texts}) == 1
    ]
    first = dict(zip(columns, lines[0], strict=True))
    shared = "; ".join(f"{name} {first[name]}" for name in same)
    notes = [f"The same everywhere: {shared}."] if same else []
    rows = []
    for (source, _), texts in zip(sources, lines, strict=True):
        origin: Origin = "reference" if source.is_reference else "run"
        label = "reference" if source.is_reference else "this run"
        shown = zip(columns, texts, strict=True)
        values = tuple(Value(text) for name, text in shown if name not in same)
        rows.append(Row(label, values, origin=origin))
    for whose, number in (
        ("of this run", evidence.superseded),
        ("of the reference", evidence.superseded_reference),
    ):
        if number:
            older, verb = count(number, "older record"), "is" if number == 1 else "are"
            notes.append(f"{older} {whose} {verb} left out: a newer one answers the same question.")
    if evidence.unrelated:
        other = count(evidence.unrelated, "reference record is", "reference records are")
        notes.append(f"{other} left out: no cell of the run shares the protocol.")
    table = Table(
        id="provenance",
        title="Where the records come from",
        caption="Dates are when a cell started, UTC.",
        corner="records",
        columns=tuple(name for name in columns if name not in same),
        rows=tuple(rows),
        notes=tuple(notes),
        numeric=False,
    )
    return Section(
        topic="Provenance", level="appendix", text=methods(evidence.own), tables=(table,)
    )


def methods(own: Iterable[Measurement]) -> tuple[str, ...]:
    """Return the methods of cells, one paragraph for each kind."""
    found: dict[str, list[dict[str, str]]] = {}
    for measurement in own:
        kind = _KINDS.get(type(measurement.cell), "Trainings")
        found.setdefault(kind, []).append(flat(measurement.record.method))
    paragraphs = []
    for kind, methods in sorted(found.items()):
        said = {
            word: sorted({m[key] for m in methods if key in m}) for key, word in _METHODS.items()
        }
        parts = [f"{word}: {'; or '.join(texts)}." for word, texts in said.items() if texts]
        paragraphs += [" ".join([f"{kind}.", *parts])] if parts else []
    return tuple(paragraphs)


def subtitle(evidence: Evidence) -> str:
    """Return machine, torch and dates of the run, for the top of the page."""
    own = evidence.own
    return f"{_machines(own)}; torch {_torch(own)}; {dates(own)}" if own else ""


def footer(evidence: Evidence) -> str:
    """Return machine, torch, commit, number of cells and dates in one line."""
    own = evidence.own
    if not own:
        return ""
    reference = len(evidence.measurements) - len(own)
    cells = count(len(own), "cell") + (f" and {reference} reference cells" if reference else "")
    commits = sorted({_commit(measurement.record) for measurement in own})
    named = f"commit{'s' * (len(commits) > 1)} {listing(commits)}"
    if len(commits) > _NAMED:
        named = f"{len(commits)} commits: see Provenance"
    return f"{cells}, measured {dates(own)} on {_machines(own)} with torch {_torch(own)}; {named}."


def dates(measurements: Iterable[Measurement]) -> str:
    """Return the first and last day on which cells started."""
    days = sorted({one.record.started_at[:10] for one in measurements})
    return days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"


def _machines(own: Iterable[Measurement]) -> str:
    return listing(sorted({machine_words(measurement.cell.machine) for measurement in own}))


def _torch(own: Iterable[Measurement]) -> str:
    return listing(sorted({measurement.cell.torch for measurement in own}))


def _source(measurement: Measurement) -> Source:
    cell = measurement.cell
    return Source(
        is_reference=measurement.origin != "run",
        machine=machine_words(cell.machine),
        torch=cell.torch,
        threads=cell.threads,
        versions=_versions(measurement.record),
        commit=_commit(measurement.record),
    )


def _versions(record: Record) -> str:
    origin = record.provenance
    libraries = {k: v for k, v in sorted(origin.libraries.items()) if k != "torch"}
    ours = {"lra": origin.version} if origin.version else {}
    return ", ".join(f"{k} {v}" for k, v in {**ours, **libraries}.items()) or NO_VALUE


def _commit(record: Record) -> str:
    commit = record.provenance.git_commit
    if commit is None:
        return "not in a git checkout"
    return commit[:12] + (" with changes" if record.provenance.git_dirty else "")
