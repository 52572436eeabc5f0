"""Which mechanisms no other beats in accuracy and time at once, length by length."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lra.report.costs.tables import EfficiencyTables
from lra.report.mechanisms.settings import StandIns
from lra.report.quality.tables import QualityTable
from lra.report.rows import EXACT, NO_MIXING
from lra.report.table import Cell, Row, Table
from lra.report.tradeoff.points import Circle, Tradeoff, at_length, lengths
from lra.report.words import TIMES, figures, is_failure, quantity


class Front(msgspec.Struct, frozen=True):
    """What is placed at one length, and who is on the front there."""

    placed: Tradeoff
    members: tuple[Circle, ...]
    """The fastest first, so that accuracy rises."""

    def reach(self, circle: Circle) -> float:
        """Return the time of a training step over that of exact attention; in seconds where that
        has none."""
        return circle.seconds / (self.placed.exact_seconds or 1.0)


def fronts(
    quality: QualityTable, costs: Sequence[EfficiencyTables], instead: StandIns
) -> tuple[Front, ...]:
    """Return the front at each timed length with two mechanisms or more to place.

    Left out is a length at which fewer than half as many were tried as at another: who is missing
    there may be on its front.
    """
    placed = [at_length(quality, costs, instead, length) for length in lengths(costs)]
    there = [one for one in placed if one is not None]
    most = max(map(_tried, there), default=0)
    return tuple(Front(one, members(one.circles)) for one in there if 2 * _tried(one) >= most)


def _tried(placed: Tradeoff) -> int:
    return len(placed.circles) + sum(is_failure(one.why) for one in placed.missing)


def members(circles: Sequence[Circle]) -> tuple[Circle, ...]:
    """Return those that no other is as accurate and as fast as, and better in one of the two.

    No mixing is left out: it would always be the fastest, and is no choice.
    """
    asked = [circle for circle in circles if circle.row.mechanism != NO_MIXING]
    kept = [one for one in asked if not any(_beats(other, one) for other in asked)]
    return tuple(sorted(kept, key=lambda one: (one.seconds, one.accuracy, one.row.title)))


def _beats(one: Circle, other: Circle) -> bool:
    return (
        one.seconds <= other.seconds
        and one.accuracy >= other.accuracy
        and (one.seconds < other.seconds or one.accuracy > other.accuracy)
    )


def front_table(quality: QualityTable, found: Sequence[Front]) -> Table:
    """Return the mechanisms by length: time over exact attention and memory, the front bold."""
    exact = all(front.placed.exact_seconds is not None for front in found)
    rows = [row for row in quality.table.rows if row.mechanism]
    one = found[0].placed
    notes = [
        "Bold: on the front of its length: no other mechanism is at least as accurate and at least "
        "as fast. It is of the figures as they are: a difference within their spread can move it.",
        f"{NO_MIXING} stands in no front.",
    ]
    if not exact:
        notes.append(f"In seconds: lengths at which {EXACT} has no time.")
    if any(_disturbed(front, circle) for front in found for circle in front.placed.circles):
        notes.append("!: timed, wholly or in part, on a busy machine.")
    what = "attention" if one.level == "attention" else one.level
    return Table(
        id=quality.table.id.replace("quality", "front"),
        title=f"Accuracy against time by length {quality.where}",
        caption=f"Time of a training step of the {what} over that of {EXACT}, by sequence length, "
        "and its peak memory.",
        corner="mechanism",
        columns=("accuracy", *(front.placed.length for front in found)),
        rows=tuple(
            msgspec.structs.replace(
                row,
                cells=(
                    msgspec.structs.replace(row.cells[-1], note="", strong=False),
                    *(_cell(row, front) for front in found),
                ),
            )
            for row in rows
        ),
        notes=tuple(notes),
    )


def _cell(row: Row, front: Front) -> Cell:
    circle = next((c for c in front.placed.circles if c.row is row), None)
    if circle is None:
        return Cell(next(one.why for one in front.placed.missing if one.row is row))
    reach = front.reach(circle)
    timed = f"{figures(reach)} {TIMES}" if front.placed.exact_seconds else quantity(reach, "s")
    return Cell(
        ("!" if _disturbed(front, circle) else "") + timed,
        quantity(circle.memory, "B"),
        reach,
        strong=circle in front.members,
    )


def _disturbed(front: Front, circle: Circle) -> bool:
    """Whether a ratio has a time of a busy machine above or below its line; that of a circle placed
    by a ratio from elsewhere has none of the run's."""
    below = front.placed.exact_disturbed and not circle.moved
    return circle.disturbed or below
