"""The table of fitted exponents: how cost grows with length, beside what the mechanism declares."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from lra.report.costs.derived import Column, is_busy, of_most_lengths, why_none
from lra.report.entries import Busy, Entry
from lra.report.rows import (
    RowKey,
    Rows,
    by_replicate,
    is_unfused,
    reference_notes,
    row,
    shown,
    unfused,
)
from lra.report.table import Cell, Row, Table
from lra.report.words import NO_VALUE, count, listing, raised, span
from lra.verdict.declared_cost import DeclaredCost, parse_cost, parse_greatest_cost
from lra.verdict.growth import LEAST, SLACK, Growth, growth

_WIDER = (
    " With several replicates the interval of the slope through their means must lie above it too, "
    "so a curve that bends but repeats well does not count."
)
_NOTHING = "nothing"
"""What the adapter of a peer declares, whose cost is its package's."""
_NOT_FASTER = "no faster growth shown"
_CLAIMS = {0.0: "constant", 1.0: "linear", 2.0: "quadratic", 3.0: "cubic"}


class _Fit(msgspec.Struct, frozen=True):
    """What one cell of the table knows."""

    growth: Growth | None
    busy: bool
    declared: DeclaredCost | None

    @property
    def judged(self) -> bool:
        """Whether it can be compared with what is declared."""
        return self.growth is not None and self.declared is not None and not self.busy

    @property
    def claim(self) -> str:
        """What is declared, in a word, if it grows faster than that; else empty."""
        if self.growth is None or self.declared is None or self.busy:
            return ""
        exponent = self.declared.exponent
        # What every call grows with at least: its inputs and outputs are as long as the sequence.
        faster = self.growth.exceeds(max(exponent, 1.0))
        return _CLAIMS.get(exponent, f"n^{exponent:.3g}") if faster else ""


def growth_table(
    id: str,
    columns: Sequence[Column],
    group: Sequence[Entry],
    busy: Busy,
) -> Table | None:
    """Return a table with one row per mechanism; None where no cost has an exponent.

    Of decoding there is none: one step is not the call that a card speaks of.
    """
    columns = [column for column in columns if column.mode != "decode"]
    rows = shown([entry for column in columns for entry in column.of(group)])
    fits = {
        key: {c: _fit(of_most_lengths(c.of(own)), c, busy) for c in columns}
        for key, own in rows.items()
    }
    known = [fit for own in fits.values() for fit in own.values() if fit.growth is not None]
    if not known:
        return None
    return Table(
        id=id,
        title="Growth with length",
        caption="Exponent of length in a straight-line fit to the logarithms of all figures, with "
        "its 95 % interval; end: over the last two doublings alone. Short lengths, where overheads "
        "count, pull the fit towards 0.",
        corner="mechanism",
        columns=(
            *(column.title for column in columns),
            "declared",
            "against the claim",
        ),
        rows=tuple(_row(own, fits[key]) for key, own in rows.items()),
        notes=(
            *_notes(known),
            *_parts(rows, fits),
            *unfused(group, ratios=False),
            *reference_notes(rows),
        ),
    )


def _fit(own: Sequence[Entry], column: Column, busy: Busy) -> _Fit:
    costs = [
        {n: e.value for n, e in by_length.items() if e.value is not None}
        for _, by_length in sorted(by_replicate(own).items())
    ]
    said = sorted({entry.declared for entry in own if entry.declared})
    # Records of one row may come from two versions of a card: neither is compared then.
    claim = _claim(said[0], own) if len(said) == 1 else None
    return _Fit(growth(costs), is_busy(own, column, busy), claim)


def _claim(said: str, own: Sequence[Entry]) -> DeclaredCost | None:
    """What a card says of such calls: of plain inputs, and of dropout where a CPU has it."""
    if any(map(is_unfused, own)):
        first, *others = said.split(";")
        on_cpu = [one for one in others if "on a CPU" in one and "dropout" in one]
        return parse_greatest_cost(";".join([first, *on_cpu]))
    return parse_cost(said, gpu=any(entry.device == "cuda" for entry in own))


def _row(own: Sequence[Entry], fits: Mapping[Column, _Fit]) -> Row:
    cells = [_cell(of_most_lengths(column.of(own)), fit) for column, fit in fits.items()]
    return row(own, [*cells, _claims(own, fits), _verdict(fits)])


def _cell(own: Sequence[Entry], fit: _Fit) -> Cell:
    found = fit.growth
    if found is None:
        replicates = by_replicate(entry for entry in own if entry.value)
        if not replicates:
            return Cell(why_none(own))
        lengths = set[int].intersection(*map(set, replicates.values()))
        each = " in every replicate" if len(replicates) > 1 else ""
        return Cell(NO_VALUE, f"{count(len(lengths), 'length')} of {LEAST}{each}")
    end = "" if found.end is None else f"; end {_exponent(found.end)}"
    return Cell(
        _exponent(found.exponent),
        f"{_exponent(found.low)} to {_exponent(found.high)}{end}",
        found.exponent,
        found.high - found.low,
        busy=fit.busy,
    )


def _exponent(value: float) -> str:
    """Two decimals, and no sign before a zero."""
    return f"{round(value, 2) + 0.0:.2f}"


def _claims(own: Sequence[Entry], fits: Mapping[Column, _Fit]) -> Cell:
    """`n^2, memory n^1 (O(n m d); O(n))`: what is declared of time and of memory."""
    powers, formulas = [], []
    for timed in sorted({column.timed for column in fits}, reverse=True):
        columns = [column for column in fits if column.timed == timed]
        said = sorted({e.declared for c in columns for e in c.of(own) if e.declared})
        known = [found for c in columns if (found := fits[c].declared) is not None][:1]
        words = "not declared" if said == [_NOTHING] else listing(said) or NO_VALUE
        power = f"n^{known[0].exponent:.3g}" if known else words
        powers.append(power if timed else f"memory {power}")
        formulas += [one.formula for one in known]
    for none in (NO_VALUE, "not declared"):
        if not formulas and all(power.removeprefix("memory ") == none for power in powers):
            return Cell(none)
    return Cell(", ".join(powers), "; ".join(formulas))


def _verdict(fits: Mapping[Column, _Fit]) -> Cell:
    """`claims linear, grows faster (time, train)`, that this is not shown, or that nothing is
    compared."""
    judged = [column.title for column, fit in fits.items() if fit.judged]
    if not judged:
        return Cell(NO_VALUE)
    faster: dict[str, list[str]] = defaultdict(list)
    for column, fit in fits.items():
        if fit.claim:
            faster[fit.claim].append(column.title)
    if faster:
        said = listing([f"claims {claim}" for claim in faster])
        return Cell(f"{said}, grows faster", "; ".join(t for own in faster.values() for t in own))
    return Cell(_NOT_FASTER, "" if len(judged) == len(fits) else f"compared: {'; '.join(judged)}")


def _notes(known: Sequence[_Fit]) -> list[str]:
    notes = []
    replicates = {fit.growth.replicates for fit in known if fit.growth is not None}
    several = replicates - {1}
    if several:
        notes.append(
            f"Intervals of {span(several)} replicates: Student's t over the exponent of each. They "
            "say how well it repeats, not whether the points lie on a line."
        )
    if 1 in replicates:
        notes.append(
            "Intervals of one replicate: of the slope, from how far its points lie from the line. "
            "Three points leave it one degree of freedom: very wide, or narrow by chance."
        )
    if any(fit.declared is not None for fit in known):
        notes += [
            "Declared: by the mechanism's card; n and m are lengths, other letters constants.",
            "Grows faster: the lower end of the interval exceeds the declared exponent (taken as "
            "at least 1, since inputs and outputs grow with length) by more than "
            f"{SLACK:g}.{_WIDER if several else ''} "
            f"{raised(_NOT_FASTER)}: no interval does; it may just be wide.",
        ]
    if any(fit.declared is None for fit in known):
        notes.append("n/a: the record has no formula that the mechanism declares.")
    if any(fit.busy for fit in known):
        notes.append(
            "!: the machine was busy during some of the timings; not held against the claim."
        )
    return notes


def _parts(rows: Rows, fits: Mapping[RowKey, Mapping[Column, _Fit]]) -> list[str]:
    """Which exponents are of fewer lengths than were tried, and of which."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for key, own in rows.items():
        for column, fit in fits[key].items():
            tried = {entry.length for entry in column.of(own)}
            if fit.growth is not None and tried != set(fit.growth.lengths):
                lengths = listing([str(n) for n in fit.growth.lengths])
                found[lengths][own[0].label].append(column.title)
    return [
        f"Of {lengths} alone: "
        + ", ".join(f"{label} ({'; '.join(titles)})" for label, titles in labels.items())
        + "."
        for lengths, labels in found.items()
    ]
