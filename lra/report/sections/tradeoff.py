"""Accuracy against training time, length by length, with the front of each."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lra.core.catalogue import CONTROLS, EXACT
from lra.report.accuracy import ACCURACY, Accuracies
from lra.report.analysis import Analysis
from lra.report.leaderboard import Entry, Leaderboard, leaderboard, main_setting
from lra.report.model import Row, Section, Table, Value, drawn
from lra.report.plots.tradeoff import tradeoff_figure
from lra.report.rows import of_the_run
from lra.report.score_text import score_text
from lra.report.sections.accuracy import lengths_text
from lra.report.words import NO_VALUE, figures

_OTHER_SETTINGS = "*"
"""Mark of a time with other settings than those of the training."""


def sections(analysis: Analysis) -> list[Section]:
    """Return a section for each table of accuracies with two mechanisms or more in its figure."""
    found = []
    for scores in analysis.accuracies:
        if scores.metric == ACCURACY and not scores.setting.by_token:
            boards = analyse(analysis, scores)
            if boards:
                found.append(present(scores, boards, analysis))
    return found


def analyse(analysis: Analysis, scores: Accuracies) -> list[Leaderboard]:
    """Return the leaderboard at each timed length. A length at which fewer than half as many
    mechanisms can be placed as at another is left out, since missing ones may be on its front."""
    setting, _ = main_setting(analysis, "train")
    if setting is None:
        return []
    own = analysis.costs.figures
    own = own[(own["setting"] == setting.id) & (own["mode"] == "train") & own["value"].notna()]
    boards = [leaderboard(analysis, scores, int(n)) for n in sorted(set(own["length"]))]
    placed = [sum(_is_placed(one) for one in board.entries) for board in boards]
    most = max(placed, default=0)
    return [
        board
        for board, number in zip(boards, placed, strict=True)
        if number >= 2 and 2 * number >= most
    ]


def present(scores: Accuracies, boards: list[Leaderboard], analysis: Analysis) -> Section:
    """Return the times by length with each length's front, and the figure at the last."""
    last = boards[-1]
    rows = min(column.rows.test for column in scores.columns)
    lines = []
    for place, one in enumerate(last.entries):
        if one.score is None or math.isnan(one.score.mean):
            continue
        values = [Value(score_text(one.score, rows), "", one.score.mean)]
        values += [_ratio(board.entries[place], board) for board in boards]
        lines.append(one.key.row(values))
    is_first = scores is analysis.main
    if not is_first:
        lines = [row for row in lines if _is_told(row)]
    lines.sort(key=lambda row: (row.origin != "run", -(row.values[0].number or 0.0), row.label))
    table = _table(scores, boards, of_the_run(lines))
    drawing = tradeoff_figure(last, analysis.looks, f"tradeoff-{scores.setting.id}")
    return Section(
        topic="Trade-off",
        setting=", ".join(scores.setting.parts),
        tables=(table,),
        # The figure of the first table is the headline's.
        figures=drawn([None if is_first else drawing]),
    )


def _is_told(row: Row) -> bool:
    """Whether a row is on a front, or one that fronts are read against. The times of all others are
    in the first table, and their accuracies in those of accuracy."""
    return row.mechanism in (EXACT, *CONTROLS) or any(value.best for value in row.values)


def _is_placed(one: Entry) -> bool:
    return bool(one.time and one.score and not math.isnan(one.score.mean))


def _ratio(one: Entry, board: Leaderboard) -> Value:
    if one.time is None:
        return Value(NO_VALUE)
    mark = "elsewhere" if one.time.elsewhere else ""
    others = _OTHER_SETTINGS if one.time.other_settings else ""
    text = f"{figures(one.time.value, one.time.spread)}{others}"
    return Value(text, mark, one.time.value, one.key in board.front, one.time.disturbed)


def _table(scores: Accuracies, boards: list[Leaderboard], lines: Sequence[Row]) -> Table:
    shown = {(row.origin, row.variant) for row in lines}
    times = [
        one.time
        for board in boards
        for one in board.entries
        if one.time and (one.key.origin, one.key.variant) in shown
    ]
    legend = [
        "Bold: on the front of its length. Nobody is surely better in one of accuracy and time "
        "and not surely worse in the other."
    ]
    if any(time.elsewhere for time in times):
        legend.append("elsewhere: on another machine class or build, by its ratio there.")
    if any(time.other_settings for time in times):
        legend.append(f"{_OTHER_SETTINGS}: timed with other settings than it was trained with.")
    return Table(
        id=f"front-{scores.setting.id}",
        title=f"Time of a training step over that of {EXACT}, by length",
        caption=f"Accuracy is of training on {lengths_text(scores.averaged or scores.columns)}.",
        corner="mechanism",
        columns=("accuracy, %", *(f"{board.length:,}" for board in boards)),
        rows=tuple(lines),
        legend=tuple(legend),
    )
