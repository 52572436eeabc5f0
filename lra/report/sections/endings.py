"""Cells that did not end well, with their reasons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lra.core.cells import (
    BaselineCell,
    CeilingCell,
    Cell,
    EfficiencyCell,
    ErrorCell,
    MeasuredCell,
    ProfileCell,
    QualityCell,
    ShowCell,
    VerifyCell,
)
from lra.core.escape import escape_controls
from lra.core.records import Record
from lra.report.analysis import Analysis
from lra.report.load.kept import Origin
from lra.report.load.select import Evidence
from lra.report.load.variants import labelled
from lra.report.load.versions import data_hash
from lra.report.model import Row, Section, Table, Value
from lra.report.words import (
    NO_VALUE,
    TIMES,
    apart,
    count,
    ending,
    flat,
    listing,
    machine_words,
)

_OfData = QualityCell | BaselineCell | ProfileCell
_ANY = "any length"
_LISTED = 4
"""More lengths than this are a range."""


class Ended(NamedTuple):
    """A record that is not ok."""

    origin: Origin
    label: str
    record: Record


def sections(analysis: Analysis) -> list[Section]:
    """Return the section of what did not end well; none where all did."""
    found = analyse(analysis.evidence)
    return [present(found)] if found else []


def analyse(evidence: Evidence) -> list[Ended]:
    """Return the records that are not ok, those of figures before checks, pictures and the like."""
    found = [
        Ended(kept.origin, kept.label or "simple baselines", kept.record) for kept in evidence.kept
    ]
    owned = [
        (record, record.cell.mechanism)
        for record in evidence.others
        if isinstance(record.cell, VerifyCell | ShowCell | ProfileCell)
    ]
    names = labelled([mechanism for _, mechanism in owned])
    found += [Ended("run", name, record) for name, (record, _) in zip(names, owned, strict=True)]
    limits = [record for record in evidence.others if isinstance(record.cell, CeilingCell)]
    found += [Ended("run", "the machine", record) for record in limits]
    return [one for one in found if one.record.status != "ok"]


def present(found: Sequence[Ended]) -> Section:
    """Return the table. Cells that differ in length, replicate or version of the code alone, and
    ended alike, share a row; a row has the settings that set it apart from others."""
    alike: dict[tuple[str, ...], list[Cell]] = {}
    for one, setting in zip(found, _settings([one.record.cell for one in found]), strict=True):
        record, failure = one.record, one.record.failure
        phase, why = (failure.phase, failure.message) if failure else ("", "")
        ended = ending(record.status, failure)
        key = (one.origin, one.label, _asked(record.cell, _ANY), setting, ended, phase, why)
        alike.setdefault(key, []).append(record.cell)
    rows = []
    for (origin, label, _, setting, *texts), cells in alike.items():
        asked = ", ".join(part for part in (_asked(cells[0], _lengths(cells)), setting) if part)
        values = tuple(Value(escape_controls(text) or NO_VALUE) for text in (asked, *texts))
        rows.append(Row(label, values, origin="reference" if origin == "reference" else "run"))
    table = Table(
        id="not-ok",
        title="Endings",
        caption="Their figures are in no table, mean or plot.",
        corner="mechanism",
        columns=("cell", "ended as", "phase", "why"),
        rows=tuple(rows),
        numeric=False,
    )
    return Section(topic="Cells that are not ok", level="appendix", tables=(table,))


def _asked(cell: Cell, lengths: str) -> str:
    """The cell in words, at lengths in words."""
    if isinstance(cell, EfficiencyCell):
        of = {"attention": " of the attention alone", "model": f" of a model of {cell.task}"}.get(
            cell.level, ""
        )
        return f"{cell.mode}{of} at {lengths}"
    if isinstance(cell, ErrorCell):
        return f"error at {lengths}, inputs {TIMES} {cell.input_scale:g}, seed {cell.seed}"
    if isinstance(cell, ShowCell):
        return f"picture at {lengths}"
    if isinstance(cell, VerifyCell):
        return f"check of {listing(cell.laws)}" if cell.laws else f"{cell.form} check"
    if isinstance(cell, CeilingCell):
        return f"large product and copy in {cell.dtype}"
    if isinstance(cell, ProfileCell):
        return f"profile of a training step on {cell.data.task}"
    return (
        cell.data.task if isinstance(cell, BaselineCell) else f"{cell.data.task}, seed {cell.seed}"
    )


def _settings(cells: Sequence[Cell]) -> list[str]:
    """The settings that set each cell apart from others of the table, first by place and scale."""
    coarse = _apart([(type(cell).__name__,) for cell in cells], [_place(cell) for cell in cells])
    fine = _apart([_kind(cell) for cell in cells], [_setting(cell) for cell in cells])
    return [", ".join(filter(None, both)) for both in zip(coarse, fine, strict=True)]


def _apart(kinds: Sequence[tuple[str, ...]], settings: Sequence[tuple[str, ...]]) -> list[str]:
    """The parts that set each of the settings apart from others of its kind."""
    distinct: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for kind, setting in zip(kinds, settings, strict=True):
        own = distinct.setdefault(kind, [])
        if setting not in own:
            own.append(setting)
    names = {kind: dict(zip(own, apart(own), strict=True)) for kind, own in distinct.items()}
    return [names[kind][setting] for kind, setting in zip(kinds, settings, strict=True)]


def _place(cell: Cell) -> tuple[str, ...]:
    """Where and at which scale a cell was asked for, in words."""
    scale = [f"scale {cell.scale}"] if isinstance(cell, MeasuredCell | ProfileCell) else []
    device = [] if isinstance(cell, BaselineCell | ShowCell) else [cell.device]
    machine = (machine_words(cell.machine), count(cell.threads, "thread"), f"torch {cell.torch}")
    return (*machine, *device, *scale)


def _kind(cell: Cell) -> tuple[str, ...]:
    """Of cells that have this alike the other settings are compared: a scale has its models."""
    scale = cell.scale if isinstance(cell, MeasuredCell | ProfileCell) else ""
    if isinstance(cell, EfficiencyCell):
        return (type(cell).__name__, scale, cell.level, cell.task)
    task = cell.data.task if isinstance(cell, _OfData) else ""
    return (type(cell).__name__, scale, task)


def _setting(cell: Cell) -> tuple[str, ...]:
    """The other settings that a cell was asked for with, in words."""
    found: list[str] = []
    if isinstance(cell, EfficiencyCell | ErrorCell):
        found += [f"batch {cell.batch}", cell.dtype]
    if isinstance(cell, EfficiencyCell | ErrorCell | ShowCell):
        found += [cell.direction, f"{count(cell.heads, 'head')} of width {cell.head_width}"]
    if isinstance(cell, EfficiencyCell):
        found += ["by torch.compile"] if cell.execution == "compiled" else []
        found += _fields(cell.model) if cell.model else []
    if isinstance(cell, _OfData):
        fields = {name: text for name, text in flat(cell.data).items() if name != "hash"}
        found += [f"{name.rpartition('.')[2]}={text}" for name, text in fields.items()]
        found.append(f"data {data_hash(cell)[:8]}")
    if isinstance(cell, QualityCell):
        found.append(f"{cell.track} track")
    if isinstance(cell, QualityCell | ProfileCell):
        found += [*_fields(cell.model), *_fields(cell.training)]
    return tuple(found)


def _fields(spec: object) -> list[str]:
    return [f"{key.rpartition('.')[2]}={text}" for key, text in flat(spec).items()]


def _lengths(cells: Iterable[Cell]) -> str:
    """`512 and 1024`, `256 to 4096 (5 lengths, 10 cells)`."""
    long = [cell for cell in cells if isinstance(cell, EfficiencyCell | ErrorCell | ShowCell)]
    lengths = sorted({cell.length for cell in long})
    if not lengths:
        return ""
    few = len(lengths) <= _LISTED
    text = listing([str(n) for n in lengths]) if few else f"{lengths[0]} to {lengths[-1]}"
    counts = [] if few else [f"{len(lengths)} lengths"]
    counts += [count(len(long), "cell")] if len(long) > len(lengths) else []
    return f"{text} ({', '.join(counts)})" if counts else text
