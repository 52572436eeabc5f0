"""The table of crossings: the length from which each mechanism costs less than exact attention."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

import msgspec

from lra.core.records import Failure
from lra.report.costs.derived import Column, is_busy, of_most_lengths, why_none
from lra.report.entries import Busy, Entry, Origin
from lra.report.rows import (
    EXACT,
    NO_MIXING,
    RowKey,
    by_replicate,
    reference_notes,
    row,
    shown,
    unfused,
)
from lra.report.table import Cell, Table
from lra.report.words import NO_VALUE, STATUS, ending, listing
from lra.verdict.crossover import Costs, Crossover, Figure, crossover

_PRUNED = ending("skipped", Failure(type="Pruned", message=""))
"""The word for a length that was not tried because a shorter one failed."""


_MOST = 7
"""Significant figures: lengths in whole positions."""


class _Duel(msgspec.Struct, frozen=True):
    """One mechanism against exact attention in one column."""

    column: Column
    own: list[Entry]
    exact: list[Entry]
    found: Crossover | None
    busy: bool

    @property
    def hidden(self) -> bool:
        """Whether it is never in range though a table has a ratio of medians below 1 at the
        longest length: replicates cross one by one."""
        if self.found is None or self.found.interval != "replicates" or self.found.at < math.inf:
            return False
        mine, theirs = (
            [e.value for e in side if e.length == self.found.lengths[-1] and e.value is not None]
            for side in (self.own, self.exact)
        )
        return median(mine) < median(theirs)


def crossover_table(
    id: str,
    columns: Sequence[Column],
    group: Sequence[Entry],
    busy: Busy,
) -> Table | None:
    """Return a table with one row per mechanism; None where none was tried at three lengths."""
    rows = _asked(columns, group)
    if not rows:
        return None
    duels = _duels(columns, group, rows, busy)
    return Table(
        id=id,
        title=f"Length from which it costs less than {EXACT}",
        caption=f"The shortest length after which the cost stays below that of {EXACT}'s process "
        "of the same replicate number, even if it ran on another day. Between measured lengths "
        "both costs are taken to follow powers of length.",
        corner="mechanism",
        columns=tuple(column.title for column in columns),
        rows=tuple(row(own, [_cell(duel) for duel in duels[key]]) for key, own in rows.items()),
        notes=(
            *_notes([one for own in duels.values() for one in own]),
            *unfused(group),
            *reference_notes(rows),
        ),
        numeric=False,
    )


def crossings(
    column: Column, group: Sequence[Entry], busy: Busy
) -> dict[RowKey, tuple[Crossover, bool]]:
    """Return where each mechanism of the run crosses exact attention in one cost, and whether the
    machine was busy; without those that have no length in common with it."""
    rows = _asked([column], group)
    duels = _duels([column], group, rows, busy)
    return {
        key: (one.found, one.busy)
        for key, (one,) in duels.items()
        if one.found is not None and key[0] == "run"
    }


def _asked(columns: Sequence[Column], group: Sequence[Entry]) -> dict[RowKey, list[Entry]]:
    asked = [e for e in group if e.mechanism not in (EXACT, NO_MIXING)]
    return shown([entry for column in columns for entry in column.of(asked)])


def _duels(
    columns: Sequence[Column],
    group: Sequence[Entry],
    rows: Mapping[RowKey, Sequence[Entry]],
    busy: Busy,
) -> dict[RowKey, list[_Duel]]:
    anchors = [e for e in group if e.mechanism == EXACT]

    def duel(origin: Origin, own: Sequence[Entry], column: Column) -> _Duel:
        theirs = [e for e in anchors if e.origin == origin]
        first = min((e.label for e in theirs), default="")
        mine = of_most_lengths(column.of(own))
        exact = of_most_lengths(column.of([e for e in theirs if e.label == first]))
        found = crossover(_costs(mine), _costs(exact), _gone(exact))
        return _Duel(column, mine, exact, found, is_busy([*mine, *exact], column, busy))

    return {key: [duel(key[0], own, column) for column in columns] for key, own in rows.items()}


def _costs(own: Iterable[Entry]) -> Costs:
    return {
        replicate: {
            n: Figure(e.value, e.q1, e.q3) for n, e in by_length.items() if e.value is not None
        }
        for replicate, by_length in by_replicate(own).items()
    }


def _gone(exact: Sequence[Entry]) -> set[int]:
    """Lengths at which exact attention ran out of memory, or was not tried as it had before."""
    known = {e.length for e in exact if e.value is not None}
    out = {e.length for e in exact if e.word == STATUS["oom"]} - known
    pruned = {e.length for e in exact if e.word == _PRUNED} - known
    return out | {n for n in pruned if out and n > min(out)}


def _cell(duel: _Duel) -> Cell:
    """`about 1,900 (1,600 to 2,300)`, `never in range (up to 8192)`, or why it cannot be told."""
    found = duel.found
    if found is None:
        lengths = sorted({e.length for e in duel.own if e.value is not None})
        if not lengths:
            return Cell(why_none(duel.own))
        return Cell(NO_VALUE, _lacking(EXACT, duel.exact, lengths))
    text, notes = _text(found)
    notes += _left_out(duel, found)
    inside = 0 < found.at < math.inf
    return Cell(text, "; ".join(notes), found.at if inside else None, busy=duel.busy)


def _left_out(duel: _Duel, found: Crossover) -> list[str]:
    """Why lengths that were tried are not among those compared."""
    known = [set(by_length) for by_length in by_replicate(duel.own).values()]
    beside = {e.length for e in duel.exact if e.value is not None}
    left = sorted({e.length for e in duel.own} - set(found.lengths))
    lost = [n for n in left if not any(n in lengths for lengths in known)]
    alone = [n for n in left if n not in beside and all(n in lengths for lengths in known)]
    rest = [n for n in left if n not in lost and n not in alone]
    notes = []
    if lost:
        notes.append(f"{why_none([e for e in duel.own if e.length in lost])} at {_listed(lost)}")
    if alone:
        notes.append(_lacking(EXACT, duel.exact, alone))
    if rest:
        notes.append(f"not in every replicate at {_listed(rest)}")
    return notes


def _text(found: Crossover) -> tuple[str, list[str]]:
    """What stands in the cell, and what is added to it."""
    shortest, longest = found.lengths[0], found.lengths[-1]
    most = _figures(found)
    early, late = _bounds(found, most)
    if found.at == 0:
        return "from the shortest measured", [str(shortest), *late]
    if math.isinf(found.at):
        return "never in range", [f"up to {longest}", *early]
    if found.jumps:
        return f"from {round(found.at)}", [f"{EXACT} OOM there", *early, *late]
    text = f"about {about(found.at, most)}"
    if early and late and found.low and found.high and math.isfinite(found.high):
        ends = [about(end, most) for end in (found.low, found.high)]
        return text, [" to ".join(ends)] if ends[0] != ends[1] else []
    return text, [*early, *late]


def _bounds(found: Crossover, most: int) -> tuple[list[str], list[str]]:
    """How much earlier and later it may be, in words, where it may."""
    early, late = [], []
    if found.low is not None and found.low < found.at:
        at = about(found.low, most) if found.low else found.lengths[0]
        early.append(f"perhaps from {at}")
    if found.high is not None and found.high > found.at:
        never = math.isinf(found.high)
        late.append("perhaps never" if never else f"at the latest {about(found.high, most)}")
    return early, late


def _figures(found: Crossover) -> int:
    """With how many significant figures a crossing and its bounds are told: two, three where only
    they tell the bounds apart, and more where one would seem to lie beyond the lengths compared."""
    told = [n for n in (found.low, found.at, found.high) if n and math.isfinite(n)]

    def ends(most: int) -> tuple[float, float]:
        rounded = [_rounded(n, most) for n in told]
        return min(rounded), max(rounded)

    def is_inside(most: int) -> bool:
        return found.lengths[0] <= ends(most)[0] and ends(most)[1] <= found.lengths[-1]

    if not told:
        return 2
    (low, high), (lower, higher) = ends(2), ends(3)
    least = 3 if low == high and lower != higher else 2
    return next((most for most in range(least, _MOST) if is_inside(most)), _MOST)


def _rounded(length: float, most: int) -> float:
    return round(length, most - 1 - math.floor(math.log10(length)))


def about(length: float, most: int = 2) -> str:
    """A length in `most` significant figures."""
    return f"{_rounded(length, most):,.0f}"


def _listed(lengths: Iterable[int]) -> str:
    return listing([str(n) for n in lengths])


def _lacking(name: str, own: Sequence[Entry], lengths: Sequence[int]) -> str:
    """`sdpa has no figure at 512 (not run) and 1024 (timeout)`."""
    words = {n: why_none([e for e in own if e.length == n]) for n in lengths}
    if len(set(words.values())) == 1:
        return f"{name} has no figure at {_listed(lengths)} ({words[lengths[0]]})"
    return f"{name} has no figure at {listing([f'{n} ({word})' for n, word in words.items()])}"


def _notes(duels: Sequence[_Duel]) -> list[str]:
    found = [one.found for one in duels if one.found is not None]
    kinds = {one.interval for one in found}
    notes = []
    if "replicates" in kinds:
        notes.append("In brackets, of several replicates: the earliest and the latest of them.")
    if any(one.hidden for one in duels):
        notes.append(
            f"Each replicate crosses {EXACT}'s of the same number at its own length; the median is "
            "shown, so 'never' can stand here though another table has a ratio of medians below 1."
        )
    if "quartiles" in kinds:
        notes.append(
            "In brackets, of times with one replicate: crossings of the lower quartile with the "
            f"upper one of {EXACT}, and of the upper with the lower."
        )
    beaten: dict[tuple[int, ...], list[str]] = {}
    for column in dict.fromkeys(one.column for one in duels):
        own = [one.found for one in duels if one.column == column and one.found is not None]
        if lengths := tuple(sorted({n for one in own for n in one.beaten})):
            beaten.setdefault(lengths, []).append(column.title)
    notes += [
        f"{'; '.join(titles)}: {EXACT} ran out of memory at {_listed(lengths)}; what has a figure "
        "there counts as costing less."
        for lengths, titles in beaten.items()
    ]
    if any(one.busy for one in duels):
        notes.append("!: the machine was busy during some of the timings.")
    return notes
