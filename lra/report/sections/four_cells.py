"""The four places of attention: noncausal or causal, within a sequence or across two.

Zhang et al., "CAB: Comprehensive Attention Benchmarking on Long Sequence Modeling", ICML 2023
(arXiv 2210.07661). A score is shown as a share of the way from no mixing to exact attention, so
that tasks of several units share a mean.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean, stdev
from typing import NamedTuple

import pandas as pd
from msgspec import UNSET

from lra.core.catalogue import CONTROLS, EXACT, NO_MIXING
from lra.core.escape import escape_controls
from lra.core.protocol import ModelSpec
from lra.report.accuracy import Accuracies, Column, scored
from lra.report.analysis import Analysis
from lra.report.baselines import MAJORITY, simple
from lra.report.load.settings import QualitySetting
from lra.report.model import Row, Section, Table, Value
from lra.report.rows import Key, missing, of, of_the_run_first, reference_notes, row_keys
from lra.report.words import NO_VALUE, count, listing, percent

CELLS = ("noncausal self", "causal self", "noncausal cross", "causal cross")
LEAST, MOST = -0.5, 1.5
"""Bounds of a share on one task, so that no single task decides a mean."""
TOLD_APART = 0.1
"""Least difference between exact attention and no mixing for a task to count: in accuracy, or as a
share of the loss without mixing."""


Endings = tuple[tuple[str, str, str], ...]
"""Status, failure and reason of seeds without a figure."""


class Scale(NamedTuple):
    """Ends of a task's scale."""

    nothing: float
    """Score without mixing; across two sequences that of the most frequent answer."""
    exact: float
    is_loss: bool

    @property
    def tells_apart(self) -> bool:
        """Whether exact attention is clearly better than no mixing."""
        if self.is_loss:
            return self.nothing - self.exact >= TOLD_APART * self.nothing
        return self.exact - self.nothing >= TOLD_APART

    def share(self, score: float) -> float:
        """Return the share of the way from no mixing to exact attention, within bounds."""
        way = (score - self.nothing) / (self.exact - self.nothing)
        return min(max(way, LEAST), MOST)


class Task(NamedTuple):
    """One column of scores, with its place among the four."""

    cell: str
    column: Column
    scores: Accuracies
    scale: Scale


class Four(NamedTuple):
    """Values of one table."""

    setting: QualitySetting
    tasks: tuple[Task, ...]
    keys: tuple[Key, ...]
    figures: pd.DataFrame


def sections(analysis: Analysis) -> list[Section]:
    """Return a section for each protocol that has tasks in more than one of the four cells."""
    return [section for one in analyse(analysis) for section in of_the_run_first(present(one))]


def cell_of(model: ModelSpec) -> str | None:
    """Return the cell that a network shows of its mechanism; None where that is one of several
    slots, or no cross attention."""
    if model.body != "encoder_decoder":
        return "causal self" if model.causal else "noncausal self"
    if model.open_slots != ("cross",):
        return None
    return "causal cross" if model.causal else "noncausal cross"


def analyse(analysis: Analysis) -> list[Four]:
    """Return the tasks of each protocol by cell, and the rows that have any of them."""
    found: dict[QualitySetting, list[Task]] = defaultdict(list)
    for scores in analysis.accuracies:
        for column in scores.columns:
            cell = cell_of(column.cell.model)
            scale = None if cell is None else _scale(analysis, scores, column)
            if cell is not None and scale is not None and scale.tells_apart:
                found[_shared(scores.setting)].append(Task(cell, column, scores, scale))
    fours = []
    for setting, tasks in found.items():
        if len({task.cell for task in tasks}) > 1:
            own = pd.concat(
                [scored(analysis.evidence, one) for one in _each(t.scores for t in tasks)]
            )
            keys = [key for key in row_keys(own) if key.mechanism not in CONTROLS]
            fours.append(Four(setting, tuple(tasks), tuple(keys), own))
    return fours


def _each(scores: Iterable[Accuracies]) -> list[Accuracies]:
    return list({one.id: one for one in scores}.values())


def _shared(setting: QualitySetting) -> QualitySetting:
    """Return the conditions that all four cells share."""
    return QualitySetting(
        scale=setting.scale,
        rules=setting.rules,
        track=setting.track,
        source=setting.source,
        precision=setting.precision,
        by_token=False,
    )


def _scale(analysis: Analysis, scores: Accuracies, column: Column) -> Scale | None:
    """Return the ends of a task's scale; None where one of them is not known."""
    exact, nothing = (_known(scores, column, name) for name in (EXACT, NO_MIXING))
    if column.cell.model.open_slots:
        # A mechanism that reads no other position cannot read another sequence.
        majority = simple(analysis.evidence, scores, column).get(MAJORITY)
        nothing = None if majority is None else majority.value
    if exact is None or nothing is None:
        return None
    return Scale(nothing, exact, scores.lower)


def _known(scores: Accuracies, column: Column, mechanism: str) -> float | None:
    """Score of a mechanism, the run's before the reference's."""
    own = scores.pooled
    own = own[(own["protocol"] == column.protocol) & (own["mechanism"] == mechanism)]
    own = own[own["mean"].notna()].sort_values(["origin", "variant"], ascending=[False, True])
    return None if own.empty else float(own.iloc[0]["mean"])


def shares(four: Four, key: Key, cell: str) -> tuple[list[dict[int, float]], Endings]:
    """Return a row's shares on the tasks of a cell, each by seed, and how other seeds ended."""
    known: list[dict[int, float]] = []
    endings: Endings = ()
    for task in four.tasks:
        if task.cell != cell:
            continue
        own = of(task.scores.pooled, key)
        own = own[own["protocol"] == task.column.protocol]
        for seeds, others in zip(own["seeds"], own["endings"], strict=True):
            if seeds:
                known.append({seed: task.scale.share(value) for seed, value in seeds.items()})
            endings += others
    return known, endings


def _value(four: Four, key: Key, cell: str) -> Value:
    tasks = sum(task.cell == cell for task in four.tasks)
    known, endings = shares(four, key, cell)
    if not known:
        return missing(endings, asked=bool(endings))
    if len(known) < tasks:
        return Value(NO_VALUE, f"{len(known)} of {tasks}")
    mean = fmean(fmean(one.values()) for one in known)
    seeds = known[0].keys()
    same = all(one.keys() == seeds for one in known)
    by_seed = [fmean(one[seed] for one in known) for seed in seeds] if same else []
    spread = f"± {percent(stdev(by_seed))}" if len(by_seed) > 1 else ""
    return Value(percent(mean), spread, mean)


def present(four: Four) -> Section:
    """Return the table, with the tasks of each cell."""
    used = [cell for cell in CELLS if any(task.cell == cell for task in four.tasks)]
    rows: Sequence[Row] = [key.row([_value(four, key, cell) for cell in used]) for key in four.keys]
    own = {cell: [task for task in four.tasks if task.cell == cell] for cell in used}
    return Section(
        topic="Four cells",
        setting=", ".join(four.setting.parts),
        tables=(
            Table(
                id=f"four-cells-{four.setting.id}",
                title="Share of the way from no mixing to exact attention, %",
                caption=_caption(used),
                corner="mechanism",
                columns=tuple(f"{cell} ({count(len(own[cell]), 'task')})" for cell in used),
                rows=tuple(
                    row for row in rows if any(value.number is not None for value in row.values)
                ),
                notes=(
                    *(f"{cell.capitalize()}: {_tasks_named(own[cell])}." for cell in used),
                    *reference_notes(four.figures, four.keys),
                ),
            ),
        ),
    )


def _tasks_named(tasks: Sequence[Task]) -> str:
    """Tasks, after the mechanisms in the other slots of their networks."""
    titles: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for task in tasks:
        slots = task.column.cell.model.slots
        others = [] if slots is UNSET else sorted({one.name for one in slots.values()})
        titles[tuple(others)].append(task.column.title)
    parts = [
        f"{listing(own)}, beside {escape_controls(listing(others))}" if others else listing(own)
        for others, own in titles.items()
    ]
    return "; ".join(parts)


def _caption(used: Sequence[str]) -> str:
    across = " Cross: the mechanism reads the source, and 0 is the most frequent answer."
    return (
        f"Mean over tasks, each kept between {LEAST:.0%} and {MOST:.0%}, below its spread over "
        "seeds. Tasks that exact attention does not clearly improve are left out."
        f"{across if any(cell.endswith('cross') for cell in used) else ''}"
    )
