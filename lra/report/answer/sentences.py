"""What the records say, in a few sentences computed from the tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from lra.core.cells import CeilingCell, EfficiencyCell, ProfileCell, ShowCell, VerifyCell
from lra.report.answer.costs import MOST, asked, cost_sentences
from lra.report.answer.crossings import crossing_sentences
from lra.report.answer.seeds import ONE, Seeds, seeds_of
from lra.report.costs.tables import EfficiencyTables
from lra.report.error.tables import ErrorTables, error_sentences, told_scale
from lra.report.mechanisms.settings import in_words, trained_and_timed
from lra.report.mechanisms.versions import other_versions
from lra.report.quality.baselines import SIMPLE, best_bag
from lra.report.quality.by_token import bits_sentences
from lra.report.quality.columns import tokens
from lra.report.quality.doubts import doubt_sentences, doubts, impossible
from lra.report.quality.luck import bag_sentences, luck_sentences
from lra.report.quality.standing import Standing
from lra.report.quality.tables import QualityTable, bits_tables
from lra.report.rows import EXACT, NO_MIXING
from lra.report.select import Selection
from lra.report.table import Cell, Row, Table
from lra.report.words import NO_VALUE, NOT_RUN, STATUS, apart, count, listing

_FIGURES = 10
"""With more accuracies than this the answer names the best mechanisms instead of each."""
_EXACT = 5
"""So many mechanisms that are exact attention are named beside those that are not."""
_SETTINGS = 2
"""With more settings of sizes than this the answer has the costs of two."""
_OTHERS = {
    VerifyCell: "check",
    ShowCell: "picture",
    ProfileCell: "profile",
    CeilingCell: "ceiling",
}
"""What has no row in a table of accuracies, times or errors."""


def answer(
    selection: Selection,
    quality: Sequence[QualityTable],
    costs: Sequence[EfficiencyTables],
    errors: Sequence[ErrorTables],
    standings: Sequence[Standing | None],
) -> tuple[str, ...]:
    """Return the sentences to read first, at least one; `caveats` come after them.

    `standings` are those of the accuracy tables.
    """
    sentences: list[str] = []
    said = _costs([cost for cost in costs if not cost.reference_only], selection)
    for one, stands in zip(quality, standings, strict=True):
        sentences += _quality(one, selection, name_scale=len(quality) > 1)
        sentences += [stands.leading] if stands is not None and stands.leading else []
    # Where accuracies have headings, the rest has, too.
    headed = len(quality) > 1
    modelled = bits_tables(selection)
    if quality and said and not headed:
        # Costs name lengths of their own.
        lengths = tokens([column for one in (*quality, *modelled) for column in one.columns])
        sentences.append(f"Trained on {quality[0].group.data}, {lengths}.")
    bits = bits_sentences(modelled, impossible(doubts(selection)))
    bits += [words for one in modelled for words in _no_reference(one, selection)]
    sentences += ["Language modelling:"] if headed and bits else []
    sentences += bits
    sentences += ["Speed and memory:"] if headed and said else []
    sentences += said
    off = error_sentences(errors)
    sentences += ["Errors of approximations:"] if headed and off else []
    sentences += off
    if not sentences:
        told = any(
            cell.value is not None
            for one in errors
            for table in one.tables.values()
            for row in table.rows
            for cell in row.cells
        )
        sentences = ["Errors are in tables." if told else "The run has no accuracy or time yet."]
    return tuple(sentences)


def _costs(own: Sequence[EfficiencyTables], selection: Selection) -> list[str]:
    """What calls cost in the setting with the most figures and, of the others, in the first that
    decodes; how many more there are."""
    if not own:
        return []
    first = max(own, key=lambda cost: len(cost.entries))
    decoding = [cost for cost in own if cost is not first and "decode" in cost.latency]
    told = own if len(own) <= _SETTINGS else [first, *decoding[:1]]
    names = apart([cost.parts for cost in told])
    sentences = [
        sentence
        for cost, name in zip(told, names, strict=True)
        for sentence in (
            *crossing_sentences(cost, name, selection.busy),
            *cost_sentences(cost, name, selection.busy),
        )
    ]
    if len(told) < len(own):
        shared = [part for part in first.parts if all(part in cost.parts for cost in told)]
        which = ", ".join(part for part in shared if any(part not in c.parts for c in own))
        others = f"{count(len(own) - len(told), 'other setting')} of sizes in the tables below."
        sentences.append(f"That is with {which}; {others}" if which else f"And {others}")
    return sentences


def caveats(selection: Selection, quality: Sequence[QualityTable]) -> tuple[str, ...]:
    """Return what to know before the answer is quoted: figures that are in doubt, settings and
    versions that differ, cells that are not ok, and timings of a busy machine."""
    return (
        *doubt_sentences(doubts(selection)),
        *_settings(selection, quality),
        *other_versions(selection.entries),
        *_not_ok(selection),
        *_busy(selection),
    )


def _quality(quality: QualityTable, selection: Selection, *, name_scale: bool) -> list[str]:
    subjects, seeds = asked(quality.table), seeds_of(quality, selection)
    if len(subjects) * len(quality.columns) > _FIGURES:
        sentences = [_best(quality, subjects, seeds)]
    elif _is_list(quality, subjects):
        sentences = [_listed(quality, subjects, seeds)]
    else:
        sentences = [_per_task(quality, row, seeds) for row in subjects]
    sentences += luck_sentences(quality, selection)
    sentences += bag_sentences(quality, selection)
    sentences += _no_reference(quality, selection)
    return [_heading(quality), *sentences] if name_scale else sentences


def _heading(quality: QualityTable) -> str:
    """`Test accuracy at scale mini (generated data, 24 to 128 tokens):`."""
    # The title names other data.
    data = f"{quality.group.data}, " if quality.group.source == "generated" else ""
    return f"{quality.table.title} ({data}{tokens(quality.columns)}):"


def _no_reference(quality: QualityTable, selection: Selection) -> list[str]:
    """Why the reference does not stand beside the run in some columns."""
    sentences = []
    for one in selection.unlike:
        titles = [column.title for column in quality.columns if column.protocol in one.protocols]
        sentences += [one.sentence(titles)] if titles else []
    return sentences


def _anchors(table: Table, row: Row) -> list[tuple[str, list[Row]]]:
    """Rows of exact attention and of no mixing, the run's own before a reference's."""
    named = [(EXACT, EXACT), (NO_MIXING, "no mixing")]
    found = []
    for name, words in named:
        rows = [
            r
            for r in table.rows
            if r.mechanism == name and r.mechanism != row.mechanism and r.cells
        ]
        rows.sort(key=lambda r: r.origin != "run")
        if rows:
            found.append((words, rows))
    return found


def _per_task(quality: QualityTable, row: Row, seeds: Seeds) -> str:
    """`performer: 78.3 % on text (sdpa 99.9 %, no mixing 50.1 %), OOM on image (...)`."""
    parts = []
    for place, column in enumerate(quality.columns):
        beside = _beside(quality.table, row, place)
        beside = f" ({beside})" if beside else ""
        parts.append(f"{_with_seeds(quality, row, place, seeds)} on {column.title}{beside}")
    return f"{row.label}: {'; '.join(parts)}."


def _is_list(quality: QualityTable, subjects: Sequence[Row]) -> bool:
    """Whether it is one task of several mechanisms: the same stands beside all."""
    return len(quality.columns) == 1 and len(subjects) > 1


def _listed(quality: QualityTable, subjects: Sequence[Row], seeds: Seeds) -> str:
    """`text: linear 82.1 %, performer 78.3 % and lstm OOM (sdpa 99.9 %, no mixing 50.1 %).`"""
    best_first = sorted(subjects, key=lambda row: -(row.cells[0].value or 0.0))
    told = [f"{row.label} {_with_seeds(quality, row, 0, seeds)}" for row in best_first]
    beside = _beside(quality.table, subjects[0], 0)
    if beside:
        # Two pairs of brackets side by side read badly.
        beside = f"; {beside}" if told[-1].endswith(")") else f" ({beside})"
    return f"{quality.columns[0].title}: {listing(told)}{beside}."


def _with_seeds(quality: QualityTable, row: Row, place: int, seeds: Seeds) -> str:
    """`78.3 % (77.1 to 79.5, 3 seeds)`; where no row has several, one goes without saying."""
    cell = row.cells[place]
    of = seeds.told(row, [quality.columns[place]], place) if cell.value is not None else ""
    return f"{_share(cell)} ({of})" if of and (of != ONE or seeds.intervals) else _share(cell)


def _beside(table: Table, row: Row, place: int) -> str:
    """`sdpa 99.9 %, no mixing 50.1 %`: what a row's anchors have in a column, each from the first
    of its rows that has anything, and the bag of tokens where nothing else that is simple is as
    good."""
    parts = []
    for words, rows in _anchors(table, row):
        cells = [anchor.cells[place] for anchor in rows]
        told = [_share(cell) for cell in cells if cell.text not in (NOT_RUN, NO_VALUE)]
        parts += [f"{words} {text}" for text in told[:1]]
    bag = best_bag(table.rows, place)
    parts += [f"{SIMPLE['bag_of_tokens']} {_share(bag)}"] if bag else []
    return ", ".join(parts)


def _share(cell: Cell) -> str:
    return cell.text if cell.value is None else f"{cell.text} %"


def _best(quality: QualityTable, subjects: Sequence[Row], seeds: Seeds) -> str:
    """The highest means of many mechanisms, with the anchors; what is exact attention in another
    guise comes after those that are not, where there are any."""
    number = len({column.task for column in quality.columns})
    anchors = listing(
        [
            words
            for words, rows in _anchors(quality.table, subjects[0])
            if any(cell.value is not None for row in rows for cell in row.cells)
        ]
    )
    start = count(len(subjects), "mechanism") + (f" beside {anchors}" if anchors else "")
    start += f" on {count(number, 'task')}"
    if not quality.mean_of and len(quality.columns) > 1:
        return f"{start}; the table has their accuracies."
    over = quality.over
    known = [row for row in subjects if row.cells[-1].value is not None]
    ranked = sorted(known, key=lambda row: (-(row.cells[-1].value or 0.0), row.label))
    if not ranked:
        return f"{start}; none of them has a {over}."
    exact = [row for row in ranked if row.mechanism in quality.exact]
    leading = [row for row in ranked if row not in exact]
    if exact and leading:
        over += " of those that are not exact attention"
    else:
        exact, leading = [], ranked
    first = leading[:MOST]
    of = [seeds.told(row, quality.averaged or quality.columns, -1) for row in first]
    if {*of} == {ONE}:
        over, of = f"{over} ({ONE} each)", [""] * len(of)
    best = [
        f"{row.label} {_share(row.cells[-1])}{f' ({said})' if said else ''}"
        for row, said in zip(first, of, strict=True)
    ]
    last = first[-1].cells[-1].text
    equal = sum(row.cells[-1].text == last for row in leading[MOST:])
    more = f"{_more(equal)} with {last} %" if equal else ""
    beside = _beside(quality.table, first[0], -1)
    if beside:
        # Two pairs of brackets side by side read badly.
        beside = f"; {beside}" if any(of) or more else f" ({beside})"
    told = f"{start}. Highest {over}: {listing(best)}{more}{beside}."
    if exact:
        others = [f"{row.label} {_share(row.cells[-1])}" for row in exact[:_EXACT]]
        told += f" Exact attention too: {listing(others)}{_more(len(exact[_EXACT:]))}."
    return f"{told}{_unranked(quality, [row for row in subjects if row.cells[-1].value is None])}"


def _more(left: int) -> str:
    """`, and 2 more`: how many a list leaves out."""
    return f", and {left} more" if left else ""


def _unranked(quality: QualityTable, rows: Sequence[Row]) -> str:
    """Which mechanisms are not compared, and what they lack; of many only how many they are."""
    if len(rows) > MOST:
        return f" {len(rows)} of them lack some of these and are not compared."
    needed = quality.averaged or quality.columns
    parts = []
    for row in rows:
        places = zip(quality.columns, row.cells, strict=False)
        lacking = [c.title for c, cell in places if c in needed and cell.value is None]
        parts.append(f"{row.label} (no figure on {listing(lacking)})")
    return f" Not compared: {listing(parts)}." if parts else ""


def _settings(selection: Selection, quality: Sequence[QualityTable]) -> list[str]:
    """Which of the asked mechanisms were trained with other settings than they were timed with."""
    own = {row.variant for one in quality for row in asked(one.table)}
    found = trained_and_timed(selection.entries)
    return in_words(found, {key for key in found if key[1] in own}, briefly=True)


def _not_ok(selection: Selection) -> list[str]:
    """How many of the run's cells did not end well, by ending; other kinds by themselves."""
    own = [kept.record for kept in selection.own]
    kinds = [("cell", own)]
    for kind, words in _OTHERS.items():
        kinds.append((words, [r for r in selection.others if isinstance(r.cell, kind)]))
    sentences = []
    for words, records in kinds:
        bad = Counter(record.status for record in records if record.status != "ok")
        if bad:
            endings = [f"{number} {STATUS[status]}" for status, number in sorted(bad.items())]
            verb = "is" if bad.total() == 1 else "are"
            sentences.append(
                f"{bad.total()} of {count(len(records), words)} {verb} not ok: {listing(endings)}."
            )
    return sentences


def _busy(selection: Selection) -> list[str]:
    """How many of the run's timings were taken on a busy machine."""
    own = [kept.record for kept in selection.own]
    timed = [r for r in own if isinstance(r.cell, EfficiencyCell) and r.status == "ok"]
    found = sum(("run", record.id) in selection.busy for record in timed)
    if not found:
        return []
    return [
        f"The machine was busy during {found} of {count(len(timed), 'timing')} "
        "(marked ! in the tables): do not trust them; the same command with --rerun disturbed "
        "measures them again."
    ]


def summary(
    quality: Sequence[QualityTable],
    costs: Sequence[EfficiencyTables],
    errors: Sequence[ErrorTables],
) -> Table | None:
    """Return the table to print in a terminal: the run beside exact attention and baselines."""
    if not quality:
        own = [cost for cost in costs if not cost.reference_only]
        tables = [table for cost in own for table in reversed(cost.latency.values())]
        tables += [one.tables[told_scale(one)] for one in errors]
        return next(iter(tables), None)
    table = quality[0].table
    rows = [
        row
        for row in table.rows
        if row.origin == "run" or row.mechanism in (EXACT, NO_MIXING) or not row.mechanism
    ]
    return msgspec.structs.replace(table, rows=tuple(rows))
