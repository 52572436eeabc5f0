"""Cells that did not end well, with their reasons."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

from lra.core.cells import (
    BaselineCell,
    CeilingCell,
    Cell,
    EfficiencyCell,
    ErrorCell,
    ProfileCell,
    QualityCell,
    ShowCell,
    VerifyCell,
)
from lra.core.escape import escape_controls
from lra.core.hashing import value_hash
from lra.core.records import Record
from lra.report.analysis import Analysis
from lra.report.load.measurement import Origin
from lra.report.load.select import Evidence
from lra.report.load.variants import labelled
from lra.report.model import Row, Section, Table, Value
from lra.report.words import (
    NO_VALUE,
    TIMES,
    count,
    differing,
    ending,
    leaves,
    listing,
)

_PLACE = frozenset({"machine", "threads", "torch", "device", "scale"})
_ASKED = frozenset({
    "mechanism", "versions", "length", "replicate", "seed", "mode", "level", "task", "input_scale",
    "laws", "form", "case",
})  # fmt: skip
"""Fields that a row has in other words, or in which its cells may differ."""
_SHARED = frozenset({"versions", "length", "replicate", "case"})
"""Fields in which cells of one row may differ."""
_LISTED = 4
"""Number of lengths above which they are shown as a range."""


class Ended(NamedTuple):
    """A record that is not ok."""

    origin: Origin
    label: str
    record: Record


def sections(analysis: Analysis) -> list[Section]:
    """Return the section on cells that did not end well; none where all did."""
    found = analyse(analysis.evidence)
    return [present(found)] if found else []


def analyse(evidence: Evidence) -> list[Ended]:
    """Return the records that are not ok, those of figures before checks, pictures and the like."""
    found = [
        Ended(one.origin, one.label or "simple baselines", one.record)
        for one in evidence.measurements
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
    """Return the table. Cells that differ only in length, replicate or version of the code, and
    ended alike, share a row, and so do a mechanism's trainings at a scale that are unsupported for
    one reason; a row has the settings that set it apart from others."""
    alike: dict[str, list[tuple[Ended, str]]] = {}
    for one, setting in zip(found, _settings([one.record.cell for one in found]), strict=True):
        alike.setdefault(_question(one), []).append((one, setting))
    rows = []
    for own in alike.values():
        (first, setting), cells = own[0], [one.record.cell for one, _ in own]
        failure = first.record.failure
        if _is_refused(first.record):
            trained = [one for one in cells if isinstance(one, QualityCell)]
            tasks = listing([*dict.fromkeys(one.data.task for one in trained)])
            is_one = len({other for _, other in own}) == 1
            parts = [f"{tasks} at {trained[0].scale}", setting if is_one else ""]
        else:
            parts = [_asked(cells[0], _lengths(cells)), setting]
        asked = ", ".join(filter(None, parts))
        texts = (
            asked,
            ending(first.record.status, failure),
            *((failure.phase, failure.message) if failure else ("", "")),
        )
        values = tuple(Value(escape_controls(text) or NO_VALUE) for text in texts)
        origin: Origin = "reference" if first.origin == "reference" else "run"
        rows.append(Row(first.label, values, origin=origin))
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


def _question(one: Ended) -> str:
    """Hash that is equal for the records of one row."""
    fields = leaves(one.record.cell)
    own = {key: part for key, part in fields.items() if _top(key) not in _SHARED}
    if _is_refused(one.record):
        own = {key: part for key, part in own.items() if _top(key) in ("mechanism", "scale")}
    own.pop("data.hash", None)
    failure = one.record.failure
    ended = (failure.type, failure.phase, failure.message) if failure else ()
    return value_hash([one.origin, own, one.record.status, ended])


def _is_refused(record: Record) -> bool:
    """Whether it is a training that a mechanism does not support."""
    return isinstance(record.cell, QualityCell) and record.status == "unsupported"


def _asked(cell: Cell, lengths: str) -> str:
    """Cell in words, with its lengths in words."""
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
    """Settings that set each cell apart from others of the table: machine and scale among all cells
    of a type, the rest among those of a task, level and scale, since a scale has its models."""
    every = [leaves(cell) for cell in cells]
    types = [type(cell).__name__ for cell in cells]
    kinds = [
        (name, own.get("scale"), own.get("level"), own.get("task"), own.get("data.task"))
        for name, own in zip(types, every, strict=True)
    ]
    coarse = _apart(types, [{k: v for k, v in one.items() if _top(k) in _PLACE} for one in every])
    fine = _apart(
        kinds,
        [
            {k: v for k, v in one.items() if _top(k) not in _PLACE | _ASKED and k != "data.hash"}
            for one in every
        ],
    )
    return [", ".join(filter(None, both)) for both in zip(coarse, fine, strict=True)]


def _top(key: str) -> str:
    return key.partition(".")[0]


def _apart(kinds: Sequence[Hashable], settings: Sequence[dict[str, Any]]) -> list[str]:
    """`key=value` of the keys in which settings of one kind differ."""
    places: dict[Hashable, list[int]] = defaultdict(list)
    for place, kind in enumerate(kinds):
        places[kind].append(place)
    found = [""] * len(kinds)
    for own in places.values():
        for place, words in zip(own, differing([settings[n] for n in own]), strict=True):
            found[place] = words
    return found


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
