"""The first screen: at most five sentences, the trade-off figure and the leaderboard."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from lra.core.catalogue import EXACT, NO_MIXING
from lra.report.analysis import Analysis
from lra.report.leaderboard import Leaderboard, Ratio, Standing, leaderboard
from lra.report.model import Headline, Row, Table, Value
from lra.report.plots.tradeoff import tradeoff_figure
from lra.report.sections import error, profile
from lra.report.sections.accuracy import score_text
from lra.report.sections.caveats import caveats
from lra.report.sections.cost_table import CALLS
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
"""Ratios below are told as less than it."""
_DOING = {"train": "training", "forward": "forward"}
_NAMED = 3
"""So many mechanisms a sentence names."""


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
    """Return the sentences and the small table to print: the run beside exact attention and no
    mixing; of a store of profiles alone theirs."""
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
    """At most five: those of the leaderboard, else those of errors or of profiles."""
    found = sentences(board) or error.sentences(analysis)
    if not found:
        profiled = profile.spoken(analysis.evidence)
        found = list(profiled[0]) if profiled else []
    if not found and analysis.evidence.checks:
        found = ["The run has conformance checks alone: see Capabilities."]
    if not found and _has_records(analysis):
        found = ["The run has no accuracy and no time of a call yet."]
    return tuple(found[:_MOST]) or (EMPTY,)


def _has_records(analysis: Analysis) -> bool:
    evidence = analysis.evidence
    return bool(evidence.kept or evidence.shown or evidence.others or evidence.ceilings)


def present(board: Leaderboard) -> Table:
    """Return the leaderboard: a row a mechanism, the most accurate first."""
    columns: list[tuple[str, Callable[[Standing], Value]]] = [
        ("accuracy, %", lambda one: _accuracy(one, board)),
        (f"{_DOING[board.mode]} time", lambda one: _ratio(one.time, one.key in board.front)),
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
        label = _name(one, board)
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


def _name(one: Standing, board: Leaderboard) -> str:
    """The mechanism, with its settings where the board has several of it."""
    alike = [
        other
        for other in board.standings
        if (other.key.origin, other.key.mechanism) == (one.key.origin, one.key.mechanism)
    ]
    return one.key.name if len(alike) == 1 else one.key.label


def _order(one: Standing) -> tuple[object, ...]:
    """The run's before the reference's, the most accurate first, then the fastest."""
    mean = one.score.mean if one.score and not math.isnan(one.score.mean) else -1.0
    time = one.time.value if one.time else math.inf
    return (one.key.origin != "run", -mean, time, one.key.label)


def _share(one: Standing, board: Leaderboard) -> str:
    """The accuracy with the digits that it bears."""
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
    notes = []
    if board.front:
        notes.append(
            f"Bold: on the front of accuracy and {_DOING[board.mode]} time, where differences are "
            "told apart."
        )
    if any(one.beats_shortcut is False for one in board.standings):
        notes.append("†: on some task not surely better than the best simple baseline.")
    ratios = [one.time for one in board.standings if one.time]
    if any(one.other_settings for one in ratios) or any(one.elsewhere for one in ratios):
        notes.append("Some were timed with other settings, or on another machine: see Trade-off.")
    return notes


def sentences(board: Leaderboard) -> list[str]:
    """Return at most five sentences: accuracy, costs, where it pays, the front, how sure."""
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
    """The run's mechanisms, without exact attention and the floor where there are others."""
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
    named = [f"{_name(one, board)} {_share(one, board)} %" for one in approximate]
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
    timed = [one for one in asked if one.time]
    if not timed or board.length is None:
        return _decoding_costs(board, asked)
    if len(timed) == 1:
        (one,) = timed
        memory = f" and {_ratio(one.memory).text} its memory" if one.memory else ""
        return (
            f"At length {board.length:,} a {CALLS[board.mode]} of {_name(one, board)} takes "
            f"{_ratio(one.time).text} the time of {EXACT}{memory}."
        )
    fastest = sorted(timed, key=lambda one: one.time.value if one.time else 0.0)
    lean = [one for one in timed if one.memory]
    leanest = sorted(lean, key=lambda one: one.memory.value if one.memory else 0.0)
    fast = [f"{_name(one, board)} {_ratio(one.time).text}" for one in fastest[:_NAMED]]
    small = [f"{_name(one, board)} {_ratio(one.memory).text}" for one in leanest[:_NAMED]]
    least = f"; least memory: {listing(small)}" if small else ""
    return (
        f"Fastest {CALLS[board.mode]} at length {board.length:,}: {listing(fast)} the time of "
        f"{EXACT}{least}."
    )


def _decoding_costs(board: Leaderboard, asked: Sequence[Standing]) -> str:
    """The fastest decoding steps, where nothing else was timed."""
    timed = [one for one in asked if one.decode]
    if not timed or board.decoded is None:
        return ""
    timed.sort(key=lambda one: one.decode.value if one.decode else 0.0)
    fast = [f"{_name(one, board)} {_ratio(one.decode).text}" for one in timed[:_NAMED]]
    first = "A decoding step" if len(timed) == 1 else "Fastest decoding step"
    return f"{first} after {board.decoded:,} positions: {listing(fast)} the time of {EXACT}."


def _told_crossing(board: Leaderboard, asked: Sequence[Standing]) -> str:
    known = [(_name(one, board), one.pays_from) for one in asked if one.pays_from]
    timed = [(name, value) for name, value in known if value.number is not None]
    if not timed:
        return ""
    if len(timed) == 1:
        ((name, value),) = timed
        call = f"A {CALLS[board.mode]} of {name}"
        if value.number == math.inf:
            return f"{call} takes less time than {EXACT}'s at no length compared."
        return f"{call} takes less time than {EXACT}'s from length {value.text}."
    pays = [own for own in timed if own[1].number is not None and math.isfinite(own[1].number)]
    pays.sort(key=lambda own: own[1].number or 0.0)
    late = [f"{name} {value.text}" for name, value in pays[-_NAMED:]]
    last = f", the last {listing(late)}" if late else ""
    return (
        f"{len(pays)} of {len(timed)} take less time for a {CALLS[board.mode]} than {EXACT} from "
        f"some length on{last}."
    )


def _told_front(board: Leaderboard, asked: Sequence[Standing]) -> str:
    members = [one for one in board.standings if one.key in board.front]
    if len(members) < 2:
        return ""
    members.sort(key=lambda one: one.time.value if one.time else 0.0)
    names = list(dict.fromkeys(_name(one, board) for one in members))
    front = f"On the front of accuracy and {_DOING[board.mode]} time"
    return f"{front}: {listing_of(names, 8)}."


def _told_doubt(board: Leaderboard, asked: Sequence[Standing]) -> str:
    if board.scores is None:
        return ""
    seeds = set(board.scores.pooled["n"]) - {0}
    if seeds == {1}:
        return "One seed each: differences of a few points may be chance."
    low = [one for one in asked if one.beats_shortcut is False]
    if not low:
        return ""
    names = listing_of([_name(one, board) for one in low], _NAMED)
    return f"On some task not surely better than the best simple baseline: {names}."
