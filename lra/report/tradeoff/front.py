"""Which mechanisms no other beats in accuracy and time at once, length by length."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lra.report.costs.tables import EfficiencyTables
from lra.report.mechanisms.settings import StandIns, in_words
from lra.report.quality.tables import QualityTable
from lra.report.rows import EXACT, NO_MIXING, RowKey
from lra.report.table import Cell, Row, Table
from lra.report.tradeoff.points import Circle, Tradeoff, at_length, lengths
from lra.report.words import TIMES, figures, is_failure, listing, quantity

ON_FRONT = "no other mechanism is at least as accurate and as fast, and better in one of the two"
"""What all on it have in common, in words."""
_OTHERWISE = "timed otherwise"
"""Beside an accuracy, where the times are of other settings."""


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
    rows = [row for row in quality.table.rows if row.mechanism]
    otherwise = _otherwise(quality, found)
    return Table(
        id=f"front-{quality.number}",
        title=f"Accuracy against time by length {quality.where}",
        caption=f"Time of a training step of the {found[0].placed.level} over that of {EXACT}, by "
        f"sequence length, and its peak memory. Accuracy is of training on {quality.tokens}.",
        corner="mechanism",
        columns=("accuracy", *(front.placed.length for front in found)),
        rows=tuple(
            msgspec.structs.replace(
                row,
                cells=(
                    msgspec.structs.replace(
                        row.cells[-1],
                        note=_OTHERWISE if (row.origin, row.variant) in otherwise else "",
                        strong=False,
                    ),
                    *(_cell(row, front) for front in found),
                ),
            )
            for row in rows
        ),
        notes=tuple(_notes(quality, found, otherwise)),
    )


def _otherwise(quality: QualityTable, found: Sequence[Front]) -> set[RowKey]:
    """What has a place and was timed with other settings than it was trained with."""
    scale, circles = quality.group.scale, [c for front in found for c in front.placed.circles]
    placed: set[RowKey] = {(circle.row.origin, circle.row.variant) for circle in circles}
    return {key for key in placed if (scale, key[1]) in quality.differences}


def _notes(quality: QualityTable, found: Sequence[Front], otherwise: set[RowKey]) -> list[str]:
    """What is bold, what is left out, and which figures do not mean what they seem to."""
    circles = [(front, circle) for front in found for circle in front.placed.circles]
    notes = [
        f"Bold: on the front of its length: {ON_FRONT}. It is of the figures as they are: a "
        "difference within their spread can move it."
    ]
    if any(circle.row.mechanism == NO_MIXING for _, circle in circles):
        notes.append(
            f"No mixing ({NO_MIXING}) is left out of the front: it would always be the fastest."
        )
    placed = {circle.row.variant for _, circle in circles}
    alike = [label for label in quality.alike if label in placed]
    if len(alike) > 1:
        # Of the tuned track each has a learning rate of its own.
        tuned = quality.group.track == "tuned"
        chance = "" if tuned else "; differences of accuracy between them are chance"
        notes.append(f"{listing(alike)} compute the same function{chance}.")
    if any(front.placed.exact_seconds is None for front in found):
        notes.append(f"In seconds: lengths at which {EXACT} has no time.")
    if any(disturbed(front, circle) for front, circle in circles):
        notes.append("!: timed, wholly or in part, on a busy machine.")
    shown = {(quality.group.scale, label) for _, label in otherwise}
    return [*notes, *in_words(quality.differences, shown)]


def _cell(row: Row, front: Front) -> Cell:
    circle = next((c for c in front.placed.circles if c.row is row), None)
    if circle is None:
        return Cell(next(one.why for one in front.placed.missing if one.row is row))
    reach = front.reach(circle)
    timed = f"{figures(reach)} {TIMES}" if front.placed.exact_seconds else quantity(reach, "s")
    return Cell(
        timed,
        quantity(circle.memory, "B"),
        reach,
        strong=circle in front.members,
        busy=disturbed(front, circle),
    )


def disturbed(front: Front, circle: Circle) -> bool:
    """Whether a ratio has a time of a busy machine above or below its line; that of a circle placed
    by a ratio from elsewhere has none of the run's."""
    below = front.placed.exact_disturbed and not circle.moved
    return circle.disturbed or below
