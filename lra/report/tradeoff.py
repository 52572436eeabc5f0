"""Where each mechanism stands between accuracy, training speed and memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from lra.report.efficiency import EfficiencyTables
from lra.report.entries import Origin
from lra.report.quality import QualityTable
from lra.report.rows import EXACT
from lra.report.table import Cell, Row, Table


class Circle(msgspec.Struct, frozen=True):
    """One mechanism in the figure."""

    row: Row
    """Of the accuracy table."""
    accuracy: float
    seconds: float
    """Of a training step."""
    memory: float
    """Bytes, at the peak of a training step."""
    elsewhere: bool
    """Measured on another machine class or build, brought here by its ratios to exact attention."""
    disturbed: bool = False
    """A time that places it was taken, wholly or in part, while the machine was busy."""


class Tradeoff(msgspec.Struct, frozen=True):
    """All mechanisms that can be placed at one length."""

    length: str
    level: str
    batch: int
    circles: tuple[Circle, ...]
    missing: tuple[str, ...]
    """Mechanisms without an accuracy, a time or a size there."""
    exact_seconds: float | None
    """Of exact attention in the run."""
    exact_disturbed: bool = False
    """Likewise of that time."""


def tradeoff(quality: QualityTable, costs: Sequence[EfficiencyTables]) -> Tradeoff | None:
    """Place the mechanisms of an accuracy table at the longest length that most of them reached.

    What was timed on another machine class or build enters only by its ratios to exact attention,
    and only where that was timed on both. None with fewer than two to place.
    """
    here = next((c for c in costs if not c.reference_only and "train" in c.latency), None)
    rows = _accuracies(quality)
    if here is None or not rows:
        return None
    latency = here.latency["train"]
    trained = {row.variant for row, _ in rows}
    length = _common_length(latency, [row for row, _ in rows], trained)
    circles = []
    for row, accuracy in rows:
        # A reference accuracy goes with the run's own timing, unless the run has its own accuracy.
        alone = quality.table.row(row.variant, "run" if row.origin == "reference" else "reference")
        origins: tuple[Origin, ...] = (row.origin,) if alone else (row.origin, "run", "reference")
        circle = _circle(row, accuracy, length, origins, trained, here, costs)
        circles += [circle] if circle else []
    if len(circles) < 2:
        return None
    placed = {(circle.row.origin, circle.row.variant) for circle in circles}
    anchor = latency.row(EXACT, "run")
    exact = anchor.cells[latency.columns.index(length)] if anchor else None
    return Tradeoff(
        length=length,
        level=here.level,
        batch=here.batch,
        circles=tuple(circles),
        missing=tuple(
            row.label
            for row in quality.table.rows
            if row.mechanism and (row.origin, row.variant) not in placed
        ),
        exact_seconds=exact.value if exact else None,
        exact_disturbed=exact is not None and _is_marked(exact.text),
    )


def _accuracies(quality: QualityTable) -> list[tuple[Row, float]]:
    """Mechanisms with a mean accuracy, or with that of the only task."""
    if not quality.mean_of and len(quality.columns) > 1:
        return []
    rows = [row for row in quality.table.rows if row.mechanism]
    return [(row, cell.value) for row in rows for cell in row.cells[-1:] if cell.value is not None]


def _common_length(latency: Table, rows: Sequence[Row], trained: Collection[str]) -> str:
    """The longest length among those at which most of these mechanisms have a time."""
    timed = [found for row in rows if (found := latency.nearest(row, "run", trained))]

    def reached(place: int) -> tuple[int, int]:
        return sum(row.cells[place].value is not None for row in timed), place

    return latency.columns[max(range(len(latency.columns)), key=reached)]


def _circle(
    row: Row,
    accuracy: float,
    length: str,
    origins: Sequence[Origin],
    trained: Collection[str],
    here: EfficiencyTables,
    costs: Sequence[EfficiencyTables],
) -> Circle | None:
    """Place a mechanism by its own figures here, or by its ratios elsewhere."""
    own = _cells(here, row, origins, trained, length)
    if own and own[0].value and own[1].value:
        busy = _is_marked(own[0].text)
        return Circle(row, accuracy, own[0].value, own[1].value, elsewhere=False, disturbed=busy)
    anchor = here.latency["train"].row(EXACT, "run")
    exact = _cells(here, anchor, ("run",), trained, length) if anchor else None
    if exact is None or not exact[0].value or not exact[1].value:
        return None
    for other in costs:
        if not other.reference_only:
            continue
        cells = _cells(other, row, origins, trained, length)
        if cells and cells[0].ratio and cells[1].ratio:
            seconds, memory = cells[0].ratio * exact[0].value, cells[1].ratio * exact[1].value
            busy = _is_marked(cells[0].note) or _is_marked(exact[0].text)
            return Circle(row, accuracy, seconds, memory, elsewhere=True, disturbed=busy)
    return None


def _is_marked(text: str) -> bool:
    """Whether a time or a ratio says that the machine was busy."""
    return text.startswith("!")


def _cells(
    costs: EfficiencyTables,
    row: Row,
    origins: Sequence[Origin],
    trained: Collection[str],
    length: str,
) -> tuple[Cell, Cell] | None:
    """Time and memory of a training step, from the first of these origins that has them.

    Where the accuracy's own settings were not timed, those of the mechanism that were, and were
    not trained.
    """
    latency, memory = costs.latency.get("train"), costs.memory.get("train")
    if latency is None or memory is None or length not in latency.columns:
        return None
    place = latency.columns.index(length)
    for origin in origins:
        time, room = (table.nearest(row, origin, trained) for table in (latency, memory))
        if time and room:
            return time.cells[place], room.cells[place]
    return None
