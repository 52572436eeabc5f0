"""Where each mechanism stands between accuracy, training speed and memory."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import msgspec

from lra.report.costs.tables import EfficiencyTables
from lra.report.entries import Origin
from lra.report.mechanisms.settings import StandIns
from lra.report.quality.tables import QualityTable
from lra.report.rows import EXACT
from lra.report.table import Cell, Row, Table
from lra.report.words import is_failure


class Circle(msgspec.Struct, frozen=True):
    """One mechanism in the figure."""

    row: Row
    """Of the accuracy table."""
    accuracy: float
    seconds: float
    """Of a training step."""
    memory: float
    """Bytes, at the peak of a training step."""
    moved: bool = False
    """Timed in another run, brought here by its ratios to exact attention there."""
    elsewhere: bool = False
    """And that on another machine class, or of another build or version of the code."""
    disturbed: bool = False
    """Its time, or a time of its ratio, was taken, wholly or in part, on a busy machine."""


class Missing(msgspec.Struct, frozen=True):
    """One mechanism of the accuracy table that has no place at a length."""

    row: Row
    why: str
    """How its timing ended there, or what it lacks."""


class Tradeoff(msgspec.Struct, frozen=True):
    """All mechanisms that can be placed at one length."""

    length: str
    level: str
    batch: int
    circles: tuple[Circle, ...]
    missing: tuple[Missing, ...]
    """Mechanisms without an accuracy, a time or a size there."""
    exact_seconds: float | None
    """Of exact attention in the run."""
    exact_disturbed: bool = False
    """Likewise of that time."""


def tradeoff(
    quality: QualityTable, costs: Sequence[EfficiencyTables], instead: StandIns
) -> Tradeoff | None:
    """Place the mechanisms of an accuracy table at the longest length that most of them reached;
    None with fewer than two to place."""
    here, rows = _timed(costs), _accuracies(quality)
    if here is None or not rows:
        return None
    length = _common_length(here.latency["train"], [row for row, _ in rows], instead)
    return at_length(quality, costs, instead, length)


def lengths(costs: Sequence[EfficiencyTables]) -> tuple[str, ...]:
    """Return the lengths at which training steps were timed, ascending."""
    here = _timed(costs)
    return here.latency["train"].columns if here else ()


def at_length(
    quality: QualityTable, costs: Sequence[EfficiencyTables], instead: StandIns, length: str
) -> Tradeoff | None:
    """Place the mechanisms of an accuracy table at one of the `lengths`.

    What was timed in another run enters by its ratios to exact attention there, if it has them: one
    of the two runs may have been slowed down. On another machine class or build it enters only so,
    and only where exact attention was timed on both. None with fewer than two to place.
    """
    here, rows = _timed(costs), _accuracies(quality)
    if here is None:
        return None
    circles = []
    for row, accuracy in rows:
        # A reference accuracy goes with the run's own timing, unless the run has its own accuracy.
        alone = quality.table.row(row.variant, "run" if row.origin == "reference" else "reference")
        origins: tuple[Origin, ...] = (row.origin,) if alone else (row.origin, "run", "reference")
        circle = _circle(row, accuracy, length, origins, instead, here, costs)
        circles += [circle] if circle else []
    if len(circles) < 2:
        return None
    placed = {(circle.row.origin, circle.row.variant) for circle in circles}
    accurate = {(row.origin, row.variant) for row, _ in rows}
    latency = here.latency["train"]
    anchor = latency.row(EXACT, "run")
    exact = anchor.cells[latency.columns.index(length)] if anchor else None
    return Tradeoff(
        length=length,
        level=here.level,
        batch=here.batch,
        circles=tuple(circles),
        missing=tuple(
            Missing(row, _why(row, length, here, instead, (row.origin, row.variant) in accurate))
            for row in quality.table.rows
            if row.mechanism and (row.origin, row.variant) not in placed
        ),
        exact_seconds=exact.value if exact else None,
        exact_disturbed=exact is not None and exact.busy,
    )


def _timed(costs: Sequence[EfficiencyTables]) -> EfficiencyTables | None:
    """The run's own first tables that have training steps."""
    return next((c for c in costs if not c.reference_only and "train" in c.latency), None)


def _why(row: Row, length: str, here: EfficiencyTables, instead: StandIns, accurate: bool) -> str:
    """Why a mechanism has no place: how its timing ended, or what it lacks."""
    if not accurate:
        return "no accuracy"
    cells = _cells(here, row, row.origin, instead, length) or _cells(
        here, row, "run", instead, length
    )
    if cells is None and row.origin == "run" and _is_timed(here, row.mechanism):
        return "timed with other settings"
    words = [cell.text for cell in cells or () if cell.value is None]
    return words[0] if words else "not timed"


def _accuracies(quality: QualityTable) -> list[tuple[Row, float]]:
    """Mechanisms with a mean accuracy, or with that of the only task."""
    if not quality.mean_of and len(quality.columns) > 1:
        return []
    rows = [row for row in quality.table.rows if row.mechanism]
    return [(row, cell.value) for row in rows for cell in row.cells[-1:] if cell.value is not None]


def _common_length(latency: Table, rows: Sequence[Row], instead: StandIns) -> str:
    """The longest length among those at which most of these mechanisms have a time."""
    timed = [found for row in rows if (found := _nearest(latency, row, "run", instead))]

    def reached(place: int) -> tuple[int, int]:
        return sum(row.cells[place].value is not None for row in timed), place

    return latency.columns[max(range(len(latency.columns)), key=reached)]


def _circle(
    row: Row,
    accuracy: float,
    length: str,
    origins: Sequence[Origin],
    instead: StandIns,
    here: EfficiencyTables,
    costs: Sequence[EfficiencyTables],
) -> Circle | None:
    """Place a mechanism by its own figures, or by its ratios to exact attention in another run.

    What the run trained has no place where its timing failed, or was of other settings alone.
    """
    if row.origin == "run":
        own = _cells(here, row, "run", instead, length)
        if own is None and _is_timed(here, row.mechanism):
            return None
        if own is not None and is_failure(own[0].text):
            return None
    exact = _exact(here, instead, length)
    asked = _asked(here)
    places = (here, *(o for o in costs if o.reference_only and _asked(o) == asked))
    for place, origin in product(places, origins):
        cells = _cells(place, row, origin, instead, length)
        if cells is None:
            continue
        time, room = cells
        elsewhere = place is not here
        if exact and (origin == "reference" or elsewhere) and time.ratio and room.ratio:
            seconds, memory = time.ratio * exact[0], room.ratio * exact[1]
            return Circle(row, accuracy, seconds, memory, True, elsewhere, time.ratio_busy)
        if not elsewhere and time.value and room.value:
            return Circle(row, accuracy, time.value, room.value, disturbed=time.busy)
    return None


def _is_timed(here: EfficiencyTables, mechanism: str) -> bool:
    rows = here.latency["train"].rows
    return any(row.origin == "run" and row.mechanism == mechanism for row in rows)


def _asked(costs: EfficiencyTables) -> tuple[object, ...]:
    """What a call is of: times of no other call stand for it."""
    e = costs.entries[0]
    sizes = (e.batch, e.heads, e.head_width, e.dtype, e.execution)
    return (e.level, e.task, e.direction, *sizes, e.device, e.model)


def _exact(here: EfficiencyTables, instead: StandIns, length: str) -> tuple[float, float] | None:
    """Time and memory of exact attention in the run, if it has both."""
    anchor = here.latency["train"].row(EXACT, "run")
    cells = _cells(here, anchor, "run", instead, length) if anchor else None
    if cells is None or not cells[0].value or not cells[1].value:
        return None
    return cells[0].value, cells[1].value


def _cells(
    costs: EfficiencyTables, row: Row, origin: Origin, instead: StandIns, length: str
) -> tuple[Cell, Cell] | None:
    """Time and memory of a training step."""
    latency, memory = costs.latency.get("train"), costs.memory.get("train")
    if latency is None or memory is None or length not in latency.columns:
        return None
    place = latency.columns.index(length)
    time, room = (_nearest(table, row, origin, instead) for table in (latency, memory))
    return (time.cells[place], room.cells[place]) if time and room else None


def _nearest(table: Table, row: Row, origin: Origin, instead: StandIns) -> Row | None:
    """The row of the accuracy's own settings, or of those that stand for them."""
    stand_in = instead.get((row.mechanism, origin), "")
    return table.row(row.variant, origin) or table.row(stand_in, origin)
