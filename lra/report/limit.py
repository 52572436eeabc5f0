"""How far a call is from the machine's limit: the least time its operations or bytes could take.

Both are lower bounds. Operations are those of matrix products, at the rate of a large product;
bytes are inputs, parameters, outputs and gradients once each, at the rate of a large copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lra.core.cells import CeilingCell
from lra.core.records import Record
from lra.report.entries import Entry
from lra.report.rows import row, shown
from lra.report.table import Cell, Table
from lra.report.words import NOT_RUN, figures, machine_words

_ABOVE = (
    "Above 100: the machine was slower when its limits were measured than when the call was timed; "
    "sweep again with --rerun all on a quiet machine."
)

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
            product = record.metrics["product_rate"].value
            copy = record.metrics["copy_rate"].value
            if product and copy:
                place = (machine_words(cell.machine), cell.threads, cell.torch)
                key = (*place, cell.dtype, cell.device)
                known = self._rates.get(key, (0.0, 0.0))
                self._rates[key] = (max(product, known[0]), max(copy, known[1]))

    def of(self, entry: Entry) -> tuple[float, float] | None:
        """Return operations and bytes a second where an entry was measured; None if unknown."""
        place = (entry.machine, entry.threads, entry.torch, entry.dtype, entry.device)
        return self._rates.get(place)


def limit_table(id: str, call: str, entries: Sequence[Entry], ceilings: Ceilings) -> Table | None:
    """Return what share of the limit each mechanism reaches by length; None without ceilings.

    `call` is what one call is, in words; the entries are of one mode and one setting of sizes.
    """
    rates = next((found for e in entries if (found := ceilings.of(e)) is not None), None)
    if rates is None:
        return None
    counted = {(e.record, e.metric): e.value for e in entries if e.value is not None}
    timed = [e for e in entries if e.metric == "latency"]
    lengths = sorted({e.length for e in timed})
    rows = []
    for own in shown(timed).values():
        by_length = {e.length: e for e in own}
        cells = [_cell(by_length.get(length), counted, rates) for length in lengths]
        rows.append(row(own, cells))
    product, copy = rates
    above = any((cell.value or 0.0) > 1.0 for one in rows for cell in one.cells)
    return Table(
        id=id,
        title=f"Share of the machine's limit in a {call}, in percent",
        caption="The least time that its operations or its bytes could take, over the median time; "
        "below, which of the two is the limit.",
        corner="mechanism",
        columns=tuple(str(length) for length in lengths),
        rows=tuple(rows),
        notes=(
            f"Limits measured on this machine: {product / 1e9:,.0f} billion operations a second in "
            f"a large matrix product, {copy / 1e9:,.0f} GB a second read and written in a copy.",
            "Operations are those of products, convolutions and fused attention, no Fourier "
            "transform and no library's recurrent kernel (not counted); bytes are inputs, "
            "parameters, outputs and gradients once each. Whoever moves more cannot reach 100 %.",
            *([_ABOVE] if above else []),
        ),
    )


def _cell(
    entry: Entry | None, counted: Mapping[tuple[str, str], float], rates: tuple[float, float]
) -> Cell:
    if entry is None:
        return Cell(NOT_RUN)
    if entry.value is None:
        return Cell(entry.word)
    operations = counted.get((entry.record, "operations"))
    moved = counted.get((entry.record, "minimum_bytes"))
    if not operations:
        # A library's own recurrent kernel, of which torch sees no product.
        return Cell("not counted")
    times = {"operations": operations / rates[0], "bytes": (moved or 0.0) / rates[1]}
    limit = max(times, key=lambda name: times[name])
    share = times[limit] / entry.value
    return Cell(figures(100 * share, most=2), limit, share)
