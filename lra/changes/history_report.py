"""A history in sentences and a table: steps for the worse and for the better first.

Nothing is run: the nights are stores in one folder. A pull request's gate cannot see a cell that
becomes 1 % slower every week; over the nights it can be told.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import date, timedelta
from itertools import pairwise

from lra.changes.check_report import Checked
from lra.changes.history import Event, History
from lra.changes.measurements import CONDITIONS, Key
from lra.changes.nights import Point
from lra.changes.series import RECENT, Series
from lra.changes.words import cell_words, ending_words
from lra.report.model import Row, Table, Value
from lra.report.words import TIMES, count, figures, listing, listing_of, percent, quantity, span
from lra.verdict.baseline import Judgement, Outcome
from lra.verdict.change import Verdict
from lra.verdict.steps import SHORTEST_LEVEL, Step

_SHOWN = 5
"""Number of steps that a sentence names; the table has all."""
_TOGETHER = 4
"""Smallest number of timed cells, at least half of all, whose changes in one night have a common
cause."""


def sentences(history: History) -> list[str]:
    """Return the news first, then what is uncertain, old or missing."""
    news = [*history.news("worse"), *history.news("better")]
    place = f"{count(len(history.nights), 'night')}, {count(len(history.series), 'figure')}"
    if news:
        steps = _first([_event_words(one, history) for one in news])
        first = f"{count(len(news), 'step')}: {steps}."
    elif history.is_conclusive:
        first = f"No step first told within the last {RECENT} nights ({place})."
    else:
        first = (
            f"No step can be told: it takes {2 * SHORTEST_LEVEL} nights of one series ({place})."
        )
    return [first, *_in_common(history), *_rest(history), *notes(history)]


def steps_table(history: History) -> Table:
    """Return all steps as a table."""
    return Table(
        id="history",
        title="Steps over the nights",
        caption="",
        corner="cell",
        columns=("figure", "step", "when", "before", "after", "commits", "verdict"),
        rows=tuple(_row(one, history) for one in history.events),
        numeric=False,
    )


def checked(history: History) -> Checked:
    """Return the nights as a check: a regression for each figure that recently became worse;
    inconclusive where the nights are too few for any step."""
    outcomes: dict[Verdict, Outcome] = {"worse": "regression", "better": "improvement"}
    judged = [
        Judgement(one.series.last.row.label, cell_words(one.series.last.measurement),
             one.series.quantity.name, outcome, _event_words(one, history))
        for verdict, outcome in outcomes.items()
        for one in history.news(verdict)
    ]  # fmt: skip
    if not history.is_conclusive:
        judged.append(Judgement("", "", "history", "inconclusive", sentences(history)[0]))
    return Checked(tuple(judged), tuple(sentences(history)))


def _name(series: Series) -> str:
    """Mechanism and cell."""
    return f"{series.last.row.label} {cell_words(series.last.measurement)}".strip()


def _event_words(one: Event, history: History) -> str:
    """`linear train 2048 is 12 % slower since 2026-11-03 (commit abc1234)`."""
    series = one.series
    if one.step is None:
        since = history.dates[series.failing_since]
        return f"{_name(series)}: {_failure(series.last)} since {since}"
    # Slower and less accurate need no name.
    plain = series.last.row.metric in ("latency", "test_accuracy")
    name = " is" if plain else f": {series.quantity.name}"
    size, when = _size(series, one.step.difference), _when(one.step, history)
    return f"{_name(series)}{name} {size} since {when} ({_cause(series, one.step)})"


def _failure(point: Point) -> str:
    """How a cell ended, and for how many of its seeds where others did not."""
    word, own = ending_words(point.endings), point.measurement
    asked = len(own.values) + len(own.endings)
    return word if point.value is None else f"{word} of {len(point.endings)} of {asked} seeds"


def _level(series: Series, level: float) -> str:
    """A level in its unit, times over the control: `3.1 x control`."""
    if series.quantity.is_share:
        return f"{percent(level)} %"
    value = math.exp(level)
    if series.quantity.controlled:
        return f"{figures(value)} {TIMES} control"
    return quantity(value, "B") if series.last.row.unit == "B" else figures(value)


def _size(series: Series, difference: float) -> str:
    """A difference of levels: `12 % slower`, `3.1 points less accurate`."""
    own = series.quantity
    word = own.worse if (difference > 0) != series.quantity.is_share else own.better
    if series.quantity.is_share:
        return f"{abs(100 * difference):.1f} points {word}"
    share = abs(math.expm1(difference))
    if share < 1:
        return f"{figures(100 * share, most=2)} % {word}"
    return f"{figures(1 + share)} {TIMES} as {'slow' if own.controlled else 'large'}"


def _when(step: Step, history: History) -> str:
    at, earliest, latest = (history.dates[n] for n in (step.at, step.earliest, step.latest))
    return at if earliest == latest else f"{at} ({earliest} to {latest})"


def _cause(series: Series, step: Step) -> str:
    """Commits with another version of the mechanism in the nights around a step."""
    changed = series.changed_at(step)
    commits = list(dict.fromkeys(point.commit or "unknown" for point in changed))
    if not changed:
        return "its version did not change"
    return f"commit{'s' * (len(commits) > 1)} {listing(commits)}"


def _in_common(history: History) -> list[str]:
    """Sentence on cells that change at once: they have the machine in common, or their control."""
    timed = sum(one.quantity.controlled for one in history.series)
    nights = Counter(
        (one.step.at, one.verdict)
        for one in history.events
        if one.step and one.recent and one.series.quantity.controlled
    )
    return [
        f"{number} of {timed} times are {verdict} since one night, {history.dates[night]}: look "
        "at the machine and the control first."
        for (night, verdict), number in sorted(nights.items())
        if number >= max(_TOGETHER, timed / 2)
    ]


def _rest(history: History) -> list[str]:
    found = []
    if unclear := [_name(one.series) for one in history.news("ambiguous")]:
        found.append(f"Changed, and with these seeds not told from luck: {_first(unclear)}.")
    if off := [_off(one) for one in history.outliers]:
        found.append(f"Not yet certain: {_first(off)}.")
    old = sum(not one.recent for one in history.events)
    return found + ([f"{count(old, 'older step')} in the table."] if old else [])


def _off(series: Series) -> str:
    """Words for how the last nights of a series lie off its level."""
    nights = count(series.failing or series.course.outliers, "night")
    if series.failing:
        return f"{_name(series)}: {_failure(series.last)} in {nights}"
    return f"{_name(series)}, {series.quantity.name} off its level in {nights}"


def _first(parts: Sequence[str]) -> str:
    """The first of several parts, and how many are left."""
    more = [f"{len(parts) - _SHOWN} more"] if len(parts) > _SHOWN else []
    return "; ".join([*parts[:_SHOWN], *more])


def notes(history: History) -> list[str]:
    """Return what is missing or could not be read."""
    found = [f"No night in {name}: {reason}." for name, reason in history.unread.items()]
    found += [
        f"Night {one.name}: {count(len(one.left_out), 'record')} left out: "
        f"{one.left_out[0]}{'; ...' if len(one.left_out) > 1 else ''}."
        for one in history.nights
        if one.left_out
    ]
    if missing := _days_missing(sorted({night.started[:10] for night in history.nights})):
        found.append(f"No night of {listing(missing)}.")
    unused = Counter(p.left_out for one in history.series for p in one.points if p and p.left_out)
    found += [
        f"{count(number, 'figure')} of a night left out: {why}."
        for why, number in sorted(unused.items())
    ]
    return [
        *found,
        *_absent(history),
        *(
            f"{count(number, 'figure')} with several series: "
            f"{listing([CONDITIONS[name] for name in names])}."
            for names, number in sorted(Counter(history.eras).items())
        ),
    ]


def _days_missing(days: Sequence[str]) -> list[str]:
    """The days without a night between the first and the last of these, as spans."""
    found = []
    for one, other in pairwise(map(date.fromisoformat, days)):
        first, last = one + timedelta(days=1), other - timedelta(days=1)
        if first <= last:
            found.append(span([f"{first}", f"{last}"]))
    return found


def _absent(history: History) -> list[str]:
    """Notes on figures that nights lack under any conditions, and on those that have ended."""
    present: dict[Key, set[int]] = defaultdict(set)
    names, dates = {}, history.dates
    for one in history.series:
        names[one.key] = f"{_name(one)} {one.quantity.name}"
        present[one.key] |= {n for n, p in enumerate(one.points) if p is not None}
    lacking: dict[str, list[Key]] = defaultdict(list)
    ended = []
    for key, own in present.items():
        goes_on = max(own) >= len(dates) - RECENT
        end = len(dates) if goes_on else max(own)
        if absent := [dates[n] for n in range(min(own), end) if n not in own]:
            lacking[listing_of(absent, _SHOWN)].append(key)
        if not goes_on:
            ended.append(f"{names[key]} ({dates[max(own)]})")
    found = [
        f"{count(len(keys), 'figure')} missing in {nights}, as {names[keys[0]]}."
        for nights, keys in lacking.items()
    ]
    return found + ([f"Ended: {_first(ended)}."] if ended else [])


def _row(one: Event, history: History) -> Row:
    series, step = one.series, one.step
    if step is None:
        word, since = _failure(series.last), history.dates[series.failing_since]
        course = (word, since, _level(series, series.course.levels[-1].value), word, "")
    else:
        commits = "..".join(dict.fromkeys(commit for commit in series.commits(step) if commit))
        changed = "version changed" if series.changed_at(step) else "same version"
        size, when = _size(series, step.difference), _when(step, history)
        levels = _level(series, step.before), _level(series, step.after)
        course = (size, when, *levels, f"{commits} ({changed})".strip())
    texts = (series.quantity.name, *course, one.verdict if one.recent else f"{one.verdict}, older")
    return Row(_name(series), tuple(map(Value, texts)))
