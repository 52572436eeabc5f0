"""What one task tests, as it was measured: exact attention, the task's exact solver, and what
does without reading far, without mixing, and without order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

import msgspec

from lra.core.cells import QualityCell
from lra.report.entries import Entry, protocol_hash
from lra.report.quality.baselines import ENTROPY, FLOOR, SIMPLE, SOLVER, fitting
from lra.report.quality.columns import Column
from lra.report.quality.group import Group
from lra.report.quality.score import ACCURACY, Score
from lra.report.rows import EXACT, NO_MIXING
from lra.report.words import count, figures

SHUFFLED = "shuffled input"
"""Exact attention trained and tested on it."""


class Window(msgspec.Struct, frozen=True):
    """Through what a windowed mechanism saw its input."""

    name: str
    reads_all: bool
    """Whether some token reads the longest input whole, each layer reaching a window further."""


def window(cell: QualityCell, entry: Entry) -> Window:
    """Return the window of a training through one."""
    left, right = (int(cell.mechanism.config[side]) for side in ("left", "right"))
    a_layer = left if entry.direction == "causal" else left + right
    reads_all = cell.model.layers * a_layer + 1 >= cell.data.length
    return Window(f"window of {left} left, {right} right", reads_all)


def as_given(cell: QualityCell) -> str:
    """Return the protocol of the same training on input in its own order."""
    replace = msgspec.structs.replace
    return protocol_hash(replace(cell, data=replace(cell.data, order="given")))


class Certified:
    """What was reached on one task, as shares of 1 or in bits: with attention, and without this or
    that."""

    def __init__(
        self,
        score: Score,
        column: Column,
        group: Iterable[Entry],
        windows: Mapping[str, Window],
        shuffled: Iterable[Entry],
        simple: Sequence[Entry],
    ) -> None:
        self.score, self.title = score, column.title
        own = [e for e in group if e.protocol == column.protocol]
        baselines = fitting(simple, column.cell)
        solver = SOLVER if score == ACCURACY else FLOOR
        solvers = [e for e in baselines if e.metric == solver]
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
        rules = {e.metric: e for e in baselines if e.metric not in (*SIMPLE, solver)}
        found: dict[str, float | None] = {
            **{name: _mean(entries) for name, entries in sorted(through.items())},
            f"no mixing ({NO_MIXING})": _mean(e for e in own if e.mechanism == NO_MIXING),
            SHUFFLED: _mean(shuffled),
            **{name: _mean(e for e in baselines if e.metric == m) for m, name in SIMPLE.items()},
            **{entry.label: entry.value for _, entry in sorted(rules.items())},
        }
        self.without = {name: value for name, value in found.items() if value is not None}

    @property
    def shortcuts(self) -> list[str]:
        """What does without attention over all of an input in its order."""
        return [name for name in self.without if name not in self.reads_all]

    @property
    def is_reportable(self) -> bool:
        """Whether there is something to tell: of a task whose own order could matter, not without
        exact attention on shuffled input, since the best shortcut is the best of those tried."""
        controlled = self.by_token or SHUFFLED in self.without
        return controlled and self.exact is not None and bool(self.shortcuts)

    @property
    def best(self) -> str:
        """Which of these comes nearest."""
        return max(self.shortcuts, key=lambda name: self.score.gain(self.without[name]))

    @property
    def margin(self) -> float:
        """By how much exact attention is better than that."""
        return self.score.gain(self.exact or 0.0) - self.score.gain(self.without[self.best])

    def sentence(self, under: Group) -> str:
        """Return it in words."""
        if self.score == ACCURACY:
            way = "above" if self.margin >= 0 else "below"
            apart, unit = f"{100 * abs(self.margin):.1f} points {way}", " %"
            solver = "the task's exact solver reaches"
        else:
            way = "fewer" if self.margin >= 0 else "more"
            apart, unit = f"{figures(abs(self.margin))} {way} than", " bits per byte"
            solver = f"{ENTROPY} is"
        known = "" if self.solver is None else f"; {solver} {self.score.text(self.solver)}{unit}"
        exact, best = self.score.text(self.exact or 0.0), self.score.text(self.without[self.best])
        return (
            f"{self.title}, scale {under.words}: exact attention reaches {exact}{unit} "
            f"({count(self.seeds, 'seed')}), {apart} the best shortcut ({self.best}, {best}{unit})"
            f"{known}."
        )


def _mean(found: Iterable[Entry]) -> float | None:
    """Over seeds."""
    values = [entry.value for entry in _of_origin(found) if entry.value is not None]
    return fmean(values) if values else None


def _of_origin(found: Iterable[Entry]) -> list[Entry]:
    """Those with a value: the run's own where it has any, else the reference's."""
    entries = [entry for entry in found if entry.value is not None]
    return [entry for entry in entries if entry.origin == "run"] or entries
