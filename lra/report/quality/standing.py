"""Which mechanism is more accurate and how sure that is: tests over seeds, ranks over tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean, mean

import msgspec

from lra.report.entries import Entry
from lra.report.quality import noise
from lra.report.quality.columns import Column
from lra.report.quality.luck import Guesses, beyond, guesses
from lra.report.quality.tables import QualityTable
from lra.report.rows import EXACT, NO_MIXING, RowKey, row, shown
from lra.report.select import Selection
from lra.report.table import Cell, Row, Table
from lra.report.versions import among, apart, named, text
from lra.report.words import NO_VALUE, count, listing, percent
from lra.verdict.accuracy import (
    Accuracies,
    Difference,
    Ranks,
    average_ranks,
    holm_adjust,
    paired_difference,
)

_LEVEL = 0.05
_TWICE: RowKey = ("run", noise.TWICE)
"""Its place among the rows of a column."""
_COMPARED = "better, worse than"
"""The column of how many others a row is told apart from."""


class Standing(msgspec.Struct, frozen=True):
    """How the mechanisms of an accuracy table stand to each other."""

    table: Table
    where: str
    """What the titles of all that belongs to it end with."""
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
        e for e in selection.entries if e.metric == "test_accuracy" and e.protocol in protocols
    ]
    rows = {key: own for key, own in shown(group).items() if _tasks(own) == set(protocols)}
    if len(rows) < 2:
        return None
    versions = apart(entry.measured_by for own in rows.values() for entry in own)
    known = {key: _accuracies(own, versions) for key, own in rows.items()}
    ranked = average_ranks({_name(key): _by_task(own) for key, own in known.items()})
    order = sorted(rows, key=lambda key: (-_mean(known[key]), key))
    anchors = {
        words: min(
            (key for key in order if rows[key][0].mechanism == name),
            key=lambda key: key[0] != "run",
            default=None,
        )
        for words, name in ((EXACT, EXACT), ("no mixing", NO_MIXING))
    }
    grain = 1 / min(column.rows.test for column in columns)
    against = {words: _against(known, key, order, grain) for words, key in anchors.items() if key}
    tests = _tests(known, grain)
    above, chances = _above(tests), guesses(selection)
    lines = []
    for key in order:
        cells = [Cell(percent(_mean(known[key])), value=_mean(known[key]))]
        cells += [differences[key] for differences in against.values()]
        cells += [above.get(key, Cell(NO_VALUE))] if tests else []
        cells += [_rank(ranked.average[_name(key)])] if ranked else []
        cells += [_escaped(rows[key], columns, chances)]
        lines.append(row(rows[key], cells))
    another = noise.seed_distance(known.values()) if against else None
    if another is not None:
        blank = [Cell("")] * (len(lines[0].cells) - 1 - len(against))
        twice = [column.get(_TWICE, Cell(NO_VALUE, "one seed")) for column in against.values()]
        for label, own in ((noise.TWICE, twice), (noise.ANOTHER, [another] * len(against))):
            lines.append(Row(label, (Cell(""), *own, *blank), group="Noise"))
    table = Table(
        id=f"standing-{quality.number}",
        title=f"How sure the differences are {quality.where}",
        caption=f"Over {_over(columns)}; differences in points of accuracy, with their interval "
        "of 95 % where every task has several seeds.",
        corner="mechanism",
        columns=(
            f"mean of {len(columns)}" if len(columns) > 1 else "accuracy",
            *(f"against {words}" for words in against),
            *([_COMPARED] if tests else []),
            *(["average rank"] if ranked else []),
            "beyond luck",
        ),
        rows=tuple(lines),
        notes=tuple(_notes(len(tests), ranked, another is not None, versions)),
    )
    best = ranked.average if ranked else {}
    by_name = {_name(key): line for key, line in zip(order, lines, strict=False)}
    ranking = tuple(by_name[name] for name in best)
    return Standing(table, quality.where, ranked, ranking, _leading(order, known, tests))


def _name(key: RowKey) -> str:
    origin, label = key
    return label if origin == "run" else f"{label} ({origin})"


def _tasks(own: Sequence[Entry]) -> set[str]:
    return {entry.protocol for entry in own if entry.value is not None}


def _accuracies(own: Sequence[Entry], versions: Sequence[str]) -> Accuracies:
    """By task and, of the features in which rows are apart, their versions: no test compares two
    versions."""
    found: dict[str, dict[int, float]] = {}
    for entry in own:
        if entry.value is not None:
            task = f"{entry.protocol} {text(among(entry.measured_by, versions))}"
            found.setdefault(task, {})[entry.seed or 0] = entry.value
    return found


def _by_task(accuracies: Accuracies) -> Accuracies:
    """The same by task alone."""
    found: dict[str, dict[int, float]] = {}
    for task, seeds in accuracies.items():
        found.setdefault(task.split()[0], {}).update(seeds)
    return found


def _mean(accuracies: Accuracies) -> float:
    return mean(mean(own.values()) for own in _by_task(accuracies).values())


def _against(
    known: Mapping[RowKey, Accuracies], anchor: RowKey, order: Sequence[RowKey], grain: float
) -> dict[RowKey, Cell]:
    """The difference of each row to one of them, its probability corrected for their number; and of
    that one to itself, by other seeds."""
    found = {
        key: paired_difference(known[key], known[anchor], grain)
        for key in order
        if key != anchor and known[key].keys() == known[anchor].keys()
    }
    if twice := noise.halves(known[anchor]):
        found[_TWICE] = paired_difference(*twice, grain)
    tested = {key: one.p for key, one in found.items() if one is not None and one.p is not None}
    corrected = dict(zip(tested, holm_adjust(list(tested.values())), strict=True))
    cells = {
        key: _difference(one, corrected.get(key), "one pair" if key == _TWICE else "one seed")
        for key, one in found.items()
    }
    others = dict.fromkeys(order, Cell(NO_VALUE, "another version"))
    return {**others, **cells, anchor: Cell(NO_VALUE)}


def _difference(one: Difference | None, p: float | None, single: str) -> Cell:
    if one is None:
        return Cell(NO_VALUE, "no shared seed")
    text = f"{100 * one.value:+.1f}"
    if one.low is None or one.high is None or p is None:
        return Cell(text, single, one.value)
    told = f"p {p:.2g}" if p >= 0.001 else "p < 0.001"
    bounds = f"{100 * one.low:+.1f} to {100 * one.high:+.1f}"
    return Cell(text, f"{bounds}, {told}", one.value, one.high - one.low, strong=p < _LEVEL)


class _Test(msgspec.Struct, frozen=True):
    """A pair of rows, and whether they are told apart."""

    above: RowKey
    below: RowKey
    apart: bool


def _tests(known: Mapping[RowKey, Accuracies], grain: float) -> list[_Test]:
    """All pairs of rows that share several seeds on each task, corrected for their number."""
    pairs, p = [], []
    for one, other in combinations(known, 2):
        alike = known[one].keys() == known[other].keys()
        found = paired_difference(known[one], known[other], grain) if alike else None
        if found is not None and found.p is not None:
            pairs.append((one, other) if found.value > 0 else (other, one))
            p.append(found.p)
    corrected = holm_adjust(p)
    return [_Test(*pair, q < _LEVEL) for pair, q in zip(pairs, corrected, strict=True)]


def _above(tests: Sequence[_Test]) -> dict[RowKey, Cell]:
    """How many others each row is above and below, of those that it was tested against."""
    tested = Counter(key for test in tests for key in (test.above, test.below))
    above = Counter(test.above for test in tests if test.apart)
    below = Counter(test.below for test in tests if test.apart)
    return {
        key: Cell(f"{above[key]}, {below[key]}", f"of {number}", above[key])
        for key, number in tested.items()
    }


def _rank(average: float) -> Cell:
    return Cell(f"{average:.1f}", value=average)


def _leading(
    order: Sequence[RowKey], known: Mapping[RowKey, Accuracies], tests: Sequence[_Test]
) -> str:
    """What the row that is above most others is not told apart from, and how many it could not be
    tested against; empty without a test."""
    if not tests:
        return ""
    ahead = Counter(test.above for test in tests if test.apart)
    behind = Counter(test.below for test in tests if test.apart)
    tested = {key for test in tests for key in (test.above, test.below)}
    best = min(tested, key=lambda key: (behind[key], -ahead[key], order.index(key)))
    own = [test for test in tests if best in (test.above, test.below)]
    alike = [
        _name(test.below if test.above == best else test.above) for test in own if not test.apart
    ]
    against = {best, *(key for test in own for key in (test.above, test.below))}
    left = [key for key in order if key not in against]
    reasons = {reason for key in left for reason in _untested(known[key], known[best])}
    why = sorted(reasons, reverse=True)
    rest = f" {count(len(left), 'row')} could not be tested: {' or '.join(why)}." if left else ""
    start = f"{_name(best)} was tested against {count(len(own), 'row')}"
    end = "(paired over seeds, Holm-corrected)"
    if not alike:
        return f"{start}: better than {'all' if len(own) > 1 else 'it'} {end}.{rest}"
    above = f", better than {count(ahead[best], 'other')}" if ahead[best] else ""
    return f"{start}: not told apart from {listing(alike)}{above} {end}.{rest}"


def _untested(one: Accuracies, best: Accuracies) -> list[str]:
    """Why a row was not tested against the best."""
    single = any(len(seeds) == 1 for seeds in one.values())
    versions = ["another version of the measuring code"] if one.keys() != best.keys() else []
    return [*(["one seed"] if single else []), *versions] or ["fewer than two shared seeds"]


def _escaped(own: Sequence[Entry], columns: Sequence[Column], known: Guesses) -> Cell:
    """How many of a row's trainings did better than guessing does by luck."""
    judged = [one for column in columns for one in beyond(own, column, known)]
    if not judged:
        return Cell(NO_VALUE)
    failed = Counter(entry.word for entry, _ in judged if entry.value is None)
    words = ", ".join(f"{number} {word}" for word, number in sorted(failed.items()))
    better = [found for _, found in judged]
    return Cell(f"{sum(better)} of {len(better)}", words, fmean(better))


def _over(columns: Sequence[Column]) -> str:
    return listing([column.title for column in columns])


def _notes(tested: int, ranked: Ranks | None, seeds: bool, versions: Sequence[str]) -> list[str]:
    notes = []
    if versions:
        notes.append(
            f"Rows are of several versions of the measuring code ({named(versions)}): tests "
            "compare rows of one alone; means and ranks put all side by side."
        )
    if tested:
        notes.append(
            "Differences use the seeds both rows have. Paired Student's t-tests over seeds, on "
            "these tasks only, each with the variance of its own seeds. p is Holm-corrected over "
            f"the rows of a column (for '{_COMPARED}' over all {count(tested, 'pair')}); bold, or "
            f"counted as better or worse: p < {_LEVEL}."
        )
    if ranked is not None:
        notes.append(
            f"Average rank: over {count(ranked.tasks, 'task')}, 1 is the best. Ranks closer than "
            f"{ranked.critical:.1f} are not told apart for tasks in general (Nemenyi; Friedman's "
            f"p {ranked.p:.2g}): with so few tasks, ranks say little about other tasks."
        )
    notes.append(
        "Beyond luck: how many trainings are more accurate than always answering the test split's "
        "largest class is in 99 of 100 tests of as many rows."
    )
    if seeds:
        notes += noise.NOTES
    return notes
