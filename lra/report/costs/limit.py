"""How far a call is from the machine's limit: the time its operations or its bytes would take.

Operations are those of matrix products, at the rate of a large product; bytes are inputs,
parameters, outputs and gradients once each, at the rate of a large copy. It is an estimate: a call
may do with less than is counted, or find in a cache what a large copy does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lra.core.cells import CeilingCell
from lra.core.records import Record
from lra.report.costs.place import Cost, costs
from lra.report.entries import Busy, Entry
from lra.report.rows import RowKey, row, shown
from lra.report.table import Cell, Table
from lra.report.words import count, figures, machine_words

_ABOVE = (
    "Above 100: the machine was slower when its limits were measured than when the call was timed; "
    "or the call does with less than is counted, as a causal kernel that skips half of the pairs "
    "does, a step that reads a part of its state, or what finds its inputs in a cache."
)

_ALONE = "operations alone"
_UNKNOWN = "Operations alone: the minimum bytes are unknown, e.g. for a whole model."

Place = tuple[str, int, str, str, str]
"""Machine, threads, torch, dtype, device: what a ceiling holds for."""


class Ceilings:
    """The highest rates seen at each place: whatever disturbs a machine makes it slower."""

    def __init__(self, records: Iterable[Record]) -> None:
        self._rates: dict[Place, tuple[float, float]] = {}
        for record in records:
            cell = record.cell
            if not isinstance(cell, CeilingCell) or record.status != "ok":
                continue
            rates = [record.metrics.get(name) for name in ("product_rate", "copy_rate")]
            product, copy = (None if rate is None else rate.value for rate in rates)
            if product and copy:
                place = (machine_words(cell.machine), cell.threads, cell.torch)
                key = (*place, cell.dtype, cell.device)
                known = self._rates.get(key, (0.0, 0.0))
                self._rates[key] = (max(product, known[0]), max(copy, known[1]))

    def of(self, entry: Entry) -> tuple[float, float] | None:
        """Return operations and bytes a second where an entry was measured; None if unknown."""
        return self.at((entry.machine, entry.threads, entry.torch, entry.dtype, entry.device))

    def at(self, place: Place) -> tuple[float, float] | None:
        """Return the same of a place."""
        return self._rates.get(place)


def limit_table(
    id: str,
    call: str,
    entries: Sequence[Entry],
    ceilings: Ceilings,
    busy: Busy,
) -> Table | None:
    """Return what share of the limit each mechanism reaches by length; None without ceilings.

    `call` is what one call is, in words; the entries are of one mode and one setting of sizes.
    """
    known_at = [(entry, found) for entry in entries if (found := ceilings.of(entry)) is not None]
    if not known_at:
        return None
    place, rates = known_at[0]
    counted = {
        ((e.origin, e.label), e.length, e.metric): e.value for e in entries if e.value is not None
    }
    timed = [e for e in entries if e.metric == "latency"]
    lengths = sorted({e.length for e in timed})
    known, grouped = costs(timed, busy), shown(timed)
    least = {(key, n): _least(counted, key, n, rates) for key in grouped for n in lengths}
    rows = [
        row(own, [_cell(known.at(key, n), least[key, n]) for n in lengths])
        for key, own in grouped.items()
    ]
    product, copy = rates
    alone = any(
        limit is not None and limit[1] == _ALONE and known.at(*place).value is not None
        for place, limit in least.items()
    )
    above = any((cell.value or 0.0) > 1.0 for one in rows for cell in one.cells)
    return Table(
        id=id,
        title=f"Share of the machine's limit in a {call}, in percent",
        caption="The time that its operations or its bytes would take at the machine's best, over "
        "the median time; then which of the two is the limit.",
        corner="mechanism",
        columns=tuple(str(length) for length in lengths),
        rows=tuple(rows),
        notes=(
            f"Limits, the highest rates of any record of {place.machine}, "
            f"{count(place.threads, 'thread')}: {product / 1e9:,.0f} billion operations a "
            f"second in a large matrix product, {copy / 1e9:,.0f} GB a second read and "
            "written in a copy.",
            "Operations are those of products, convolutions and fused attention, no Fourier "
            "transform and no library's recurrent kernel (not counted); bytes are inputs, "
            "parameters, outputs and gradients once each. Where they are the limit, a mechanism "
            "that moves more cannot reach 100 %.",
            *([_UNKNOWN] if alone else []),
            *known.partly_notes(),
            *([_ABOVE] if above else []),
        ),
    )


def _least(
    counted: Mapping[tuple[RowKey, int, str], float],
    key: RowKey,
    length: int,
    rates: tuple[float, float],
) -> tuple[float, str] | None:
    """The least time of a call, and which limit that is; None where its operations are not counted,
    as those of a library's own recurrent kernel are not, of which torch sees no product."""
    operations = counted.get((key, length, "operations"))
    if not operations:
        return None
    moved = counted.get((key, length, "minimum_bytes"))
    if moved is None:
        return operations / rates[0], _ALONE
    return max((operations / rates[0], "operations"), (moved / rates[1], "bytes"))


def _cell(cost: Cost, least: tuple[float, str] | None) -> Cell:
    if cost.value is None:
        return Cell(cost.word)
    if least is None:
        return Cell("not counted")
    share = least[0] / cost.value
    note = "; ".join(part for part in (least[1], cost.partly) if part)
    return Cell(figures(100 * share, most=2), note, share, busy=cost.disturbed)
