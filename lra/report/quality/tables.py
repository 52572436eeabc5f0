"""Quality tables: mechanisms and simple baselines by task, in accuracies or in bits per byte."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import mean, stdev

import msgspec

from lra.report.entries import Entry
from lra.report.mechanisms.exact import exact_mechanisms
from lra.report.mechanisms.settings import Differences, in_words, trained_and_timed
from lra.report.quality.baselines import (
    ENTROPY,
    bits_rows,
    legend,
    no_mixing_rows,
    simple_rows,
)
from lra.report.quality.columns import Column, columns_of, mean_columns, tokens
from lra.report.quality.doubts import Leaked, doubts, impossible
from lra.report.quality.group import Group, group_of
from lra.report.quality.notes import machine_notes, sharing_notes, table_notes
from lra.report.quality.score import ACCURACY, BITS, Score
from lra.report.quality.sizes import same_function, size_notes
from lra.report.rows import NO_MIXING, RowKey, Rows, reference_notes, row, shown
from lra.report.select import Selection
from lra.report.table import Cell, Row, Table, sorted_groups
from lra.report.words import NO_VALUE, NOT_RUN, count, listing, percent


class QualityTable(msgspec.Struct, frozen=True):
    """A table of one score and the protocols that its columns stand for."""

    table: Table
    columns: tuple[Column, ...]
    averaged: tuple[Column, ...]
    """Those that the last column averages; empty if there is no such column."""
    score: Score
    exact: frozenset[str]
    """Names of mechanisms that are exact attention, as far as the records tell."""
    alike: tuple[str, ...]
    """Labels of rows that compute the same function as `sdpa`, itself among them."""
    differences: Differences
    """Between the settings that mechanisms were trained and timed with."""

    @property
    def group(self) -> Group:
        """What all of it was trained under."""
        return group_of(self.columns[0].cell)

    @property
    def where(self) -> str:
        """What the titles of all that belongs to it end with: `at scale mini, tuned track`."""
        return _where(self.group, self.score)

    @property
    def number(self) -> str:
        """What the ids of tables and figures that belong to it end with."""
        return self.table.id.removeprefix("quality-")

    @property
    def mean_of(self) -> tuple[str, ...]:
        """Their tasks."""
        return tuple(column.task for column in self.averaged)

    @property
    def over(self) -> str:
        """What the last column of accuracies is: `mean accuracy over listops and text`."""
        return f"mean accuracy over {listing(self.mean_of)}" if self.mean_of else "accuracy"

    @property
    def tokens(self) -> str:
        """How long the inputs are that the last column is of: `24 to 128 tokens`."""
        return tokens(self.averaged or self.columns)


def quality_tables(selection: Selection) -> list[QualityTable]:
    """Return accuracies, a table for each group of trainings, those with the most mechanisms
    first."""
    return _tables(selection, ACCURACY, "quality")


def bits_tables(selection: Selection) -> list[QualityTable]:
    """Return bits per byte, in tables told apart and ordered as those of accuracies are."""
    return _tables(selection, BITS, "bits")


def _tables(selection: Selection, score: Score, id: str) -> list[QualityTable]:
    cells = selection.trained()
    found = [e for e in selection.entries if e.metric == score.metric and e.order == "given"]
    simple = [e for e in selection.entries if e.kind == "baseline"]
    groups = _fullest_first(
        [group for _, group in sorted_groups(found, lambda e: group_of(cells[e.record][0]))]
    )
    differences, leaked = trained_and_timed(selection.entries), impossible(doubts(selection))
    exact = exact_mechanisms(selection)
    return [
        _table(
            f"{id}-{number}",
            score,
            group,
            simple,
            columns_of(cells[e.record] for e in group),
            differences,
            leaked,
            exact,
        )
        for number, group in enumerate(groups, start=1)
    ]


def _fullest_first(groups: Iterable[list[Entry]]) -> list[list[Entry]]:
    """Those of the scale with the most of the run's mechanisms first, and so within a scale."""
    keyed = [(group[0].scale, _mechanisms(group), group) for group in groups]
    most: dict[str, int] = {}
    for scale, number, _ in keyed:
        most[scale] = max(number, most.get(scale, 0))
    keyed.sort(key=lambda one: (-most[one[0]], one[0], -one[1]))
    return [group for _, _, group in keyed]


def _mechanisms(group: Iterable[Entry]) -> int:
    return len({e.mechanism for e in group if e.origin == "run" and e.value is not None})


def _table(
    id: str,
    score: Score,
    group: list[Entry],
    simple: list[Entry],
    columns: list[Column],
    differences: Differences,
    leaked: Leaked,
    exact: frozenset[str],
) -> QualityTable:
    measured = {(e.protocol, e.origin, e.label) for e in group if e.value is not None}
    averaged = mean_columns(columns, Counter(protocol for protocol, _, _ in measured))
    several = max(Counter((e.origin, e.label, e.protocol) for e in group).values()) > 1
    rows = shown(group)
    best = {column.protocol: _winner(rows, column, score, leaked) for column in columns}
    mechanisms: list[Row] = []
    floor: list[Row] = []
    for key, own in rows.items():
        cells = [
            _score(
                _of(own, column),
                score,
                several,
                strong=best[column.protocol] == key,
                leaked=(*key, column.protocol) in leaked,
            )
            for column in columns
        ]
        made = row(own, [*cells, *([_mean(own, averaged)] if averaged else [])])
        (floor if made.mechanism == NO_MIXING else mechanisms).append(made)
    under, trained = group_of(columns[0].cell), {(entry.scale, entry.label) for entry in group}
    title, caption = _heading(score, under.by_token)
    bits = score == BITS
    simpler = bits_rows(simple, columns) if bits else simple_rows(simple, columns, averaged)
    table = Table(
        id=id,
        title=f"{title} {_where(under, score)}",
        caption=f"{caption} {under.data.capitalize()}, {under.rules} rules, {under.track} track, "
        f"trained in {under.precision}.",
        corner="mechanism",
        columns=(
            *(column.title for column in columns),
            *([f"mean of {len(averaged)}"] if averaged else []),
        ),
        rows=(
            *mechanisms,
            *no_mixing_rows(floor, columns, averaged),
            *simpler,
        ),
        notes=(
            *table_notes(
                columns,
                averaged,
                several,
                score,
                bold=any(best.values()),
                by_token=under.by_token,
            ),
            *([] if bits else legend(simpler)),
            *size_notes(rows, several=len(columns) > 1),
            *machine_notes(rows),
            *sharing_notes(rows),
            *reference_notes(rows),
            *in_words(differences, trained),
        ),
    )
    return QualityTable(
        table,
        tuple(columns),
        tuple(averaged),
        score,
        exact,
        same_function(rows, exact),
        differences,
    )


def _where(under: Group, score: Score) -> str:
    # Bits are of tasks that ask for each token anyway.
    return f"at scale {(under.whole if score == BITS else under).words}"


def _heading(score: Score, by_token: bool) -> tuple[str, str]:
    """What a table is called, and what its figures are."""
    if score == BITS:
        return "Bits per byte", (
            "Of the test split, the less the better: the mean cost of a byte after those that "
            "stand before it in its window."
        )
    return "Test accuracy", f"Percent of {'tokens asked for' if by_token else 'test rows'}."


def _of(own: Iterable[Entry], column: Column) -> list[Entry]:
    protocol = column.protocol
    return [entry for entry in own if entry.protocol == protocol]


def _values(found: Iterable[Entry]) -> list[float]:
    return [entry.value for entry in found if entry.value is not None]


def _score(
    found: Sequence[Entry], score: Score, several: bool, *, strong: bool, leaked: bool
) -> Cell:
    """Mean over the seeds that ended well, the others counted beside it in words."""
    values = _values(found)
    words = Counter(entry.word for entry in found if entry.word)
    if not found:
        return Cell(NOT_RUN)
    if not values:
        reasons = {entry.reason for entry in found if entry.word == "not measured"}
        seeds = [count(len(found), "seed")] if several else []
        return Cell(listing(sorted(words)), ", ".join([*sorted(reasons), *seeds]))
    spread = stdev(values) if len(values) > 1 else None
    notes = [f"± {score.spread(spread)}"] if spread is not None else []
    notes += [f"n {len(values)}"] if several else []
    notes += [f"{number} {word}" for word, number in sorted(words.items())]
    notes += [_rate(found[0])] if found[0].track == "tuned" else []
    notes += [f"below {ENTROPY}"] if leaked else []
    text = score.text(mean(values), spread)
    return Cell(text, ", ".join(notes), mean(values), spread, strong=strong)


def _rate(entry: Entry) -> str:
    """The learning rate that was chosen, and whether a better one may lie beyond those tried."""
    rate, tried = f"{entry.learning_rate:g}", entry.rates_tried.split(", ")
    if len(tried) < 2 or rate not in (tried[0], tried[-1]):
        return f"rate {rate}"
    return f"rate {rate}, the {'lowest' if rate == tried[0] else 'highest'} of {len(tried)}"


def _mean(own: Sequence[Entry], columns: Sequence[Column]) -> Cell:
    """Mean of a row's tasks, only if it has them all; spread over seeds that all tasks share."""
    by_task = [_of(own, column) for column in columns]
    means = [mean(_values(found)) for found in by_task if _values(found)]
    if len(means) < len(columns):
        return Cell(NO_VALUE, f"{len(means)} of {len(columns)}")
    seeds = [{e.seed: e.value for e in found if e.value is not None} for found in by_task]
    if len(seeds[0]) > 1 and all(one.keys() == seeds[0].keys() for one in seeds):
        spread = stdev(mean(one[seed] for one in seeds) for seed in seeds[0])
        return Cell(percent(mean(means), spread), f"± {percent(spread)}", mean(means), spread)
    return Cell(percent(mean(means)), value=mean(means))


def _winner(rows: Rows, column: Column, score: Score, leaked: Leaked) -> RowKey | None:
    """The best mechanism, if its 95 % interval over seeds lies clear of the next one's."""
    bounds = []
    for key, own in rows.items():
        values = _values(_of(own, column))
        if not values or own[0].mechanism == NO_MIXING or (*key, column.protocol) in leaked:
            continue
        found = score.interval(values, column.rows.test)
        if found is None:
            return None
        low, high = sorted(map(score.gain, found))
        bounds.append((score.gain(mean(values)), low, high, key))
    bounds.sort(reverse=True)
    if len(bounds) < 2:
        return None
    (_, low, _, key), (_, _, high, _) = bounds[:2]
    return key if low > high else None
