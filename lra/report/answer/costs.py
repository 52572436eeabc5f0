"""What a call costs, in the sentences to read first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from lra.report.costs.place import Costs, costs
from lra.report.costs.tables import EfficiencyTables, call_words
from lra.report.entries import PEAK_MEMORY, Busy
from lra.report.rows import EXACT, NO_MIXING, RowKey
from lra.report.table import Cell, Row, Table
from lra.report.words import TIMES, listing

MOST = 3
"""With more mechanisms than this the answer names the cheapest instead of each, and never more."""
_BUSY = " (busy machine)"
_MODES = ("train", "forward", "decode")
"""Of which there are sentences, the first that has a time."""


class _Told(msgspec.Struct, frozen=True):
    """A table with the costs that it is made of."""

    table: Table
    known: Costs
    elsewhere: frozenset[int] = frozenset()
    """Lengths at which another version of the measuring code timed exact attention."""

    def cell(self, row: Row, place: int) -> Cell:
        """Return what a row has in a column."""
        own = self.table.row(row.variant, row.origin)
        return own.cells[place] if own else Cell("not measured")

    def times(self, row: Row, place: int) -> str:
        """Return its ratio to exact attention; empty where there is none."""
        return self.known.ratio(_key(row), int(self.table.columns[place]))


def asked(table: Table) -> list[Row]:
    """Return the run's mechanisms that are asked about; exact attention, or the floor, if that is
    all."""
    own = [row for row in table.rows if row.origin == "run" and row.mechanism]
    others = [row for row in own if row.mechanism not in (EXACT, NO_MIXING)]
    return others or [row for row in own if row.mechanism == EXACT] or own


def cost_sentences(tables: EfficiencyTables, name: str, busy: Busy) -> list[str]:
    """Return what a call of the run's mechanisms costs; nothing where none was tried.

    `name` tells these tables from those of other settings. Of several modes the first counts of
    which there is a time.
    """
    tried = [mode for mode in _MODES if mode in tables.latency]
    timed = [mode for mode in tried if any(map(_reached, asked(tables.latency[mode])))]
    mode = next(iter(timed or tried), None)
    if mode is None:
        return []
    entries = [e for e in tables.entries if e.mode == mode]
    memory = PEAK_MEMORY[entries[0].device]
    time, room = (
        _Told(own[mode], costs([e for e in entries if e.metric == metric], slowed))
        for own, metric, slowed in ((tables.latency, "latency", busy), (tables.memory, memory, ()))
    )
    lengths = frozenset(length for of, length in tables.exact_elsewhere if of == mode)
    time = msgspec.structs.replace(time, elsewhere=lengths)
    layer = "attention alone" if tables.level == "attention" else tables.level
    layer += f" ({name})" if name else ""
    rows, call = asked(time.table), f"a {call_words(mode)}"
    if len(rows) > MOST:
        return _cheapest(time, room, rows, f"{call} of the {layer}")
    return [_cost(row, time, room, f"{call} of the {row.label} {layer}") for row in rows]


def _key(row: Row) -> RowKey:
    return (row.origin, row.variant)


def _reached(row: Row) -> list[int]:
    """The columns in which it has a figure."""
    return [place for place, cell in enumerate(row.cells) if cell.value is not None]


def _cost(row: Row, time: _Told, room: _Told, what: str) -> str:
    """`At length 2048 a training step of the performer layer takes 0.41 x the time of sdpa ...`."""
    reached = _reached(row)
    if not reached:
        return f"There is no time of {what} ({row.cells[-1].text})."
    place = reached[-1]
    length = time.table.columns[place]
    start = f"At length {length} {what} takes"
    taken = time.known.at(_key(row), int(length))
    end = ""
    if taken.others:
        end = f"; {taken.processes} of {taken.asked} processes have a time ({taken.others})"
    memory = room.cell(row, place)
    needs = f" and {memory.text} {room.table.unit}" if memory.value else f"; memory {memory.text}"
    times = time.times(row, place)
    busy = _BUSY if time.known.disturbed(_key(row), int(length)) else ""
    if row.mechanism == EXACT or not times:
        less = "" if row.mechanism == EXACT else f"; {_no_exact(time, int(length))}"
        return f"{start} {time.cell(row, place).text} {time.table.unit}{busy}{needs}{less}{end}."
    beside = room.times(row, place)
    needs = f" and {beside} its memory" if beside else needs
    return f"{start} {times} the time of {EXACT}{busy}{needs}{end}."


def _no_exact(time: _Told, length: int) -> str:
    if length in time.elsewhere:
        return f"{EXACT}'s time is of another version of the measuring code"
    return f"{EXACT} has no time there"


def _cheapest(time: _Told, room: _Told, rows: Sequence[Row], what: str) -> list[str]:
    """The fastest and the leanest of many, at the longest length with a ratio or, where there is
    none, with a figure."""
    reached = {place for row in rows for place in _reached(row)}
    if not reached:
        return [f"There is no time of {what} by any of {len(rows)} mechanisms."]
    beside = {place for place in reached for row in rows if time.times(row, place)}
    place = max(beside or reached)
    length = int(time.table.columns[place])
    keys = {_key(row): row for row in rows}
    timed, sized = (told.known.ranked(keys, length) for told in (time, room))
    named = [_least(time, keys, place, "fastest", "faster")]
    # What has a time and no size may need less than the system can tell.
    if {key for key, _ in timed} <= {key for key, _ in sized}:
        named.append(_least(room, keys, place, "least memory", "leaner"))
    number = max(len(timed), len(sized))
    where = f"at length {length}"
    if all(cost.processes == 1 for _, cost in timed):
        where += " (one process each)"
    if number < len(rows):
        where += f", where {number} of {len(rows)} mechanisms have a figure"
    return [f"For {what} {where}, {'; '.join(named)}."]


def _least(
    told: _Told, rows: Mapping[RowKey, Row], place: int, superlative: str, comparative: str
) -> str:
    """Those that cost least; of timings on a busy machine only where there are no others.

    Where none is surely below exact attention, they are but the nearest to it. Where some is, what
    has its figure above is counted and not named: its wide range alone puts it among them.
    """
    length, at = int(told.table.columns[place]), told.known.at
    known = [key for key, _ in told.known.ranked(rows, length)]
    quiet = [key for key in known if not told.known.disturbed(key, length)]
    least = told.known.least(quiet or known, length)
    exact = told.known.exact("run", length)
    lead, named = superlative, least
    if exact.value is not None:
        if any(at(key, length).below(exact) for key in quiet or known):
            named = [key for key in least if (at(key, length).value or 0.0) < exact.value]
        else:
            lead = f"none is surely {comparative} than {EXACT}; nearest"
    text = lead + _named(told, [rows[key] for key in named], len(least), place)
    if not quiet:
        return f"{text}{_BUSY}"
    left = len(known) - len(quiet)
    return f"{text} ({left} timed on a busy machine left out)" if left else text


def _named(told: _Told, least: Sequence[Row], number: int, place: int) -> str:
    """`: a, 0.07 x sdpa`, or `, not told apart: a and b, 0.068 and 0.07 x sdpa`; of so many."""
    first = least[:MOST]
    times = [told.times(row, place) for row in first]
    unit = f" {TIMES} {EXACT}" if all(times) else f" {told.table.unit}"
    plain = [told.cell(row, place).text for row in first]
    figures = [one.removesuffix(f" {TIMES}") for one in times] if all(times) else plain
    more = f", and {number - len(first)} more" if number > len(first) else ""
    alone = "" if number == 1 else ", not told apart"
    names = listing([row.label for row in first])
    return f"{alone}: {names}, {listing(figures)}{unit}{more}"
