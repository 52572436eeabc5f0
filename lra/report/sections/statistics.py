"""Statistics over seeds: intervals of scores, paired tests and average ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from lra.report.accuracy import Accuracies, scored
from lra.report.analysis import Analysis
from lra.report.baselines import guessing
from lra.report.model import Section, Table, Value, there
from lra.report.plots.ranks import ranks_figure
from lra.report.rows import Key, missing, of, row_keys
from lra.report.statistics import LEVEL, Statistics, rank_name, statistics
from lra.report.words import NO_VALUE, NOT_RUN, count, figures, listing, percent
from lra.verdict.accuracy import Difference, above_chance, mean_interval


def sections(analysis: Analysis) -> list[Section]:
    """Return a section for each table of scores that has a row of several seeds."""
    found = []
    for scores in analysis.accuracies:
        intervals = _intervals(scores, analysis)
        if intervals is not None:
            found.append(
                present(scores, intervals, statistics(analysis.evidence, scores), analysis)
            )
    return found


def present(
    scores: Accuracies, intervals: Table, found: Statistics | None, analysis: Analysis
) -> Section:
    """Return the intervals, and the tests and ranks where there are any."""
    id = scores.setting.id
    ranks = found.ranks if found is not None else None
    return Section(
        topic="Statistics",
        level="appendix",
        setting=", ".join(scores.parts),
        text=tuple(filter(None, [leading(found) if found else ""])),
        tables=there([intervals, _tests(scores, found, analysis) if found else None]),
        figures=(ranks_figure(f"ranks-{id}", ranks, found.keys, analysis.looks),)
        if ranks is not None and found is not None
        else (),
    )


def _intervals(scores: Accuracies, analysis: Analysis) -> Table | None:
    """Table of the 95 % interval of each mean over seeds; None where nothing has two seeds."""
    rows = []
    for key in row_keys(scored(analysis.evidence, scores)):
        places = {place.protocol: place for _, place in of(scores.pooled, key).iterrows()}
        values = []
        for column in scores.columns:
            place = places.get(column.protocol)
            if place is None:
                values.append(Value(NOT_RUN))
            elif place.n == 0:
                values.append(missing(place.endings))
            else:
                values.append(_interval(place["mean"], place.low, place.high, place.n, scores))
        if scores.averaged:
            ((_, mean),) = of(scores.means, key).iterrows()
            rows_of_all = len(scores.averaged) * max(c.rows.test for c in scores.averaged)
            bounds = mean_interval([*mean.seeds.values()], 1 / rows_of_all)
            low, high = bounds or (math.nan, math.nan)
            values.append(_interval(mean["mean"], low, high, len(mean.seeds), scores))
        if any(value.number is not None for value in values):
            rows.append(key.row(values))
    if not rows:
        return None
    return Table(
        id=f"interval-{scores.id}",
        title=f"Intervals, {scores.loss.words if scores.loss else '%'}",
        caption="Student's 95 % interval of the mean over n seeds, on these test rows. Rows of one "
        "seed are left out.",
        corner="mechanism",
        columns=(
            *(column.title for column in scores.columns),
            *([f"mean of {len(scores.averaged)}"] if scores.averaged else []),
        ),
        rows=tuple(rows),
    )


def _interval(mean: float, low: float, high: float, n: int, scores: Accuracies) -> Value:
    if math.isnan(low):
        return Value(NO_VALUE, "one seed" if n == 1 else "")
    bounds = [
        figures(bound, high - low) if scores.lower else percent(bound, high - low)
        for bound in (low, high)
    ]
    return Value(" to ".join(bounds), f"n {n}", mean)


def _tests(scores: Accuracies, found: Statistics, analysis: Analysis) -> Table:
    columns = scores.averaged or scores.columns
    tested = {key for pair in found.pairs for key in (pair.above, pair.below)}
    rows = []
    for key in found.keys:
        values = [Value(percent(found.means[key]), "", found.means[key])]
        values += [_difference(own.get(key)) for own in found.against.values()]
        if found.pairs:
            above, below = found.above[key], found.below[key]
            value = (
                Value(f"{above}, {below}", "", float(above)) if key in tested else Value(NO_VALUE)
            )
            values.append(value)
        if found.ranks is not None:
            rank = found.ranks.average.get(rank_name(key))
            values.append(Value(NO_VALUE) if rank is None else Value(f"{rank:.1f}", "", rank))
        values.append(_beyond_luck(scores, key, analysis))
        rows.append(key.row(values))
    return Table(
        id=f"tests-{scores.setting.id}",
        title="Differences",
        caption=f"In points of accuracy over {listing([column.title for column in columns])}, of "
        "rows with several seeds on each.",
        corner="mechanism",
        columns=(
            f"mean of {len(columns)}" if len(columns) > 1 else "accuracy",
            *(f"against {name}" for name in found.against),
            *(["better, worse than"] if found.pairs else []),
            *(["average rank"] if found.ranks is not None else []),
            "beyond luck",
        ),
        rows=tuple(rows),
        notes=tuple(_notes(found)),
    )


def _difference(found: tuple[Difference, float] | None) -> Value:
    if found is None:
        return Value(NO_VALUE)
    one, p = found
    assert one.low is not None and one.high is not None, "what has a p has bounds"
    text = f"p {p:.2g}" if p >= 0.001 else "p < 0.001"
    bounds = f"{100 * one.low:+.1f} to {100 * one.high:+.1f}"
    return Value(f"{100 * one.value:+.1f}", f"{bounds}, {text}", one.value, p < LEVEL)


def _beyond_luck(scores: Accuracies, key: Key, analysis: Analysis) -> Value:
    """Number of a row's trainings that did better than guessing does by luck."""
    better, judged = 0, 0
    own = of(scores.pooled, key)
    for column in scores.averaged or scores.columns:
        chance = guessing(analysis.evidence, scores, column)
        if chance is None:
            continue
        for seeds in own[own["protocol"] == column.protocol]["seeds"]:
            judged += len(seeds)
            better += sum(above_chance(x, chance, column.rows.test) for x in seeds.values())
    return Value(f"{better} of {judged}", "", better / judged) if judged else Value(NO_VALUE)


def _notes(found: Statistics) -> list[str]:
    notes = [
        "Paired Student's t-tests over shared seeds, p by Holm over a column (better, worse: over "
        f"{count(len(found.pairs), 'pair')}); bold and counted: p < {LEVEL}."
    ]
    if found.ranks is not None:
        notes.append(
            f"Ranks closer than {found.ranks.critical:.1f} are not told apart for other tasks "
            f"(Nemenyi; Friedman's p {found.ranks.p:.2g}), and tasks are few."
        )
    if found.seed_distances:
        middle, most = (100 * x for x in (median(found.seed_distances), max(found.seed_distances)))
        notes.append(
            f"Two seeds of one mechanism differ by {middle:.1f} points, at most by {most:.1f}."
        )
    return notes


def leading(found: Statistics) -> str:
    """Return a sentence on the row that is above most others, and on those that it is not told
    apart from; empty without a test."""
    if not found.pairs:
        return ""
    above, below = found.above, found.below
    tested = {key for pair in found.pairs for key in (pair.above, pair.below)}
    best = min(tested, key=lambda key: (below[key], -above[key], found.keys.index(key)))
    own = [pair for pair in found.pairs if best in (pair.above, pair.below)]
    alike: Sequence[str] = [
        _title(pair.below if pair.above == best else pair.above) for pair in own if not pair.apart
    ]
    end = "(paired over seeds, Holm-corrected)"
    if not alike:
        return f"{_title(best)} is better than {count(len(own), 'other')} {end}."
    better = f", and better than {count(above[best], 'other')}" if above[best] else ""
    return f"{_title(best)} is not told apart from {listing(alike)}{better} {end}."


def _title(key: Key) -> str:
    return key.row(()).title
