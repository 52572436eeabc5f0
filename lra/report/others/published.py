"""Published accuracies beside those measured here, and what differs between the protocols."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from statistics import mean
from typing import Any

import msgspec

from lra.core import published
from lra.core.published import Accuracies, Quality, Settings
from lra.report.entries import Entry
from lra.report.quality.columns import Column
from lra.report.quality.tables import QualityTable
from lra.report.rows import NO_MIXING
from lra.report.select import Selection
from lra.report.table import Cell, Row, Section, Table
from lra.report.words import NO_VALUE, count, listing, plain

_HERE = "here"
_UNSTATED = "?"
_EQUAL = "="
_MODEL = {
    "layers": "layers",
    "width": "width",
    "qkv_width": "qkv width",
    "heads": "heads",
    "mlp_width": "MLP width",
    "dropout": "dropout",
    "attention_dropout": "attention dropout",
    "position": "positions",
    "pooling": "pooling",
}
_TRAINING = {
    "steps": "steps",
    "batch": "batch",
    "learning_rate": "rate",
    "schedule": "schedule",
    "warmup": "warm-up",
    "weight_decay": "decay",
    "clip": "clip",
    "precision": "precision",
}
_TESTED = {"best": "best validation", "last": "last step"}
"""Which checkpoint is tested, in the words of publications."""


def published_sections(quality: Sequence[QualityTable], selection: Selection) -> list[Section]:
    """Return a section for each accuracy table that shares a task and a mechanism with a
    publication."""
    papers = published.qualities()
    sections = []
    for one in quality:
        table, shown = _accuracies(one, papers)
        if table is None:
            continue
        sections.append(
            Section(
                "published" if one.number == "1" else f"published-{one.number}",
                "Published numbers"
                if len(quality) == 1
                else f"Published numbers: scale {one.group.words}",
                (
                    "What papers print of the same mechanisms on tasks of the same name. The "
                    "protocols are others, setting by setting in the second table, so that the "
                    "figures are not to be compared as numbers.",
                ),
                (table, _distances(one, shown, selection)),
            )
        )
    return sections


def _accuracies(one: QualityTable, papers: Sequence[Quality]) -> tuple[Table | None, list[Quality]]:
    """Return our rows, each mechanism's with the published ones below, and whose these are; no
    table without any."""
    own: dict[str, list[Row]] = {}
    for row in one.table.rows:
        if row.mechanism and row.mechanism != NO_MIXING:
            changed = msgspec.structs.replace(row, group=row.mechanism)
            own.setdefault(row.mechanism, []).append(changed)
    pairs = {name: [(paper, line) for paper in papers for line in paper.of(name)] for name in own}
    rows: list[Row] = []
    differing: list[str] = []
    shown: list[Quality] = []
    for mechanism, ours in own.items():
        theirs = []
        for paper, line in pairs[mechanism]:
            cells = [_cell(line, paper, column.task) for column in one.columns]
            if all(cell.value is None for cell in cells):
                continue
            if one.averaged:
                cells.append(_mean(line.accuracy, one.mean_of))
            label = f"{paper.name}: {line.model}"
            theirs.append(Row(label, tuple(cells), group=mechanism))
            shown += [paper] if paper not in shown else []
            differing += [f"{label} ({line.differs})"] if line.differs else []
        rows += [*ours, *theirs] if theirs else []
    if not rows:
        return None, []
    others = [line.model for paper in papers for line in paper.rows if not line.mechanism]
    table = Table(
        id=f"published-{one.number}",
        title=f"Published accuracies beside those {one.where}",
        caption="Percent of test rows; of each mechanism first what was measured here.",
        corner="mechanism, publication",
        columns=(
            *(column.title for column in one.columns),
            *([f"mean of {len(one.averaged)}"] if one.averaged else []),
        ),
        rows=tuple(rows),
        notes=(
            *(f"{paper.name}: {paper.source}." for paper in papers if paper in shown),
            *(
                [f"Variants used in those publications: {'; '.join(differing)}."]
                if differing
                else []
            ),
            f"Not shown: {count(len(others), 'published row')} of models that are no mechanism "
            f"here: {listing(others)}.",
            *(
                ["Means are of the tasks of this table, not those that a paper averages."]
                if one.averaged
                else []
            ),
        ),
    )
    return table, [paper for paper in papers if paper in shown]


def _cell(line: Accuracies, paper: Quality, task: str) -> Cell:
    if task not in line.accuracy:
        return Cell("failed" if task in line.failed else NO_VALUE)
    printed = line.accuracy[task]
    seeds = f"n {paper.seeds}" if paper.seeds > 1 else ""
    return Cell(str(printed), seeds, float(printed) / 100)


def _mean(accuracy: Mapping[str, Decimal], tasks: Sequence[str]) -> Cell:
    """With as many digits as the finest of its figures."""
    known = [accuracy[task] for task in tasks if task in accuracy]
    if len(known) < len(tasks):
        return Cell(NO_VALUE, f"{len(known)} of {len(tasks)}")
    finest = max(known, key=lambda printed: len(str(printed).partition(".")[2]))
    found = mean(known).quantize(finest, ROUND_HALF_UP)
    return Cell(str(found), value=float(found) / 100)


def _distances(one: QualityTable, papers: Sequence[Quality], selection: Selection) -> Table:
    """Return each task's protocol here, and below it where those of publications differ."""
    rows = []
    for column in one.columns:
        stated = [(paper, _stated(paper, column.task)) for paper in papers]
        stated = [(paper, settings) for paper, settings in stated if settings]
        if not stated:
            continue
        here = _here(column, selection.entries)
        task = column.title
        ours = (Cell(""), *(Cell(plain(value)) for value in here.values()))
        rows.append(Row(f"{task}, {_HERE}", ours, group=task))
        for paper, settings in stated:
            if column.cell.data.source != "generated":
                # Files may be that release's or not.
                settings.pop("data", None)
            cells = [_difference(here[key], settings.get(key)) for key in here]
            apart = sum(cell.text not in (_EQUAL, _UNSTATED) for cell in cells)
            known = sum(cell.text != _UNSTATED for cell in cells)
            share = Cell(f"{apart}/{known}")
            rows.append(Row(paper.name, (share, *cells), group=task))
    return Table(
        id=f"protocol-distance-{one.number}",
        title=f"What differs from the protocols {one.where}",
        caption=f"By task: the settings here, then where a publication's differ. {_EQUAL}: the "
        f"same; {_UNSTATED}: not stated there, or not known of the data here. The first column "
        "counts what differs of what is stated and known.",
        corner="protocol",
        columns=("differs", *_titles()),
        rows=tuple(rows),
        notes=(
            "The rate of the schedule rsqrt is divided by the root of the step.",
            *(f"{paper.name}: {paper.note}" for paper in papers if paper.note),
        ),
        numeric=False,
    )


def _titles() -> tuple[str, ...]:
    return ("data", "length", *_MODEL.values(), *_TRAINING.values(), "tested", "seeds")


def _here(column: Column, entries: Iterable[Entry]) -> dict[str, Any]:
    """The settings of a column's cells, by title; of seeds how many a mechanism has."""
    cell, source = column.cell, column.cell.data.source
    trained = Counter(
        (e.origin, e.label)
        for e in entries
        if (e.protocol, e.metric) == (column.protocol, "test_accuracy") and e.value is not None
    )
    least, most = min(trained.values(), default=0), max(trained.values(), default=0)
    return {
        "data": "generated" if source == "generated" else f"{source} {cell.data.hash[:8]}",
        "length": cell.data.length,
        **{title: getattr(cell.model, key) for key, title in _MODEL.items()},
        **{title: getattr(cell.training, key) for key, title in _TRAINING.items()},
        "tested": _TESTED[cell.training.tested],
        "seeds": f"{least} to {most}" if least < most else most,
    }


def _stated(paper: Quality, task: str) -> dict[str, Any]:
    """What a paper states of a task, by title; empty where it does not have the task."""
    if task not in paper.tasks:
        return {}
    found: Settings = paper.settings(task)
    stated = {
        "data": found.data or None,
        "length": found.length,
        **{title: found.model.get(key) for key, title in _MODEL.items()},
        **{title: found.training.get(key) for key, title in _TRAINING.items()},
        "tested": found.selection or None,
        "seeds": paper.seeds,
    }
    return {title: value for title, value in stated.items() if value is not None}


def _difference(ours: Any, theirs: Any) -> Cell:
    if theirs is None:
        return Cell(_UNSTATED)
    return Cell(_EQUAL if ours == theirs or plain(ours) == theirs else plain(theirs))
