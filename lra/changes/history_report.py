"""What became of every cell over many nights: steps for the worse and for the better, first of all.

Nothing is run: the nights are stores in one folder. A pull request's gate cannot see a cell that
becomes 1 % slower every week; over the nights it can be told.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from lra.changes.check_report import Checked
from lra.changes.counterparts import Key
from lra.changes.history import History, Told
from lra.changes.nights import days_missing, nights
from lra.changes.series import RECENT, Series, series_of
from lra.report.table import Cell, Row, Section, Table
from lra.report.words import count, is_failure, listing
from lra.verdict.baseline import Judgement, Outcome
from lra.verdict.change import ACCURACY_MARGIN, BITS_MARGIN, COUNT_MARGIN, TIME_MARGIN
from lra.verdict.steps import SHORTEST_LEVEL, Step

_SHOWN = 5
"""Steps in the first sentence; the table has all."""
_TOGETHER = 4
"""So many timed cells, and half of all, that change on one night have something in common."""
_PLAIN = ("time", "accuracy")
"""Quantities that slower and less accurate need not name."""
_COLUMNS = ("figure", "step", "when", "before", "after", "commits", "verdict")
_RULES = (
    "Times are the night's median over replicates, relative to their control. The course is fitted "
    f"as constant levels (medians) of at least {SHORTEST_LEVEL} nights, with a penalty per step.",
    f"Steps of up to {100 * TIME_MARGIN:g} % of a time, {100 * COUNT_MARGIN:g} % of a count, "
    f"{100 * ACCURACY_MARGIN:g} points of an accuracy and {100 * BITS_MARGIN:g} % of bits per byte "
    "are too small to matter.",
    "When: the first night of the new level; in brackets, the nights nearly as likely. Commits are "
    "those of the last night surely before and the first surely after; version changed says "
    "whether the mechanism's did. A training of one seed is ambiguous.",
    "Another machine class, version of torch, configuration, data or measuring code begins another "
    "series.",
)


def read(folder: Path) -> History:
    """Return the history of the stores in a folder, one per night.

    They are ordered by when their records began, whatever the folders are called. Raises
    `UsageError` where there is none.
    """
    found, unread = nights(folder)
    days = Counter(night.started[:10] for night in found)
    series, eras = series_of(found)
    names = tuple(
        night.started[:10]
        if days[night.started[:10]] == 1
        else night.started[:16].replace("T", " ")
        for night in found
    )
    notes = [f"No night in {name}: {reason}." for name, reason in unread.items()]
    notes += [
        f"Of the night {night.name} {count(len(night.left_out), 'record')} left out: "
        f"{night.left_out[0]}{'; ...' if len(night.left_out) > 1 else ''}."
        for night in found
        if night.left_out
    ]
    if missing := days_missing(sorted(days)):
        notes.append(f"No night of {listing(missing)}.")
    notes += [*_left_out(series), *_absent(series, names)]
    for words, number in sorted(Counter(eras).items()):
        notes.append(f"{count(number, 'figure')} with several series: {words}.")
    return History(names, tuple(series), tuple(notes))


def _left_out(series: Sequence[Series]) -> list[str]:
    """Figures that there are and are not used, as timings of a busy machine."""
    words = Counter(
        point.word for one in series for point in one.points if point and point.value is None
    )
    return [
        f"{count(number, 'figure')} of a night left out: {word}."
        for word, number in sorted(words.items())
        if not is_failure(word)
    ]


def _absent(series: Sequence[Series], names: Sequence[str]) -> list[str]:
    """Figures that nights lack, whatever their conditions, and those that have ended."""
    present: dict[Key, set[int]] = defaultdict(set)
    called = {}
    for one in series:
        called[one.last.series] = f"{one.name} {one.quantity.name}"
        present[one.last.series] |= {n for n, p in enumerate(one.points) if p is not None}
    lacking, ended = {}, []
    for cell, own in present.items():
        goes_on = max(own) >= len(names) - RECENT
        absent = sorted(set(range(min(own), len(names) if goes_on else max(own))) - own)
        if absent:
            lacking[cell] = listing([names[n] for n in absent[:_SHOWN]])
            lacking[cell] += " and other nights" if len(absent) > _SHOWN else ""
        if not goes_on:
            ended.append(f"{called[cell]} ({names[max(own)]})")
    told = [
        f"{count(sum(nights == own for own in lacking.values()), 'figure')} missing in {nights}, "
        f"as {next(called[cell] for cell, own in lacking.items() if own == nights)}."
        for nights in dict.fromkeys(lacking.values())
    ]
    more = " and others" if len(ended) > _SHOWN else ""
    return told + ([f"Ended: {listing(ended[:_SHOWN])}{more}."] if ended else [])


def sentences(history: History) -> list[str]:
    """Return what to read first, then what is not yet told, older, or missing."""
    told = [one for one in history.told if one.recent and one.verdict in ("worse", "better")]
    told.sort(key=lambda one: one.verdict == "better")
    place = f"{count(len(history.nights), 'night')}, {count(len(history.series), 'figure')}"
    if told:
        more = f"; {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""
        steps = "; ".join(_words(one, history) for one in told[:_SHOWN])
        first = [f"{count(len(told), 'step')}: {steps}{more}."]
    elif not history.conclusive:
        first = [
            f"No step can be told: it takes {2 * SHORTEST_LEVEL} nights of one series ({place})."
        ]
    else:
        first = [f"No step first told within the last {RECENT} nights ({place})."]
    return [*first, *_in_common(history), *_rest(history), *history.notes]


def section(history: History) -> Section:
    """Return the history as a section of a report: the sentences, the rules, all steps."""
    rows = tuple(_row(one, history) for one in history.told)
    table = Table(
        id="history",
        title="Steps over the nights",
        caption=f"{count(len(history.nights), 'night')} since {history.nights[0]}, newest first.",
        corner="cell",
        columns=_COLUMNS,
        rows=rows,
        numeric=False,
    )
    return Section("history", "History", (*sentences(history), *_RULES), (table,) if rows else ())


def checked(history: History) -> Checked:
    """Return what a check says of the nights: a regression for each figure that lately became
    worse; inconclusive where the nights are too few for any step."""
    outcomes: list[tuple[Sequence[Told], Outcome]] = [
        (history.worse, "regression"),
        (history.better, "improvement"),
    ]
    held = [
        Judgement(one.series.last.label, one.series.last.cell, one.series.quantity.name, outcome,
             _words(one, history))
        for told, outcome in outcomes
        for one in told
    ]  # fmt: skip
    if not history.conclusive:
        held.append(Judgement("", "", "history", "inconclusive", sentences(history)[0]))
    return Checked(tuple(held), tuple(sentences(history)))


def _words(one: Told, history: History) -> str:
    """`linear train 2048 is 12 % slower since 2026-11-03 (commit abc1234)`."""
    series = one.series
    if one.step is None:
        since = history.nights[_failing_since(series)]
        return f"{series.name}: {series.last.word} since {since}"
    name = series.quantity.name
    size = f"{' is' if name in _PLAIN else f': {name}'} {series.size(one.step.difference)}"
    when, why = _when(one.step, history), _why(series, one.step)
    return f"{series.name}{size} since {when}{f' ({why})' if why else ''}"


def _failing_since(series: Series) -> int:
    there = [n for n, point in enumerate(series.points) if point is not None]
    return there[-series.failing]


def _when(step: Step, history: History) -> str:
    nights = history.nights
    if step.earliest == step.latest:
        return nights[step.at]
    return f"{nights[step.at]} ({nights[step.earliest]} to {nights[step.latest]})"


def _why(series: Series, step: Step) -> str:
    """What of the mechanism changed in the nights between which a step lies."""
    changed = series.changed_at(step)
    if not changed:
        return "its version did not change"
    commits = list(dict.fromkeys(point.commit or "unknown" for point in changed))
    return f"commit{'s' * (len(commits) > 1)} {listing(commits)}"


def _in_common(history: History) -> list[str]:
    """Many cells that change at once have the machine in common, or their control."""
    timed = [one for one in history.series if one.quantity.controlled]
    steps = [
        one for one in history.told if one.step and one.recent and one.series.quantity.controlled
    ]
    told = []
    nights = Counter((one.changed.at, one.verdict) for one in steps)
    for (night, verdict), number in sorted(nights.items()):
        if number >= max(_TOGETHER, len(timed) / 2):
            told.append(
                f"{number} of {len(timed)} times are {verdict} since one night, "
                f"{history.nights[night]}: look at the machine and the control first."
            )
    return told


def _rest(history: History) -> list[str]:
    told = []
    if ambiguous := [one for one in history.told if one.recent and one.verdict == "ambiguous"]:
        names = listing([one.series.name for one in ambiguous[:_SHOWN]])
        told.append(
            f"Changed, and with these seeds not told from luck: {names}"
            f"{' and others' if len(ambiguous) > _SHOWN else ''}."
        )
    if history.outliers:
        parts = [_off(one) for one in history.outliers[:_SHOWN]]
        more = f"; {len(history.outliers) - _SHOWN} more" * (len(history.outliers) > _SHOWN)
        told.append(f"Not yet certain: {'; '.join(parts)}{more}.")
    old = sum(not one.recent for one in history.told)
    told += [f"{count(old, 'older step')} in the table."] if old else []
    return told


def _off(series: Series) -> str:
    """How the last nights of a series lie off its level."""
    if series.failing:
        return f"{series.name}: {series.last.word} in {count(series.failing, 'night')}"
    nights = count(series.course.outliers, "night")
    return f"{series.name}, {series.quantity.name} off its level in {nights}"


def _row(one: Told, history: History) -> Row:
    series, step = one.series, one.step
    if step is None:
        when, before = history.nights[_failing_since(series)], series.text(_level(series))
        texts = (
            series.quantity.name,
            series.last.word,
            when,
            before,
            series.last.word,
            "",
            "worse",
        )
        return Row(series.name, tuple(Cell(text) for text in texts))
    commits = "..".join(dict.fromkeys(commit for commit in series.commits(step) if commit))
    changed = "version changed" if series.changed_at(step) else "same version"
    texts = (
        series.quantity.name,
        series.size(step.difference),
        _when(step, history),
        series.text(step.before),
        series.text(step.after),
        f"{commits} ({changed})".strip(),
        one.verdict if one.recent else f"{one.verdict}, older",
    )
    return Row(series.name, tuple(Cell(text) for text in texts))


def _level(series: Series) -> float:
    return series.course.levels[-1].value
