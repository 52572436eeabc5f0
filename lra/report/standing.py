"""Which mechanism is more accurate and how sure that is: tests over seeds, ranks over tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean, median

import msgspec

from lra.report.columns import Column
from lra.report.entries import Entry
from lra.report.quality import QualityTable
from lra.report.rows import EXACT, NO_MIXING, RowKey, row, shown
from lra.report.select import Selection
from lra.report.table import Cell, Row, Table
from lra.report.words import NO_VALUE, count, listing, percent
from lra.verdict.accuracy import Accuracies, Difference, Ranks, escapes, holm, paired, ranks

_LEVEL = 0.05
_TWICE = "the same, another seed"


class Standing(msgspec.Struct, frozen=True):
    """How the mechanisms of an accuracy table stand to each other."""

    table: Table
    ranks: Ranks | None
    """By the rows' labels; of rows that have all tasks."""
    rows: tuple[Row, ...]
    """Those that are ranked, the best first."""
    leading: str
    """A sentence on the best and what is not told apart from it; empty without a test."""


def standing(quality: QualityTable, selection: Selection) -> Standing | None:
    """Return it over the tasks that the table averages; None where fewer than two mechanisms have
    them all."""
    columns = quality.averaged or quality.columns[: len(quality.columns) == 1]
    protocols = [column.protocol for column in columns]
    group = [
        e
        for e in selection.entries
        if e.metric == "test_accuracy" and e.protocol in protocols and e.value is not None
    ]
    rows = {key: own for key, own in shown(group).items() if _tasks(own) == set(protocols)}
    if len(rows) < 2:
        return None
    known = {key: _accuracies(own) for key, own in rows.items()}
    ranked = ranks({_name(key): own for key, own in known.items()})
    order = sorted(rows, key=lambda key: (-_mean(known[key]), key))
    anchors = {
        words: next((key for key in order if rows[key][0].mechanism == name), None)
        for words, name in ((EXACT, EXACT), ("no mixing", NO_MIXING))
    }
    against = {words: _against(known, key, order) for words, key in anchors.items() if key}
    tests = _tests(known)
    lines = []
    for key in order:
        cells = [Cell(percent(_mean(known[key])), value=_mean(known[key]))]
        cells += [differences[key] for differences in against.values()]
        cells += [_above(key, tests)] if tests else []
        cells += [_rank(ranked.average[_name(key)])] if ranked else []
        cells += [_escaped(rows[key], columns, selection)]
        lines.append(row(rows[key], cells))
    twice = _twice(known)
    if twice is not None:
        blank = len(lines[0].cells) - 1 - len(against)
        again = [twice] * len(against) + [Cell("")] * blank
        lines.append(Row(_TWICE, (Cell(""), *again), group="Noise"))
    number = quality.table.id.rpartition("-")[2]
    table = Table(
        id=f"standing-{number}",
        title="How sure the differences are",
        caption=f"Over {_over(columns)}; differences in points of accuracy, with their interval "
        "of 95 % where every task has several seeds.",
        corner="mechanism",
        columns=(
            f"mean of {len(columns)}" if len(columns) > 1 else "accuracy",
            *(f"against {words}" for words in against),
            *(["above, below"] if tests else []),
            *(["average rank"] if ranked else []),
            "beyond luck",
        ),
        rows=tuple(lines),
        notes=tuple(_notes(len(tests), ranked, twice is not None)),
    )
    best = ranked.average if ranked else {}
    by_name = {_name(key): line for key, line in zip(order, lines, strict=False)}
    ranking = tuple(by_name[name] for name in best)
    return Standing(table, ranked, ranking, _leading(order, tests))


def _name(key: RowKey) -> str:
    origin, label = key
    return label if origin == "run" else f"{label} ({origin})"


def _tasks(own: Sequence[Entry]) -> set[str]:
    return {entry.protocol for entry in own}


def _accuracies(own: Sequence[Entry]) -> Accuracies:
    found: dict[str, dict[int, float]] = {}
    for entry in own:
        if entry.value is not None:
            found.setdefault(entry.protocol, {})[entry.seed or 0] = entry.value
    return found


def _mean(accuracies: Accuracies) -> float:
    return fmean(fmean(own.values()) for own in accuracies.values())


def _against(
    known: Mapping[RowKey, Accuracies], anchor: RowKey, order: Sequence[RowKey]
) -> dict[RowKey, Cell]:
    """The difference of each row to one of them, its probability corrected for their number."""
    found = {key: paired(known[key], known[anchor]) for key in order if key != anchor}
    tested = {key: one.p for key, one in found.items() if one is not None and one.p is not None}
    corrected = dict(zip(tested, holm(list(tested.values())), strict=True))
    cells = {key: _difference(one, corrected.get(key)) for key, one in found.items()}
    return {**cells, anchor: Cell(NO_VALUE)}


def _difference(one: Difference | None, p: float | None) -> Cell:
    if one is None:
        return Cell(NO_VALUE, "no shared seed")
    text = f"{100 * one.value:+.1f}"
    if one.low is None or one.high is None or p is None:
        return Cell(text, "one seed", one.value)
    told = f"p {p:.2g}" if p >= 0.001 else "p < 0.001"
    bounds = f"{100 * one.low:+.1f} to {100 * one.high:+.1f}"
    return Cell(text, f"{bounds}, {told}", one.value, one.high - one.low, strong=p < _LEVEL)


class _Test(msgspec.Struct, frozen=True):
    """A pair of rows, and whether they are told apart."""

    above: RowKey
    below: RowKey
    apart: bool


def _tests(known: Mapping[RowKey, Accuracies]) -> list[_Test]:
    """All pairs of rows that share several seeds on each task, corrected for their number."""
    pairs, p = [], []
    for one, other in combinations(known, 2):
        found = paired(known[one], known[other])
        if found is not None and found.p is not None:
            pairs.append((one, other) if found.value > 0 else (other, one))
            p.append(found.p)
    corrected = holm(p)
    return [_Test(*pair, q < _LEVEL) for pair, q in zip(pairs, corrected, strict=True)]


def _above(key: RowKey, tests: Sequence[_Test]) -> Cell:
    """How many others a row is above and below, of those that it was tested against."""
    number = sum(key in (test.above, test.below) for test in tests)
    above = sum(key == test.above for test in tests if test.apart)
    below = sum(key == test.below for test in tests if test.apart)
    return Cell(f"{above}, {below}", f"of {number}", above) if number else Cell(NO_VALUE)


def _rank(average: float) -> Cell:
    return Cell(f"{average:.1f}", value=average)


def _leading(order: Sequence[RowKey], tests: Sequence[_Test]) -> str:
    """Which rows are not told apart from the best of those tested; empty without a test."""
    tested = [key for key in order if any(key in (test.above, test.below) for test in tests)]
    if not tested:
        return ""
    best = tested[0]
    below = {test.below for test in tests if test.apart and test.above == best}
    alike = [_name(key) for key in tested[1:] if key not in below]
    start = f"Of {count(len(tested), 'row')} with several seeds {_name(best)}"
    if not alike:
        return f"{start} is more accurate than all others (paired tests over seeds, Holm)."
    rest = "; it is above the others" if below else ""
    return f"{start} is not told apart from {listing(alike)}{rest} (paired tests over seeds, Holm)."


def _escaped(own: Sequence[Entry], columns: Sequence[Column], selection: Selection) -> Cell:
    """How many of a row's trainings did better than guessing does by luck."""
    guesses = {
        (e.protocol, e.scale): e.value
        for e in selection.entries
        if e.kind == "baseline" and e.metric == "majority" and e.value is not None
    }
    judged = []
    for column in columns:
        chance = guesses.get((column.data, column.cell.scale))
        for entry in own:
            if chance is not None and entry.protocol == column.protocol and entry.value is not None:
                judged.append(escapes(entry.value, chance, column.rows.test))
    if not judged:
        return Cell(NO_VALUE)
    return Cell(f"{sum(judged)} of {len(judged)}", value=fmean(judged))


def _twice(known: Mapping[RowKey, Accuracies]) -> Cell | None:
    """How far two seeds of one mechanism are apart, in the mean over tasks."""
    apart = []
    for own in known.values():
        seeds = sorted(set[int].intersection(*(set(task) for task in own.values())))
        means = [fmean(task[seed] for task in own.values()) for seed in seeds]
        apart += [abs(one - other) for one, other in combinations(means, 2)]
    if not apart:
        return None
    middle = median(apart)
    return Cell(f"±{100 * middle:.1f}", f"at most {100 * max(apart):.1f}", middle)


def _over(columns: Sequence[Column]) -> str:
    return listing([column.title for column in columns])


def _notes(tested: int, ranked: Ranks | None, twice: bool) -> list[str]:
    notes = []
    if tested:
        notes.append(
            "Tests are Student's, paired by seed, on these tasks as they are: each task with the "
            "variance of its own seeds. p is corrected for the rows of the column, in `above, "
            f"below` for all {count(tested, 'pair')} (Holm); bold and counted is what lies below "
            f"{_LEVEL}."
        )
    if ranked is not None:
        notes.append(
            f"Average rank: over {count(ranked.tasks, 'task')}, 1 is the best. Ranks closer than "
            f"{ranked.critical:.1f} are not told apart for tasks in general (Nemenyi; Friedman's "
            f"p {ranked.p:.2g}): few tasks say little of others."
        )
    notes.append(
        "Beyond luck: trainings with an accuracy above 99 % of guesses at the share of the largest "
        "class."
    )
    if twice:
        notes.append(
            f"{_TWICE}: how far two seeds of one mechanism are apart, the median over all pairs "
            "of seeds here, and the most: what a difference of two single seeds is worth."
        )
    return notes
