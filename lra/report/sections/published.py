"""Published accuracies and those measured here, with the distance between the protocols."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from statistics import mean
from typing import Any

import msgspec

from lra.core import published
from lra.core.catalogue import CONTROLS
from lra.core.escape import escape_controls
from lra.core.published import Quality
from lra.report.accuracy import ACCURACY, Accuracies, Column, Score, scored
from lra.report.analysis import Analysis
from lra.report.load.frame import typed
from lra.report.model import Row, Section, Table, Value
from lra.report.rows import Key, of, row_keys
from lra.report.score_text import score_text
from lra.report.words import NO_VALUE, NOT_RUN

_MODEL = (
    "layers", "width", "qkv_width", "heads", "mlp_width", "dropout", "attention_dropout",
    "position", "pooling",
)  # fmt: skip
_TRAINING = (
    "steps", "batch", "learning_rate", "schedule", "warmup", "weight_decay", "clip", "precision",
)  # fmt: skip
_ALIKE = 2.0
"""Factor within which the lengths of inputs count as about the same as a publication's."""
_ROWS = "Each mechanism's first row was measured here. Means are of a table's own tasks."
_TEXT = "The protocols are others: the figures are not to be compared as numbers."


class Line(msgspec.Struct, frozen=True):
    """One published row, with a mechanism of ours."""

    mechanism: str
    paper: Quality
    row: published.Accuracies

    @property
    def label(self) -> str:
        """Publication and its own name of the model."""
        return f"{self.paper.name}: {self.row.model}"


def sections(analysis: Analysis) -> list[Section]:
    """Return a section for each table of accuracies that shares a task and a mechanism with a
    publication: tables with inputs of about the same length or, where there are none, the first."""
    papers = published.qualities()
    found = [
        (one, lines)
        for one in analysis.accuracies
        if one.metric == ACCURACY and (lines := analyse(one, papers))
    ]
    found = [own for own in found if _is_as_long(*own)] or found[:1]
    return [
        present(one, lines, analysis, is_first=place == 0)
        for place, (one, lines) in enumerate(found)
    ]


def _is_as_long(scores: Accuracies, lines: Sequence[Line]) -> bool:
    lengths = [
        (column.cell.data.length, line.paper.settings(column.task).length)
        for column in scores.columns
        for line in lines
        if column.task in line.row.accuracy
    ]
    return any(there and max(n, there) <= _ALIKE * min(n, there) for n, there in lengths)


def analyse(scores: Accuracies, papers: Sequence[Quality]) -> list[Line]:
    """Return the published rows for mechanisms and tasks of a table."""
    tasks = {column.task for column in scores.columns}
    known = sorted(set(scores.pooled["mechanism"]).difference(CONTROLS))
    return [
        Line(mechanism, paper, row)
        for mechanism in known
        for paper in papers
        for row in paper.of(mechanism)
        if tasks & row.accuracy.keys()
    ]


def present(
    scores: Accuracies, lines: Sequence[Line], analysis: Analysis, *, is_first: bool
) -> Section:
    """Return the accuracies, and the number of settings in which each publication differs from
    ours."""
    papers = list({line.paper.name: line.paper for line in lines}.values())
    table = _accuracies(scores, lines, analysis)
    if not is_first:
        # Sources, variants and notes are given once.
        table = msgspec.structs.replace(table, notes=())
    distances = _distances(scores, papers)
    notes = tuple(f"{paper.name}: {paper.note}" for paper in papers if paper.note and is_first)
    return Section(
        topic="Published numbers",
        level="appendix",
        setting=", ".join(scores.setting.parts),
        text=(_TEXT,) if is_first else (),
        tables=(table, msgspec.structs.replace(distances, notes=notes)),
    )


def _accuracies(scores: Accuracies, lines: Sequence[Line], analysis: Analysis) -> Table:
    keys = row_keys(scored(analysis.evidence, scores))
    if len(scores.columns) == 1:
        names = list(dict.fromkeys(line.paper.name for line in lines))
        corner, columns = "mechanism", ("here", *names)
        rows = [
            row
            for mechanism in dict.fromkeys(line.mechanism for line in lines)
            for row in _beside(mechanism, names, scores, keys, lines)
        ]
    else:
        corner = "mechanism, publication"
        columns = (
            *(column.title for column in scores.columns),
            *([f"mean of {len(scores.averaged)}"] if scores.averaged else []),
        )
        rows = [
            row
            for mechanism in dict.fromkeys(line.mechanism for line in lines)
            for row in _below(mechanism, scores, keys, lines)
        ]
    papers = {line.paper.name: line.paper.source for line in lines}
    differing = [f"{line.label} ({line.row.differs})" for line in lines if line.row.differs]
    return Table(
        id=f"published-{scores.setting.id}",
        title=_title(scores),
        caption="",
        corner=corner,
        columns=columns,
        rows=tuple(rows),
        notes=(
            f"{'; '.join(f'{name}: {source}' for name, source in papers.items())}.",
            *([f"Other variants: {'; '.join(differing)}."] if differing else []),
        ),
        legend=(_ROWS,) if len(scores.columns) > 1 else (),
    )


def _title(scores: Accuracies) -> str:
    task = f" on {scores.columns[0].title}" if len(scores.columns) == 1 else ""
    return f"Published accuracies{task}, %"


def _beside(
    mechanism: str,
    names: Sequence[str],
    scores: Accuracies,
    keys: Sequence[Key],
    lines: Sequence[Line],
) -> list[Row]:
    """Rows of a mechanism on the only task, with a column for each publication."""
    (column,) = scores.columns
    theirs: list[Value] = []
    for name in names:
        own = [one for one in lines if (one.mechanism, one.paper.name) == (mechanism, name)]
        found = [_printed(line, column) for line in own]
        theirs.append(
            msgspec.structs.replace(found[0], text=" / ".join(one.text for one in found))
            if found
            else Value("")
        )
    return [key.row([_ours(scores, key)[0], *theirs]) for key in keys if key.mechanism == mechanism]


def _below(
    mechanism: str, scores: Accuracies, keys: Sequence[Key], lines: Sequence[Line]
) -> list[Row]:
    """Rows of a mechanism on several tasks: those measured here, then those of publications."""
    group = escape_controls(mechanism)
    ours = [key.row(_ours(scores, key), group) for key in keys if key.mechanism == mechanism]
    own = [line for line in lines if line.mechanism == mechanism]
    return [*ours, *(Row(line.label, tuple(_theirs(line, scores)), group=group) for line in own)]


def _ours(scores: Accuracies, key: Key) -> list[Value]:
    places = {column.protocol: Value(NOT_RUN) for column in scores.columns}
    for protocol, own in of(scores.pooled, key).groupby("protocol"):
        (score,) = typed(own, Score)
        rows = next(c.rows.test for c in scores.columns if c.protocol == protocol)
        places[str(protocol)] = _score(score, rows)
    values = list(places.values())
    if scores.averaged:
        (score,) = typed(of(scores.means, key), Score)
        values.append(_score(score, min(column.rows.test for column in scores.averaged)))
    return values


def _score(score: Score, rows: int) -> Value:
    if math.isnan(score.mean):
        return Value(NO_VALUE)
    return Value(score_text(score, rows), "", score.mean)


def _theirs(line: Line, scores: Accuracies) -> list[Value]:
    values = [_printed(line, column) for column in scores.columns]
    if scores.averaged:
        values.append(_mean(line.row.accuracy, [column.task for column in scores.averaged]))
    return values


def _printed(line: Line, column: Column) -> Value:
    printed = line.row.accuracy.get(column.task)
    if printed is None:
        return Value("failed" if column.task in line.row.failed else NO_VALUE)
    seeds = f"n {line.paper.seeds}" if line.paper.seeds > 1 else ""
    return Value(str(printed), seeds, float(printed) / 100)


def _mean(accuracy: Mapping[str, Decimal], tasks: Sequence[str]) -> Value:
    """Mean with as many digits as the finest of its figures."""
    known = [accuracy[task] for task in tasks if task in accuracy]
    if len(known) < len(tasks):
        return Value(NO_VALUE, f"{len(known)} of {len(tasks)}")
    finest = max(known, key=lambda printed: len(str(printed).partition(".")[2]))
    found = mean(known).quantize(finest, ROUND_HALF_UP)
    return Value(str(found), "", float(found) / 100)


def _distances(scores: Accuracies, papers: Sequence[Quality]) -> Table:
    """Table of how many of each publication's stated settings differ from ours."""
    heres = [_here(column, scores) for column in scores.columns]
    rows = [
        Row(
            paper.name,
            tuple(
                _distance(here, _stated(paper, column))
                for column, here in zip(scores.columns, heres, strict=True)
            ),
        )
        for paper in papers
    ]
    return Table(
        id=f"protocol-distance-{scores.setting.id}",
        title="Settings in which publications differ",
        caption="",
        corner="publication",
        columns=tuple(column.title for column in scores.columns),
        rows=tuple(rows),
        legend=("Conditions that a publication states, and the length of its inputs.",),
    )


def _distance(here: Mapping[str, Any], stated: Mapping[str, Any]) -> Value:
    if not stated:
        return Value(NO_VALUE)
    apart = sum(not _is_same(here[name], value) for name, value in stated.items())
    length = f"length {stated['length']:,}" if "length" in stated else ""
    return Value(f"{apart} of {len(stated)}", length, float(apart))


def _here(column: Column, scores: Accuracies) -> dict[str, Any]:
    """Settings of a column's trainings, by name; for seeds the number that a mechanism has,
    or the least and the greatest."""
    cell = column.cell
    seeds = scores.pooled[scores.pooled["protocol"] == column.protocol]["n"]
    numbers = [int(n) for n in seeds if n]
    least, most = min(numbers, default=0), max(numbers, default=0)
    return {
        "data": cell.data.source,
        "length": cell.data.length,
        **{name: getattr(cell.model, name) for name in _MODEL},
        **{name: getattr(cell.training, name) for name in _TRAINING},
        "tested": cell.training.tested,
        "seeds": most if least == most else (least, most),
    }


def _stated(paper: Quality, column: Column) -> dict[str, Any]:
    """Settings that a paper states for a task, by name; none where it lacks the task."""
    if column.task not in paper.tasks:
        return {}
    found = paper.settings(column.task)
    stated = {
        # Files may be those of its release or not.
        "data": found.data if column.cell.data.source == "generated" and found.data else None,
        "length": found.length,
        **{name: found.model.get(name) for name in _MODEL},
        **{name: found.training.get(name) for name in _TRAINING},
        "tested": found.tested,
        "seeds": paper.seeds,
    }
    return {name: value for name, value in stated.items() if value is not None}


def _is_same(ours: Any, theirs: Any) -> bool:
    return bool(ours == theirs or (ours is None and theirs == published.OFF))
