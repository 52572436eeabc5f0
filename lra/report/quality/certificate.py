"""What each task tests: exact attention and the task's own rule beside what does without reading
far, without mixing, and without order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

import msgspec

from lra.core.cells import QualityCell
from lra.report.entries import Entry, protocol_hash
from lra.report.quality.baselines import SIMPLE, SOLVER, fitting
from lra.report.quality.columns import Column, columns_of
from lra.report.quality.group import Group, group_of
from lra.report.rows import EXACT, NO_MIXING
from lra.report.select import Selection
from lra.report.table import Cell, Row, Section, Table, sorted_groups
from lra.report.words import NOT_RUN, count, listing, percent, visible

_WINDOW = "sliding_window"
_SHUFFLED = "shuffled input"
_SOLVED = "exact solver"
"""Where a baseline's method says how the task's own rule was tried."""


def certificate_section(selection: Selection) -> Section | None:
    """Return the section; None where nothing was trained on shuffled input."""
    cells = {
        kept.record.id: (kept.cell, kept.record.rows)
        for kept in selection.kept
        if isinstance(kept.cell, QualityCell)
    }
    shuffled: dict[str, list[Entry]] = {}
    for entry in selection.entries:
        if entry.order == "shuffled" and entry.metric == "test_accuracy":
            shuffled.setdefault(_as_given(cells[entry.record][0]), []).append(entry)
    if not shuffled:
        return None
    given = [e for e in selection.entries if e.metric == "test_accuracy" and e.order == "given"]
    simple = [e for e in selection.entries if e.kind == "baseline"]
    solved = {
        kept.record.id: visible(str(kept.record.method[_SOLVED]))
        for kept in selection.kept
        if _SOLVED in kept.record.method
    }
    groups = sorted_groups(given, lambda e: group_of(cells[e.record][0]).whole)
    tables, told = [], []
    for number, (_, group) in enumerate(groups, start=1):
        under = group_of(cells[group[0].record][0]).whole
        columns = columns_of(cells[e.record] for e in group)
        windows = {
            e.record: _window(cells[e.record][0], e) for e in group if e.mechanism == _WINDOW
        }
        rows = [_Task(c, group, windows, shuffled.get(c.protocol, []), simple) for c in columns]
        known = [row for row in rows if row.exact is not None and row.shortcuts]
        if any(_SHUFFLED in row.without for row in known):
            rules = dict.fromkeys(solved[id] for row in known for id in row.solvers if id in solved)
            tables.append(_table(f"certificate-{number}", under, known, list(rules)))
            told += [row.sentence(under) for row in known]
    return Section("certificate", "What the tasks test", tuple(told), tuple(tables))


class _Window(msgspec.Struct, frozen=True):
    name: str
    reads_all: bool
    """Whether some token reads the longest input whole, each layer reaching a window further."""


def _window(cell: QualityCell, entry: Entry) -> _Window:
    left, right = (int(cell.mechanism.config[side]) for side in ("left", "right"))
    a_layer = left if entry.direction == "causal" else left + right
    reads_all = cell.model.layers * a_layer + 1 >= cell.data.length
    return _Window(f"window of {left} left, {right} right", reads_all)


def _as_given(cell: QualityCell) -> str:
    """The protocol of the same training on input in its own order."""
    replace = msgspec.structs.replace
    return protocol_hash(replace(cell, data=replace(cell.data, order="given")))


class _Task:
    """What was reached on one task, in shares of 1: with attention, and without this or that."""

    def __init__(
        self,
        column: Column,
        group: Iterable[Entry],
        windows: Mapping[str, _Window],
        shuffled: Iterable[Entry],
        simple: Sequence[Entry],
    ) -> None:
        self.title = column.title
        own = [e for e in group if e.protocol == column.protocol]
        baselines = fitting(simple, column.cell)
        solvers = [e for e in baselines if e.metric == SOLVER]
        self.solver, self.solvers = _mean(solvers), [e.record for e in solvers]
        exact = _of_origin(e for e in own if e.mechanism == EXACT)
        self.exact, self.seeds = _mean(exact), len(exact)
        self.by_token = any(e.direction == "causal" for e in own)
        through: dict[str, list[Entry]] = {}
        for entry in own:
            if entry.record in windows:
                through.setdefault(windows[entry.record].name, []).append(entry)
        self.reads_all = {
            windows[e.record].name
            for e in own
            if e.record in windows and windows[e.record].reads_all
        }
        rules = {e.metric: e for e in baselines if e.metric not in (*SIMPLE, SOLVER)}
        found: dict[str, float | None] = {
            **{name: _mean(entries) for name, entries in sorted(through.items())},
            f"no mixing ({NO_MIXING})": _mean(e for e in own if e.mechanism == NO_MIXING),
            _SHUFFLED: _mean(e for e in shuffled if e.mechanism == EXACT),
            **{name: _mean(e for e in baselines if e.metric == m) for m, name in SIMPLE.items()},
            **{entry.label: entry.value for _, entry in sorted(rules.items())},
        }
        self.without = {name: value for name, value in found.items() if value is not None}

    @property
    def shortcuts(self) -> list[str]:
        """What does without attention over all of an input in its order."""
        return [name for name in self.without if name not in self.reads_all]

    @property
    def best(self) -> str:
        """Which of these comes nearest."""
        return max(self.shortcuts, key=self.without.__getitem__)

    @property
    def margin(self) -> float:
        """Of exact attention over that."""
        return (self.exact or 0.0) - self.without[self.best]

    def sentence(self, under: Group) -> str:
        """Return it in words."""
        apart = f"{100 * abs(self.margin):.1f} points {'above' if self.margin >= 0 else 'below'}"
        rule = "" if self.solver is None else f" and its own rule {percent(self.solver)} %"
        return (
            f"{self.title}, scale {under.words}: exact attention reaches "
            f"{percent(self.exact or 0.0)} % ({count(self.seeds, 'seed')}){rule}, the best "
            f"shortcut ({self.best}) {percent(self.without[self.best])} %: {apart}."
        )


def _mean(found: Iterable[Entry]) -> float | None:
    """Over seeds."""
    values = [entry.value for entry in _of_origin(found) if entry.value is not None]
    return fmean(values) if values else None


def _of_origin(found: Iterable[Entry]) -> list[Entry]:
    """Those with a value: the run's own where it has any, else the reference's."""
    entries = [entry for entry in found if entry.value is not None]
    return [entry for entry in entries if entry.origin == "run"] or entries


def _table(id: str, under: Group, tasks: Sequence[_Task], rules: Sequence[str]) -> Table:
    names = list(dict.fromkeys(name for task in tasks for name in task.without))
    rows = [
        Row(
            task.title,
            (
                _cell(task.solver, missing="none"),
                _cell(task.exact),
                *(_shortcut(task, name) for name in names),
                Cell(f"{100 * task.margin:+.1f}", f"over {task.best}", task.margin),
            ),
        )
        for task in tasks
    ]
    return Table(
        id=id,
        title=f"What exact attention has over shortcuts at scale {under.words}",
        caption="Percent of test rows (of tokens asked for, where each is), means over seeds"
        f"{', its own rule is of no more rows than stand below' if rules else ''}; "
        f"{under.rules} rules, data {under.source}.",
        corner="task",
        columns=("its own rule", f"exact ({EXACT})", *names, "margin"),
        rows=tuple(rows),
        notes=(
            f"{listing(names)} do without attention over all of an input in its order. Through a "
            "window a layer sees so many tokens on each side; reads all: its layers together reach "
            "over the longest input, and it counts as no shortcut. Shuffled input: exact "
            "attention trained and tested on sequences whose tokens stand in a random order.",
            "Its own rule reads the tokens alone and works out the label: what can be known."
            f"{f' Tried: {listing(rules)}.' if rules else ''}",
        ),
    )


def _shortcut(task: _Task, name: str) -> Cell:
    """What a shortcut reaches; where nothing stands, what is trained could have been."""
    # A task that asks for each token has no answers apart from its tokens: nothing to shuffle.
    shuffles = name == _SHUFFLED and not task.by_token
    trained = name.startswith(("window", "no mixing")) or shuffles
    found = _cell(task.without.get(name), NOT_RUN if trained else "none")
    return msgspec.structs.replace(found, note="reads all") if name in task.reads_all else found


def _cell(value: float | None, missing: str = NOT_RUN) -> Cell:
    if value is None:
        return Cell(missing)
    return Cell(percent(value), value=value)
