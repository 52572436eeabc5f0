"""What mechanisms declare of their operations, beside what was counted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence, Set

from lra.report.entries import Entry, Origin
from lra.report.rows import row, shown
from lra.report.table import Cell, Table
from lra.report.words import NO_VALUE, TIMES, count, figures, listing, raised

ALIKE = 1e-3
"""A formula within this share of what is counted agrees with it."""


def declared_operations(
    id: str, call: str, group: Sequence[Entry]
) -> tuple[Table | None, tuple[str, ...]]:
    """Return a table of those that differ, and a sentence on those that agree and have none.

    Nothing where no record says what is declared; `call` is what one call is, in words.
    """
    values: dict[tuple[Origin, str], dict[str, float | None]] = defaultdict(dict)
    for e in group:
        if e.metric in ("operations", "declared_operations"):
            values[e.origin, e.record][e.metric] = e.value
    declared = [e for e in group if e.metric == "declared_operations"]
    # What a library's kernel does is not counted: there is nothing to compare with.
    ratios = {
        (e.origin, e.record): e.value / counted
        for e in declared
        if e.value and (counted := values[e.origin, e.record].get("operations"))
    }
    compared = [e for e in declared if (e.origin, e.record) in ratios]
    if not compared:
        return None, ()
    off = {e.label for e in compared if abs(ratios[e.origin, e.record] - 1.0) > ALIKE}
    said = _agreement(call, declared, {e.label for e in compared}, off)
    if not off:
        return None, said
    lengths = sorted({e.length for e in compared})
    rows = []
    for own in shown([e for e in declared if e.label in off]).values():
        known = [(e.length, ratios.get((e.origin, e.record))) for e in own]
        by_length = {length: ratio for length, ratio in known if ratio is not None}
        rows.append(row(own, [_cell(by_length.get(n)) for n in lengths]))
    return (
        Table(
            id=id,
            title=f"Declared operations of a {call}, as a multiple of those counted",
            caption="By the formula that a mechanism declares, over what was counted while it ran. "
            f"Only of mechanisms where they differ by more than {100 * ALIKE:g} %.",
            corner="mechanism",
            columns=tuple(map(str, lengths)),
            rows=tuple(rows),
        ),
        said,
    )


def _agreement(
    call: str, declared: Sequence[Entry], compared: Set[str], off: Set[str]
) -> tuple[str, ...]:
    """How many mechanisms do what they declare, and which cannot be compared and why; nothing
    where all differ."""
    parts = []
    if compared - off:
        every = count(len(compared), "mechanism")
        whole = f"all {every}" if len(compared) > 1 else "the one mechanism"
        which = f"{len(compared - off)} of {every}" if off else whole
        parts.append(
            f"for {which} compared, the operations counted in a {call} equal what the "
            f"layer declares by formula (within {100 * ALIKE:g} %), at every length"
        )
    uncounted = {e.label for e in declared if e.value} - compared
    if uncounted:
        parts.append(
            f"none are counted of {listing(sorted(uncounted))}, as torch sees no product in a "
            "library's kernel"
        )
    undeclared = {e.label for e in declared} - compared - uncounted
    if undeclared:
        parts.append(f"none are declared of {listing(sorted(undeclared))}")
    told = "; ".join(parts)
    return (f"{raised(told)}.",) if told else ()


def _cell(ratio: float | None) -> Cell:
    if ratio is None:
        return Cell(NO_VALUE)
    # Three figures would hide a difference of a thousandth.
    return Cell(f"{figures(ratio, most=4)} {TIMES}", value=ratio)
