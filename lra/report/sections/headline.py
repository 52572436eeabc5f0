"""The first screen: at most five sentences, the trade-off figure and the leaderboard."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from lra.core.catalogue import CONTROLS, EXACT, NO_MIXING
from lra.report.analysis import Analysis
from lra.report.leaderboard import Entry, Leaderboard, leaderboard
from lra.report.model import Headline, Table
from lra.report.plots.tradeoff import tradeoff_figure
from lra.report.sections import accuracy, error, profile
from lra.report.sections.caveats import caveats
from lra.report.sections.cost_table import CALLS
from lra.report.sections.leaderboard_table import (
    DOING,
    UNSURE,
    accuracy_text,
    is_ranking,
    is_unsure,
    leaderboard_table,
    order,
    ratio_value,
)
from lra.report.words import (
    listing,
    listing_of,
)
from lra.report.write.markdown import plain_text

EMPTY = "There is no record to report: run python -m lra run --impl performer, then report again."
_MOST = 5
_NAMED = 3
"""Number of mechanisms that a sentence names."""
_BUSY = " (timed on a busy machine)"


def headline(analysis: Analysis) -> Headline:
    """Return the first screen of a report."""
    board = leaderboard(analysis)
    return Headline(
        sentences=_first_sentences(analysis, board),
        figure=tradeoff_figure(board, analysis.looks),
        leaderboard=leaderboard_table(board) if is_ranking(board) else None,
        caveats=caveats(analysis),
    )


def terminal_summary(analysis: Analysis) -> tuple[tuple[str, ...], str]:
    """Return the sentences and the small table to print: the run against exact attention and no
    mixing; for a store of profiles alone, those of the profiles."""
    board = leaderboard(analysis)
    if not board.entries:
        told, table = profile.terminal_summary(analysis.evidence) or (
            _first_sentences(analysis, board),
            None,
        )
        tables = [table] if table else [t for s in error.sections(analysis) for t in s.tables[:1]]
        return (*told, *caveats(analysis)), plain_text(tables[0]) if tables else ""
    table = leaderboard_table(board)
    by_task = [] if is_ranking(board) else accuracy.sections(analysis)
    if by_task:
        # Several tasks without a mean: their scores, task by task.
        table = by_task[0].tables[0]
    wanted = [
        row for row in table.rows if row.origin == "run" or row.mechanism in (EXACT, *CONTROLS)
    ]
    small = Table(table.id, table.title, table.caption, table.corner, table.columns, tuple(wanted))
    text = plain_text(small)
    own = {(row.origin, row.variant) for row in wanted}
    shown = [one for one in board.entries if (one.key.origin, one.key.variant) in own]
    if any(
        one.shortcuts_beaten in ("some", "none") if by_task else is_unsure(one) for one in shown
    ):
        text = f"{text}\n{UNSURE}"
    return (*_first_sentences(analysis, board), *caveats(analysis)), text


def _first_sentences(analysis: Analysis, board: Leaderboard) -> tuple[str, ...]:
    """Sentences, five at most: the leaderboard's, else those on errors or profiles."""
    found = sentences(board) or error.sentences(analysis)
    if not found:
        profiled = profile.terminal_summary(analysis.evidence)
        found = list(profiled[0]) if profiled else []
    if not found and analysis.evidence.checks:
        found = ["The run has conformance checks alone: see Capabilities."]
    if not found and analysis.evidence.shown:
        found = ["The run has pictures of patterns alone: see Gallery."]
    if not found and _has_records(analysis):
        found = ["The run has no accuracy and no time of a call yet."]
    return tuple(found[:_MOST]) or (EMPTY,)


def _has_records(analysis: Analysis) -> bool:
    evidence = analysis.evidence
    return bool(evidence.measurements or evidence.others or evidence.ceilings)


def sentences(board: Leaderboard) -> list[str]:
    """Return at most five sentences: accuracy, costs, crossover, front, certainty."""
    asked = _asked(board)
    if not asked:
        return []
    makers: tuple[Callable[[Leaderboard, Sequence[Entry]], str], ...] = (
        _accuracy_sentence,
        _costs_sentence,
        _crossing_sentence,
        _front_sentence,
        _doubt_sentence,
    )
    return [text for text in (maker(board, asked) for maker in makers) if text]


def _asked(board: Leaderboard) -> list[Entry]:
    """Mechanisms of the run, without exact attention and the controls where there are others."""
    own = [one for one in board.entries if one.key.origin == "run"]
    others = [one for one in own if one.key.mechanism not in (EXACT, *CONTROLS)]
    return others or [one for one in own if one.key.mechanism == EXACT] or own


def _accuracy_sentence(board: Leaderboard, asked: Sequence[Entry]) -> str:
    scored = [one for one in asked if one.score and not math.isnan(one.score.mean)]
    if board.scores is None or not scored:
        return ""
    tasks = board.scores.averaged or board.scores.columns
    over = (
        f"mean accuracy over {len(tasks)} tasks"
        if len(tasks) > 1
        else f"accuracy on {tasks[0].title}"
    )
    ranked = sorted(scored, key=order)
    others = [one for one in ranked if not one.is_exact] or ranked
    named = [f"{board.name(one)} {accuracy_text(one, board)} %" for one in others]
    anchors = [
        f"{name} {accuracy_text(one, board)} %"
        for name, mechanism in ((f"exact attention ({EXACT})", EXACT), ("no mixing", NO_MIXING))
        for one in _first(board, mechanism)
    ]
    beside = f"; {listing(anchors)}" if anchors else ""
    if len(others) == 1:
        return f"{over[:1].upper()}{over[1:]}: {named[0]}{beside}."
    whose = f" of {len(others)}"
    if len(others) < len(ranked):
        whose += f" that differ from {EXACT}"
    return f"Highest {over}: {listing(named[:_NAMED])}{whose}{beside}."


def _first(board: Leaderboard, mechanism: str) -> list[Entry]:
    found = [one for one in board.entries if one.key.mechanism == mechanism]
    scored = [one for one in found if one.score and not math.isnan(one.score.mean)]
    return sorted(scored, key=order)[:1]


def _costs_sentence(board: Leaderboard, asked: Sequence[Entry]) -> str:
    timed = [one for one in asked if one.time]
    if not timed or board.length is None:
        return _decoding_costs(board, asked)
    if len(timed) == 1:
        (one,) = timed
        memory = f" and {ratio_value(one.memory).text} its memory" if one.memory else ""
        return (
            f"At length {board.length:,} a {CALLS[board.mode]} of {board.name(one)} takes "
            f"{ratio_value(one.time).text} the time of {EXACT}{memory}{_busy(timed)}."
        )
    fastest = sorted(timed, key=lambda one: one.time.value if one.time else 0.0)
    lean = [one for one in timed if one.memory]
    leanest = sorted(lean, key=lambda one: one.memory.value if one.memory else 0.0)
    fast = [f"{board.name(one)} {ratio_value(one.time).text}" for one in fastest[:_NAMED]]
    small = [f"{board.name(one)} {ratio_value(one.memory).text}" for one in leanest[:_NAMED]]
    least = f"; least memory: {listing(small)}" if small else ""
    return (
        f"Fastest {CALLS[board.mode]} at length {board.length:,}: {listing(fast)} the time of "
        f"{EXACT}{least}{_busy(fastest[:_NAMED])}."
    )


def _busy(named: Sequence[Entry]) -> str:
    """Words on times of a busy machine; empty where there are none."""
    return _BUSY if any(one.time and one.time.disturbed for one in named) else ""


def _decoding_costs(board: Leaderboard, asked: Sequence[Entry]) -> str:
    """The fastest decoding steps, where nothing else was timed."""
    timed = [one for one in asked if one.decode]
    if not timed or board.decoded is None:
        return ""
    timed.sort(key=lambda one: one.decode.value if one.decode else 0.0)
    fast = [f"{board.name(one)} {ratio_value(one.decode).text}" for one in timed[:_NAMED]]
    first = "A decoding step" if len(timed) == 1 else "Fastest decoding step"
    return f"{first} after {board.decoded:,} positions: {listing(fast)} the time of {EXACT}."


def _crossing_sentence(board: Leaderboard, asked: Sequence[Entry]) -> str:
    known = [(board.name(one), one.pays_from) for one in asked if one.pays_from]
    timed = [(name, value) for name, value in known if value.number is not None]
    if not timed:
        return ""
    if len(timed) == 1:
        ((name, value),) = timed
        call = f"A {CALLS[board.mode]} of {name}"
        busy = _BUSY if value.disturbed else ""
        if value.number == math.inf:
            return f"{call} takes less time than {EXACT}'s at no length compared{busy}."
        return f"{call} takes less time than {EXACT}'s from length {value.text}{busy}."
    pays = [own for own in timed if own[1].number is not None and math.isfinite(own[1].number)]
    pays.sort(key=lambda own: own[1].number or 0.0)
    late = [f"{name} {value.text}" for name, value in pays[-_NAMED:]]
    last = f", the last {listing(late)}" if late else ""
    return (
        f"{len(pays)} of {len(timed)} take less time for a {CALLS[board.mode]} than {EXACT} from "
        f"some length on{last}{_BUSY if any(own.disturbed for _, own in pays[-_NAMED:]) else ''}."
    )


def _front_sentence(board: Leaderboard, asked: Sequence[Entry]) -> str:
    members = [one for one in board.entries if one.key in board.front]
    if len(members) < 2:
        return ""
    members.sort(key=lambda one: one.time.value if one.time else 0.0)
    own = list(dict.fromkeys(board.name(one) for one in members if one.key.origin == "run"))
    others = list(dict.fromkeys(board.name(one) for one in members if one.key.origin != "run"))
    others = [name for name in others if name not in own]
    front = f"Front, as nothing is both more accurate and faster ({DOING[board.mode]} time)"
    parts = [listing_of(own, 8)] if own else []
    parts += [f"of the reference {listing_of(others, 8)}"] if others else []
    return f"{front}: {'; '.join(parts)}."


def _doubt_sentence(board: Leaderboard, asked: Sequence[Entry]) -> str:
    if board.scores is None:
        return ""
    pooled = board.scores.pooled
    rows = {(one.key.origin, one.key.variant) for one in asked}
    seeds = {
        n
        for origin, variant, n in zip(pooled["origin"], pooled["variant"], pooled["n"], strict=True)
        if n and (origin, variant) in rows
    }
    parts = ["one seed each: a few points may be chance"] if seeds == {1} else []
    low = [one for one in asked if one.shortcuts_beaten in ("some", "none")]
    if low:
        names = listing_of([board.name(one) for one in low], _NAMED)
        parts.append(f"on some task not surely above the best shortcut: {names}")
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""
