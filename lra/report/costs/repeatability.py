"""How well times repeat: their ratio to the control over processes, the figure that travels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from lra.report.costs.derived import why_none
from lra.report.costs.disturbed import SIGNS
from lra.report.entries import Busy, Entry, Origin
from lra.report.rows import RowKey, reference_notes, row, shown
from lra.report.table import Cell, Table
from lra.report.words import between, count, figures, percent, span
from lra.verdict.ratio import Ratio
from lra.verdict.repeatability import (
    LONG,
    ControlledCost,
    ControlledCosts,
    control_ratio,
    median_width,
)

_TIMES = ("latency", "control_before", "control_after")


class RepeatTables(msgspec.Struct, frozen=True):
    """What replicates say of one setting; nothing where no cell has two."""

    text: tuple[str, ...] = ()
    """How wide the run's intervals are, a sentence for each mode in which it has any."""
    tables: tuple[Table, ...] = ()
    """Ratios to the control, a table for each mode."""


class _Place(msgspec.Struct, frozen=True):
    """One mechanism at one length."""

    own: list[Entry]
    """Its latencies, by replicate."""
    ratio: Ratio | None
    busy: int
    """Processes during which the machine was busy."""

    @property
    def several(self) -> bool:
        """Whether there is an interval."""
        return self.ratio is not None and self.ratio.pairs > 1

    def cell(self) -> Cell:
        """Return the place as it is printed: `12.3`, below it `12.0 to 12.6`."""
        found = self.ratio
        if found is None:
            return Cell(why_none(self.own))
        busy = self.busy > 0
        if found.low is None or found.high is None:
            return Cell(figures(found.value), "1 process", found.value, busy=busy)
        spread = found.high - found.low
        bounds = between(found.low, found.high)
        return Cell(figures(found.value, spread), bounds, found.value, spread, busy=busy)


def repeatability(
    number: int,
    group: Sequence[Entry],
    calls: Mapping[str, str],
    busy: Busy,
) -> RepeatTables:
    """Return what replicates say of the entries of one setting.

    `calls` has what one call of each mode is, in the order of the tables.
    """
    text, tables = [], []
    for mode, call in calls.items():
        entries = [e for e in group if e.mode == mode and e.metric in _TIMES]
        rows = shown([e for e in entries if e.metric == "latency"])
        controls = {(e.origin, e.record, e.metric): e.value for e in entries}
        places = {
            (key, length): _place(found, controls, busy)
            for key, own in rows.items()
            for length, found in _by_length(own).items()
        }
        if not any(place.several for place in places.values()):
            continue
        of_run = {place: found for place, found in places.items() if place[0][0] == "run"}
        if any(place.several for place in of_run.values()):
            text.append(_sentence(mode, of_run))
        lengths = sorted({length for _, length in places})
        tables.append(
            Table(
                id=f"repeatability-{mode}-{number}",
                title=f"Ratio of a {call} to the control",
                caption="Its time over that of a plain matrix product in the same process, by "
                "sequence length: geometric mean over processes, with its 95 % interval. This is "
                "the figure to repeat.",
                corner="mechanism",
                columns=tuple(str(length) for length in lengths),
                rows=tuple(
                    row(own, [places.get((key, n), _NONE).cell() for n in lengths])
                    for key, own in rows.items()
                ),
                notes=(
                    *(
                        [f"!: the machine was busy in one of the processes, {SIGNS}."]
                        if any(place.busy for place in places.values())
                        else []
                    ),
                    *reference_notes(rows),
                ),
            )
        )
    return RepeatTables(tuple(text), tuple(tables))


_NONE = _Place([], None, 0)


def _by_length(own: Sequence[Entry]) -> dict[int, list[Entry]]:
    found: dict[int, list[Entry]] = defaultdict(list)
    for entry in own:
        found[entry.length].append(entry)
    return found


def _place(
    own: list[Entry],
    controls: Mapping[tuple[Origin, str, str], float | None],
    busy: Busy,
) -> _Place:
    def process(entry: Entry) -> ControlledCost:
        names = ("control_before", "control_after")
        framed = [controls.get((entry.origin, entry.record, name)) or 0.0 for name in names]
        return ControlledCost(entry.value or 0.0, *framed)

    processes: ControlledCosts = {entry.replicate or 0: process(entry) for entry in own}
    return _Place(own, control_ratio(processes), sum((e.origin, e.record) in busy for e in own))


def _sentence(mode: str, places: Mapping[tuple[RowKey, int], _Place]) -> str:
    """`Forward: at lengths of 1024 and more the 95 % intervals of 12 cells are 4 % wide ...`"""
    several = {place: found for place, found in places.items() if found.several}
    processes = span(found.ratio.pairs for found in several.values() if found.ratio)
    long = [found.ratio for (_, n), found in several.items() if n >= LONG and found.ratio]
    width = median_width(long)
    if width is None:
        told = f"no cell has {LONG} positions or more, from where on the width is stated"
    else:
        told = (
            f"at lengths of {LONG} and more the 95 % intervals of {count(len(long), 'cell')} are "
            f"{percent(width, width)} % wide (median)"
        )
    number = sum(found.busy for found in several.values())
    whole = sum(len(found.own) for found in several.values())
    return (
        f"{mode.capitalize()}: {told}; {count(len(several), 'cell')} of {processes} processes, the "
        f"machine busy in {number} of {whole}."
    )
