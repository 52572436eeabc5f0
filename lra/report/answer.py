"""What the records say, in a few sentences computed from the tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from lra.core.cells import EfficiencyCell
from lra.report.efficiency import EfficiencyTables
from lra.report.error import ErrorTables, error_sentences, told_scale
from lra.report.quality import QualityTable
from lra.report.rows import EXACT, NO_MIXING
from lra.report.select import Selection
from lra.report.settings import in_words, trained_and_timed
from lra.report.table import Cell, Row, Table
from lra.report.unlike import Unlike
from lra.report.versions import other_versions
from lra.report.words import NO_VALUE, NOT_RUN, STATUS, apart, count, listing

_FIGURES = 10
"""With more accuracies than this the answer names the best mechanisms instead of each."""
_SENTENCES = 3
"""With more mechanisms than this it names the cheapest instead of each."""
_STEPS = {
    "train": "a training step",
    "forward": "a forward pass",
    "decode": "a decoding step",
}


def answer(
    selection: Selection,
    quality: Sequence[QualityTable],
    costs: Sequence[EfficiencyTables],
    errors: Sequence[ErrorTables] = (),
) -> tuple[str, ...]:
    """Return the sentences to read first; at least one."""
    sentences: list[str] = []
    for one in quality:
        sentences += _quality(one, selection.unlike, name_scale=len(quality) > 1)
    own = [cost for cost in costs if not cost.reference_only]
    for cost, name in zip(own, apart([cost.parts for cost in own]), strict=True):
        sentences += _costs(cost, name)
    sentences += error_sentences(errors)
    sentences += _settings(selection, quality)
    sentences += other_versions(selection.entries)
    if not sentences:
        sentences = ["The run has neither an accuracy nor a time yet."]
    return (*sentences, *_not_ok(selection), *_busy(selection))


def _subjects(table: Table) -> list[Row]:
    """The run's mechanisms that are asked about; exact attention, or the floor, if that is all."""
    own = [row for row in table.rows if row.origin == "run" and row.mechanism]
    asked = [row for row in own if row.mechanism not in (EXACT, NO_MIXING)]
    return asked or [row for row in own if row.mechanism == EXACT] or own


def _quality(quality: QualityTable, unlike: Sequence[Unlike], *, name_scale: bool) -> list[str]:
    table, subjects = quality.table, _subjects(quality.table)
    if len(subjects) * len(quality.columns) > _FIGURES:
        sentences = [_best(quality, subjects)]
    else:
        sentences = [_per_task(quality, row) for row in subjects]
    for one in unlike:
        titles = [column.title for column in quality.columns if column.protocol in one.protocols]
        sentences += [one.sentence(titles)] if titles else []
    return [f"{table.title}:", *sentences] if name_scale else sentences


def _anchors(table: Table, row: Row) -> list[tuple[str, list[Row]]]:
    """Rows of exact attention and of no mixing, the run's own before a reference's."""
    named = [(EXACT, EXACT), (NO_MIXING, "no mixing")]
    found = []
    for name, words in named:
        rows = [
            r
            for r in table.rows
            if r.mechanism == name and r.mechanism != row.mechanism and r.cells
        ]
        rows.sort(key=lambda r: r.origin != "run")
        if rows:
            found.append((words, rows))
    return found


def _per_task(quality: QualityTable, row: Row) -> str:
    """`performer: 78.3 % on text (sdpa 99.9 %, no mixing 50.1 %), OOM on image (...)`."""
    anchors = _anchors(quality.table, row)
    parts = []
    titles = [column.title for column in quality.columns]
    for place, title in enumerate(titles):
        beside = _beside(anchors, place)
        parts.append(f"{_share(row.cells[place])} on {title}{beside}")
    return f"{row.label}: {'; '.join(parts)}."


def _beside(anchors: Sequence[tuple[str, list[Row]]], place: int) -> str:
    """What the anchors have in a column, each from the first of its rows that has anything."""
    parts = []
    for words, rows in anchors:
        cells = [row.cells[place] for row in rows]
        told = [_share(cell) for cell in cells if cell.text not in (NOT_RUN, NO_VALUE)]
        parts += [f"{words} {text}" for text in told[:1]]
    return f" ({', '.join(parts)})" if parts else ""


def _share(cell: Cell) -> str:
    return cell.text if cell.value is None else f"{cell.text} %"


def _best(quality: QualityTable, subjects: Sequence[Row]) -> str:
    """The highest means of many mechanisms, with the anchors."""
    number = len({column.task for column in quality.columns})
    start = f"{count(len(subjects), 'mechanism')} on {count(number, 'task')}"
    if not quality.mean_of and len(quality.columns) > 1:
        return f"{start}; the table has their accuracies."
    over = f"mean accuracy over {listing(quality.mean_of)}" if quality.mean_of else "accuracy"
    ranked = sorted(
        ((row.cells[-1].value, row) for row in subjects if row.cells[-1].value is not None),
        key=lambda pair: (-(pair[0] or 0.0), pair[1].label),
    )
    if not ranked:
        return f"{start}; none of them has a {over}."
    best = [f"{row.label} {_share(row.cells[-1])}" for _, row in ranked[:_SENTENCES]]
    beside = _beside(_anchors(quality.table, ranked[0][1]), -1)
    told = f"{start}. Highest {over}: {listing(best)}{beside}."
    return f"{told}{_unranked(quality, [row for row in subjects if row.cells[-1].value is None])}"


def _unranked(quality: QualityTable, rows: Sequence[Row]) -> str:
    """Which mechanisms are not compared, and what they lack; of many only how many they are."""
    if len(rows) > _SENTENCES:
        return f" {len(rows)} of them lack some of these and are not compared."
    needed = quality.averaged or quality.columns
    parts = []
    for row in rows:
        places = zip(quality.columns, row.cells, strict=False)
        lacking = [c.title for c, cell in places if c in needed and cell.value is None]
        parts.append(f"{row.label} (no figure on {listing(lacking)})")
    return f" Not compared: {listing(parts)}." if parts else ""


def _costs(costs: EfficiencyTables, name: str) -> list[str]:
    """`name` tells these tables from those of other settings."""
    mode = next((mode for mode in _STEPS if mode in costs.latency), None)
    if mode is None:
        return []
    latency, memory = costs.latency[mode], costs.memory[mode]
    subjects = [row for row in _subjects(latency) if row.mechanism != EXACT]
    layer = "attention alone" if costs.level == "attention" else costs.level
    layer += f" ({name})" if name else ""
    if len(subjects) > _SENTENCES:
        return _cheapest(latency, memory, subjects, f"{_STEPS[mode]} of the {layer}")
    return [
        _cost(row, latency, memory, f"{_STEPS[mode]} of the {row.label} {layer}")
        for row in subjects
    ]


def _cost(row: Row, latency: Table, memory: Table, what: str) -> str:
    """`At length 2048 a training step of the performer layer takes 0.41 x the time of sdpa ...`."""
    reached = [place for place, cell in enumerate(row.cells) if cell.value is not None]
    if not reached:
        return f"There is no time of {what} ({row.cells[-1].text})."
    place = reached[-1]
    time, symbol = row.cells[place], latency.title.rpartition(" ")[2]
    start = f"At length {latency.columns[place]} {what} takes"
    beside = memory.row(row.variant, row.origin)
    room = beside.cells[place] if beside else Cell("not measured")
    if time.ratio is None:
        needs = f" and {room.text} {memory.title.rpartition(' ')[2]}" if room.value else ""
        return f"{start} {time.text} {symbol}{needs}; {EXACT} has no time there."
    if room.ratio is not None:
        return f"{start} {time.note} the time of {EXACT} and {room.note} its memory."
    needs = f" and {room.text} {memory.title.rpartition(' ')[2]}" if room.value else ""
    needs = needs or f"; memory {room.text}"
    return f"{start} {time.note} the time of {EXACT}{needs}."


def _cheapest(latency: Table, memory: Table, subjects: Sequence[Row], what: str) -> list[str]:
    """The fastest and the leanest of many, at the longest length with a ratio."""
    known = [n for row in subjects for n, cell in enumerate(row.cells) if cell.ratio is not None]
    if not known:
        return []
    place, parts, number = max(known), [], 0
    for table, word in ((latency, "fastest"), (memory, "least memory")):
        own = [table.row(row.variant, row.origin) for row in subjects]
        cells = [(row.cells[place], row.label) for row in own if row]
        ranked = sorted((cell.ratio, name, cell.note) for cell, name in cells if cell.ratio)
        number = max(number, len(ranked))
        if ranked:
            parts.append(f"{word}: {ranked[0][1]}, {ranked[0][2]} {EXACT}")
    where = f"at length {latency.columns[place]}"
    if number < len(subjects):
        where += f", where {number} of {len(subjects)} mechanisms have a figure"
    return [f"For {what} {where}, {'; '.join(parts)}."]


def _settings(selection: Selection, quality: Sequence[QualityTable]) -> list[str]:
    """Which of the asked mechanisms were trained with other settings than they were timed with."""
    asked = {row.variant for one in quality for row in _subjects(one.table)}
    found = trained_and_timed(selection.entries)
    return in_words(found, {key for key in found if key[1] in asked}, names_only=True)


def _not_ok(selection: Selection) -> list[str]:
    """How many of the run's cells did not end well, by ending."""
    own = [kept.record for kept in selection.kept if kept.origin == "run"]
    bad = Counter(record.status for record in own if record.status != "ok")
    if not bad:
        return []
    endings = [f"{number} {STATUS[status]}" for status, number in sorted(bad.items())]
    verb = "is" if bad.total() == 1 else "are"
    return [f"{bad.total()} of {count(len(own), 'cell')} {verb} not ok: {listing(endings)}."]


def _busy(selection: Selection) -> list[str]:
    """How many of the run's timings were taken on a busy machine."""
    own = [kept.record for kept in selection.kept if kept.origin == "run"]
    timed = [r for r in own if isinstance(r.cell, EfficiencyCell) and r.status == "ok"]
    found = sum(("run", record.id) in selection.busy for record in timed)
    if not found:
        return []
    return [
        f"The machine was busy during {found} of {count(len(timed), 'timing')} "
        "(marked ! in the tables): do not trust them; the same command with --rerun disturbed "
        "measures them again."
    ]


def summary(
    quality: Sequence[QualityTable],
    costs: Sequence[EfficiencyTables],
    errors: Sequence[ErrorTables] = (),
) -> Table | None:
    """Return the table to print in a terminal: the run beside exact attention and baselines."""
    if not quality:
        own = [cost for cost in costs if not cost.reference_only]
        tables = [table for cost in own for table in reversed(cost.latency.values())]
        tables += [one.tables[told_scale(one)] for one in errors]
        return next(iter(tables), None)
    table = quality[0].table
    rows = [
        row
        for row in table.rows
        if row.origin == "run" or row.mechanism in (EXACT, NO_MIXING) or not row.mechanism
    ]
    return msgspec.structs.replace(table, rows=tuple(rows))
