"""The first screen: at most five sentences, the trade-off figure and the leaderboard."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

from lra.core.catalogue import EXACT, NO_MIXING
from lra.report.analysis import Analysis
from lra.report.leaderboard import Leaderboard, Ratio, Standing, leaderboard
from lra.report.model import Headline, Row, Table, Value
from lra.report.plots.tradeoff import tradeoff_figure
from lra.report.sections import error, profile
from lra.report.sections.accuracy import score_text
from lra.report.sections.caveats import caveats
from lra.report.words import (
    NO_VALUE,
    TIMES,
    figures,
    listing,
    listing_of,
)
from lra.report.write.markdown import plain_text

EMPTY = "There is no record to report: run python -m lra run --impl performer, then report again."
_MOST = 5
_LEAST = 0.001
"""Ratios below this are shown as less than it."""
_NAMED = 3
"""Number of mechanisms that a sentence names."""


def headline(analysis: Analysis) -> Headline:
    """Return the first screen of a report."""
    board = leaderboard(analysis)
    return Headline(
        sentences=_first_sentences(analysis, board),
        figure=tradeoff_figure(board, analysis.looks),
        leaderboard=present(board) if board.standings else None,
        caveats=caveats(analysis),
    )


def spoken(analysis: Analysis) -> tuple[tuple[str, ...], str]:
    """Return the sentences and the small table to print: the run against exact attention and no
    mixing; for a store of profiles alone, those of the profiles."""
    board = leaderboard(analysis)
    if not board.standings:
        told, table = profile.spoken(analysis.evidence) or (_first_sentences(analysis, board), None)
        tables = [table] if table else [t for s in error.sections(analysis) for t in s.tables[:1]]
        return (*told, *caveats(analysis)), plain_text(tables[0]) if tables else ""
    table = present(board)
    wanted = [
        row for row in table.rows if row.origin == "run" or row.mechanism in (EXACT, NO_MIXING)
    ]
    small = Table(table.id, table.title, table.caption, table.corner, table.columns, tuple(wanted))
    return (*_first_sentences(analysis, board), *caveats(analysis)), plain_text(small)


def _first_sentences(analysis: Analysis, board: Leaderboard) -> tuple[str, ...]:
    """Sentences, five at most: the leaderboard's, else those on errors or profiles."""
    found = sentences(board) or error.sentences(analysis)
    if not found:
        profiled = profile.spoken(analysis.evidence)
        found = list(profiled[0]) if profiled else []
    if not found and analysis.evidence.checks:
        found = ["The run has conformance checks alone: see Capabilities."]
    return tuple(found[:_MOST]) or (EMPTY,)


def present(board: Leaderboard) -> Table:
    """Return the leaderboard as a table: one row for each mechanism, most accurate first."""
    known = Counter((one.key.origin, one.key.mechanism) for one in board.standings)
    columns: list[tuple[str, Callable[[Standing], Value]]] = [
        ("accuracy, %", lambda one: _accuracy(one, board)),
        ("training time", lambda one: _ratio(one.train, one.key in board.front)),
        ("memory", lambda one: _ratio(one.memory)),
        ("decoding time", lambda one: _ratio(one.decode)),
        ("state", lambda one: _ratio(one.state)),
        ("pays from", _pays_from),
        ("laws held", _laws),
    ]
    cells = {one.key: [value(one) for _, value in columns] for one in board.standings}
    kept = [
        place
        for place in range(len(columns))
        if any(own[place].text != NO_VALUE for own in cells.values())
    ]
    rows = []
    for one in sorted(board.standings, key=_order):
        values = tuple(cells[one.key][place] for place in kept)
        alone = known[one.key.origin, one.key.mechanism] == 1
        label = one.key.name if alone else one.key.label
        rows.append(Row(label, values, one.key.mechanism, one.key.variant, one.key.origin))
    return Table(
        id="leaderboard",
        title="Leaderboard",
        caption=_caption(board),
        corner="mechanism",
        columns=tuple(columns[place][0] for place in kept),
        rows=tuple(rows),
        notes=tuple(_notes(board)),
    )


def _order(one: Standing) -> tuple[object, ...]:
    """Sort key: the run's before the reference's, most accurate first, then fastest."""
    mean = one.score.mean if one.score and not math.isnan(one.score.mean) else -1.0
    time = one.train.value if one.train else math.inf
    return (one.key.origin != "run", -mean, time, one.key.label)


def _share(one: Standing, board: Leaderboard) -> str:
    """Accuracy with the digits that it can bear."""
    if board.scores is None or one.score is None or math.isnan(one.score.mean):
        return NO_VALUE
    return score_text(one.score, min(column.rows.test for column in board.scores.columns))


def _accuracy(one: Standing, board: Leaderboard) -> Value:
    if one.score is None or math.isnan(one.score.mean):
        return Value(NO_VALUE)
    text = _share(one, board)
    fails = one.beats_shortcut is False and one.key.mechanism != NO_MIXING
    return Value(f"{text} †" if fails else text, "", one.score.mean, one.key in board.front)


def _ratio(one: Ratio | None, best: bool = False) -> Value:
    if one is None:
        return Value(NO_VALUE)
    small = 0 < one.value < _LEAST
    number = f"< {_LEAST}" if small else figures(one.value, one.spread, most=2)
    text = f"{number} {TIMES}"
    return Value(text, "", one.value, best, one.disturbed)


def _pays_from(one: Standing) -> Value:
    if one.pays_from is None:
        return Value(NO_VALUE)
    return Value(one.pays_from.text, "", one.pays_from.number, False, one.pays_from.disturbed)


def _laws(one: Standing) -> Value:
    if one.check is None:
        return Value(NO_VALUE)
    broken = len(one.check.broken)
    number = one.check.held / ((one.check.held + broken) or 1)
    text = f"{one.check.held}" if not broken else f"{one.check.held} of {one.check.held + broken}"
    return Value(text, "", number)


def _caption(board: Leaderboard) -> str:
    parts = []
    if board.scores is not None:
        tasks = [c.title for c in board.scores.averaged or board.scores.columns]
        over = f"mean over {listing(tasks)}" if len(tasks) > 1 else f"on {listing(tasks)}"
        parts.append(f"Accuracy: {over}, {', '.join(board.scores.setting.parts)}.")
    if board.setting is not None:
        own = board.setting
        parts.append(
            f"Costs: {TIMES} those of {EXACT} at length {board.length:,}, {', '.join(own.called)}."
        )
    if board.decoding is not None:
        parts.append(f"Decoding: one position after {board.decoded:,}.")
    return " ".join(parts)


def _notes(board: Leaderboard) -> list[str]:
    notes = ["Bold: on the front of accuracy and training time, where differences are told apart."]
    if any(one.beats_shortcut is False for one in board.standings):
        notes.append("†: on some task no better than the best simple baseline.")
    ratios = [one.train for one in board.standings if one.train]
    if any(one.other_settings for one in ratios) or any(one.elsewhere for one in ratios):
        notes.append("Some were timed with other settings, or on another machine: see Trade-off.")
    return notes


def sentences(board: Leaderboard) -> list[str]:
    """Return at most five sentences: accuracy, costs, crossover, front, certainty."""
    asked = _asked(board)
    if not asked:
        return []
    makers: tuple[Callable[[Leaderboard, Sequence[Standing]], str], ...] = (
        _told_accuracy,
        _told_costs,
        _told_crossing,
        _told_front,
        _told_doubt,
    )
    return [text for text in (maker(board, asked) for maker in makers) if text]


def _asked(board: Leaderboard) -> list[Standing]:
    """Mechanisms of the run, without exact attention and the floor where there are others."""
    own = [one for one in board.standings if one.key.origin == "run"]
    others = [one for one in own if one.key.mechanism not in (EXACT, NO_MIXING)]
    return others or [one for one in own if one.key.mechanism == EXACT] or own


def _told_accuracy(board: Leaderboard, asked: Sequence[Standing]) -> str:
    scored = [one for one in asked if one.score and not math.isnan(one.score.mean)]
    if board.scores is None or not scored:
        return ""
    tasks = board.scores.averaged or board.scores.columns
    over = (
        f"mean accuracy over {len(tasks)} tasks"
        if len(tasks) > 1
        else f"accuracy on {tasks[0].title}"
    )
    ranked = sorted(scored, key=_order)
    approximate = [one for one in ranked if not one.is_exact] or ranked
    named = [f"{one.key.name} {_share(one, board)} %" for one in approximate]
    anchors = [
        f"{name} {_share(one, board)} %"
        for name, mechanism in ((f"exact attention ({EXACT})", EXACT), ("no mixing", NO_MIXING))
        for one in _first(board, mechanism)
    ]
    beside = f"; {listing(anchors)}" if anchors else ""
    if len(approximate) == 1:
        return f"{over[:1].upper()}{over[1:]}: {named[0]}{beside}."
    return f"Highest {over}: {listing(named[:_NAMED])} of {len(approximate)}{beside}."


def _first(board: Leaderboard, mechanism: str) -> list[Standing]:
    found = [one for one in board.standings if one.key.mechanism == mechanism]
    scored = [one for one in found if one.score and not math.isnan(one.score.mean)]
    return sorted(scored, key=_order)[:1]


def _told_costs(board: Leaderboard, asked: Sequence[Standing]) -> str:
    timed = [one for one in asked if one.train]
    if not timed or board.length is None:
        return ""
    if len(timed) == 1:
        (one,) = timed
        memory = f" and {_ratio(one.memory).text} its memory" if one.memory else ""
        return (
            f"At length {board.length:,} a training step of {one.key.name} takes "
            f"{_ratio(one.train).text} the time of {EXACT}{memory}."
        )
    fastest = sorted(timed, key=lambda one: one.train.value if one.train else 0.0)
    lean = [one for one in timed if one.memory]
    leanest = sorted(lean, key=lambda one: one.memory.value if one.memory else 0.0)
    fast = [f"{one.key.name} {_ratio(one.train).text}" for one in fastest[:_NAMED]]
    small = [f"{one.key.name} {_ratio(one.memory).text}" for one in leanest[:_NAMED]]
    least = f"; least memory: {listing(small)}" if small else ""
    return (
        f"Fastest to train at length {board.length:,}: {listing(fast)} the time of {EXACT}{least}."
    )


def _told_crossing(board: Leaderboard, asked: Sequence[Standing]) -> str:
    known = [(one.key.name, one.pays_from) for one in asked if one.pays_from]
    timed = [(name, value) for name, value in known if value.number is not None]
    if not timed:
        return ""
    if len(timed) == 1:
        ((name, value),) = timed
        return f"A training step of {name} takes less time than {EXACT}'s from length {value.text}."
    pays = [own for own in timed if own[1].number is not None and math.isfinite(own[1].number)]
    pays.sort(key=lambda own: own[1].number or 0.0)
    late = [f"{name} {value.text}" for name, value in pays[-_NAMED:]]
    last = f", the last {listing(late)}" if late else ""
    return (
        f"{len(pays)} of {len(timed)} take less time to train than {EXACT} from some length on"
        f"{last}."
    )


def _told_front(board: Leaderboard, asked: Sequence[Standing]) -> str:
    members = [one for one in board.standings if one.key in board.front]
    if len(members) < 2:
        return ""
    members.sort(key=lambda one: one.train.value if one.train else 0.0)
    names = list(dict.fromkeys(one.key.name for one in members))
    return f"On the front of accuracy and training time: {listing_of(names, 8)}."


def _told_doubt(board: Leaderboard, asked: Sequence[Standing]) -> str:
    if board.scores is None:
        return ""
    seeds = set(board.scores.pooled["n"]) - {0}
    if seeds == {1}:
        return "One seed each: differences of a few points may be chance."
    low = [one for one in asked if one.beats_shortcut is False]
    if not low:
        return ""
    names = listing_of([one.key.name for one in low], _NAMED)
    return f"On some task no better than the best simple baseline: {names}."
