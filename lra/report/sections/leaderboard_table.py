"""The leaderboard's table: a row a mechanism, a column a line of `COLUMNS`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from lra.core.catalogue import EXACT
from lra.report.leaderboard import Entry, Leaderboard, Ratio
from lra.report.model import Row, Table, Value
from lra.report.plots.names import hollow_note
from lra.report.score_text import score_text
from lra.report.words import DAGGER, NO_VALUE, TIMES, figures, listing

DOING = {"train": "training", "forward": "forward"}
_LEAST = 0.001
"""Ratios below are told as less than it."""


def leaderboard_table(board: Leaderboard) -> Table:
    """Return the leaderboard: a row a mechanism, the most accurate first."""
    cells = {one.key: [value(one, board) for _, value in COLUMNS] for one in board.entries}
    kept = [
        place
        for place in range(len(COLUMNS))
        if any(own[place] is not None for own in cells.values())
    ]
    rows = []
    for one in sorted(board.entries, key=order):
        values = tuple(cells[one.key][place] or Value(NO_VALUE) for place in kept)
        rows.append(
            Row(board.name(one), values, one.key.mechanism, one.key.variant, one.key.origin)
        )
    return Table(
        id="leaderboard",
        title="Leaderboard",
        caption=_caption(board),
        corner="mechanism",
        columns=tuple(COLUMNS[place][0].format(DOING[board.mode]) for place in kept),
        rows=tuple(rows),
        notes=tuple(_notes(board)),
    )


def is_ranking(board: Leaderboard) -> bool:
    """Return whether any mechanism has an accuracy over all tasks or a cost to be ranked by."""
    return any(
        one.time or one.decode or (one.score and not math.isnan(one.score.mean))
        for one in board.entries
    )


def order(one: Entry) -> tuple[object, ...]:
    """Return the place of a row: the run's first, then the most accurate, then the fastest."""
    mean = one.score.mean if one.score and not math.isnan(one.score.mean) else -1.0
    time = one.time.value if one.time else math.inf
    return (one.key.origin != "run", -mean, time, one.key.label)


def accuracy_text(one: Entry, board: Leaderboard) -> str:
    """Return the accuracy in percent with the digits that it bears."""
    if board.scores is None or one.score is None or math.isnan(one.score.mean):
        return NO_VALUE
    return score_text(one.score, min(column.rows.test for column in board.scores.columns))


def _accuracy(one: Entry, board: Leaderboard) -> Value | None:
    if one.score is None or math.isnan(one.score.mean):
        return None
    text = accuracy_text(one, board)
    text = f"{text} {DAGGER}" if is_unsure(one) else text
    return Value(text, "", one.score.mean, one.key in board.front)


def is_unsure(one: Entry) -> bool:
    """Return whether its accuracy is marked: on some task a shortcut may do as well."""
    has_accuracy = one.score is not None and not math.isnan(one.score.mean)
    return has_accuracy and one.shortcuts_beaten in ("some", "none")


def ratio_value(one: Ratio | None, best: bool = False) -> Value:
    """Return a cost over exact attention's as it stands in a table."""
    return _ratio(one, best) or Value(NO_VALUE)


def _ratio(one: Ratio | None, best: bool = False) -> Value | None:
    if one is None:
        return None
    small = 0 < one.value < _LEAST
    number = f"< {_LEAST}" if small else figures(one.value, one.spread, most=2)
    text = f"{number}{TIMES}"
    return Value(text, "", one.value, best, one.disturbed)


def _pays_from(one: Entry, _: Leaderboard) -> Value | None:
    if one.pays_from is None:
        return None
    return Value(one.pays_from.text, "", one.pays_from.number, False, one.pays_from.disturbed)


def _laws(one: Entry, _: Leaderboard) -> Value | None:
    if one.check is None:
        return None
    held = one.check.held
    claimed = held + len(one.check.broken)
    return Value(f"{held} of {claimed}", "", held / (claimed or 1))


COLUMNS: Sequence[tuple[str, Callable[[Entry, Leaderboard], Value | None]]] = (
    ("accuracy, %", _accuracy),
    ("{} time", lambda one, board: _ratio(one.time, one.key in board.front)),
    ("memory", lambda one, _: _ratio(one.memory)),
    ("decoding time", lambda one, _: _ratio(one.decode)),
    ("state", lambda one, _: _ratio(one.state)),
    ("pays from", _pays_from),
    ("laws held", _laws),
)
"""Titles and values of the columns, None where there is no value; a column without any is left out.
The braces are for the mode of the timed calls."""


UNSURE = (
    f"{DAGGER}: on some task not surely better than the best shortcut; nothing is shown about "
    "attention there."
)


def _caption(board: Leaderboard) -> str:
    parts = []
    tasks = [] if board.scores is None else [c.title for c in board.scores.averaged]
    if board.scores is not None and not tasks and len(board.scores.columns) == 1:
        tasks = [board.scores.columns[0].title]
    if board.scores is not None and tasks:
        over = f"mean over {listing(tasks)}" if len(tasks) > 1 else f"on {listing(tasks)}"
        left = [c.title for c in board.scores.local if c not in board.scores.averaged]
        out = f" Left out as local: {listing(left)}." if left else ""
        parts.append(f"Accuracy: {over}, {', '.join(board.scores.setting.parts)}.{out}")
    if board.setting is not None:
        own = board.setting
        parts.append(
            f"Costs: {TIMES} those of {EXACT} at length {board.length:,}, {', '.join(own.called)}."
        )
    if board.decoding is not None:
        parts.append(f"Decoding: one position after {board.decoded:,}.")
    return " ".join(parts)


def _notes(board: Leaderboard) -> list[str]:
    notes: list[str] = []
    if board.front:
        notes.append(
            f"Bold: on the front of accuracy and {DOING[board.mode]} time, where differences are "
            "told apart."
        )
    if any(is_unsure(one) for one in board.entries):
        notes.append(UNSURE)
    ratios = [one.time for one in board.entries if one.time]
    if any(one.other_settings for one in ratios) or any(one.elsewhere for one in ratios):
        notes.append("Some were timed with other settings, or on another machine: see Trade-off.")
    *before, last = notes or [""]
    last += hollow_note(one.key for one in board.entries)
    return [*before, last.strip()] if last else before
