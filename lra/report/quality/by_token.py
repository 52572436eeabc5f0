"""Tasks that ask for each token: bits per byte, and whether decoding gives the same answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import mean, stdev

from lra.core.cells import QualityCell
from lra.report.entries import Entry
from lra.report.quality.columns import Column, columns_of
from lra.report.rows import row, shown
from lra.report.select import Selection
from lra.report.table import Cell, Row, Table, sorted_groups
from lra.report.words import NO_VALUE, NOT_RUN, figures, listing, percent

_TOLD = 5
"""Mechanisms that a sentence names."""
_BITS, _AGREEMENT = "bits_per_byte", "decode_agreement"
_SOURCES = {"generated": "Generated data", "file": "Data from files", "hub": "Data from a hub"}


def bits_tables(selection: Selection) -> list[Table]:
    """Return bits per byte, mechanisms and simple baselines by task: a table per scale, rules,
    track, data source and precision."""
    simple = [e for e in selection.entries if e.kind == "baseline" and e.unit == "bit"]
    found = [e for e in selection.entries if e.kind == "quality" and e.metric == _BITS]
    groups = sorted_groups(found, lambda e: (e.scale, e.rules, e.track, e.source, e.dtype))
    return [
        _bits(f"bits-{number}", group, simple, _columns(group, selection))
        for number, (_, group) in enumerate(groups, start=1)
    ]


def bits_sentences(tables: Iterable[Table]) -> list[str]:
    """Return, of each task, the mechanisms that need the fewest bits, and what stands beside."""
    sentences = []
    for table in tables:
        for place, column in enumerate(table.columns):
            known = [line for line in table.rows if line.cells[place].value is not None]
            known.sort(key=lambda line: line.cells[place].value or 0.0)
            told = [f"{line.title} {line.cells[place].text}" for line in known if line.mechanism]
            beside = [
                f"{line.label} {line.cells[place].text}" for line in known if not line.mechanism
            ]
            if told:
                least = listing(told[:_TOLD])
                more = f" ({', '.join(beside)})" if beside else ""
                sentences.append(f"{table.title}, on {column} the fewest: {least}{more}.")
    return sentences


def decode_table(selection: Selection) -> Table | None:
    """Return how often a trained model answers alike in one pass and step by step."""
    found = [e for e in selection.entries if e.metric == _AGREEMENT]
    if not found:
        return None
    columns = _columns(found, selection)
    scales = len({column.cell.scale for column in columns}) > 1
    return Table(
        id="decoding-by-use",
        title="Decoding by use",
        caption="Percent of the tokens asked for that a trained model tells alike in one pass and "
        "step by step, after half of each text was taken in at once; over seeds, the least.",
        corner="mechanism",
        columns=tuple(
            f"{column.title}, {column.cell.scale}" if scales else column.title for column in columns
        ),
        rows=tuple(
            row(own, [_least(own, column.protocol) for column in columns])
            for own in shown(found).values()
        ),
    )


def _columns(group: Iterable[Entry], selection: Selection) -> list[Column]:
    records = {entry.record for entry in group}
    return columns_of(
        (kept.cell, kept.record.rows)
        for kept in selection.kept
        if isinstance(kept.cell, QualityCell) and kept.record.id in records
    )


def _bits(id: str, group: list[Entry], simple: list[Entry], columns: Sequence[Column]) -> Table:
    first, several = group[0], len({entry.seed for entry in group}) > 1
    rows = [
        row(own, [_seeds([e for e in own if e.protocol == column.protocol]) for column in columns])
        for own in shown(group).values()
    ]
    return Table(
        id=id,
        title=f"Bits per byte at scale {first.scale}",
        caption="Of the test split, the less the better: the mean cost of a byte after those that "
        f"stand before it in its window. {_SOURCES[first.source]}, {first.rules} rules, "
        f"{first.track} track, trained in {first.dtype}.",
        corner="mechanism",
        columns=tuple(column.title for column in columns),
        rows=(*rows, *_baselines(simple, columns)),
        notes=(
            *(["\N{PLUS-MINUS SIGN} is one standard deviation over n seeds."] if several else []),
            "majority: frequencies of bytes; current token: of bytes after each byte, what can be "
            "told without mixing; xz: the whole split, compressed, not window by window; its "
            "grammar: what a ledger's own draws cost, the least there is.",
        ),
    )


def _baselines(simple: Iterable[Entry], columns: Sequence[Column]) -> list[Row]:
    places = [(column.data, column.cell.scale) for column in columns]
    found = [entry for entry in simple if (entry.protocol, entry.scale) in places]
    rows = []
    for label in dict.fromkeys(entry.label for entry in found):
        own = {(e.protocol, e.scale): e for e in found if e.label == label}
        cells = [_bits_cell(own[place]) if place in own else Cell(NO_VALUE) for place in places]
        rows.append(Row(label, tuple(cells), group="Baselines"))
    return sorted(rows, key=lambda line: -max(cell.value or 0.0 for cell in line.cells))


def _bits_cell(entry: Entry) -> Cell:
    if entry.value is None:
        return Cell(entry.word or NO_VALUE, entry.reason)
    return Cell(figures(entry.value), value=entry.value)


def _seeds(found: Sequence[Entry]) -> Cell:
    """Mean over the seeds that ended well, the others counted beside it in words."""
    if not found:
        return Cell(NOT_RUN)
    values = [entry.value for entry in found if entry.value is not None]
    words = Counter(entry.word for entry in found if entry.word)
    if not values:
        return Cell(listing(sorted(words)))
    spread = stdev(values) if len(values) > 1 else None
    notes = [f"\N{PLUS-MINUS SIGN} {figures(spread, most=2)}, n {len(values)}"] if spread else []
    notes += [f"{number} {word}" for word, number in sorted(words.items())]
    return Cell(figures(mean(values), spread), ", ".join(notes), mean(values), spread)


def _least(own: Iterable[Entry], protocol: str) -> Cell:
    values = [e.value for e in own if e.protocol == protocol and e.value is not None]
    return Cell(percent(min(values)), value=min(values)) if values else Cell(NO_VALUE)
