"""Timings taken while the machine was busy, told by the control that frames each of them, or while
heat or a fault held the clocks of a GPU down, told by its driver."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from lra.core.cells import EfficiencyCell
from lra.core.records import Record
from lra.report.words import TIMES

BUSY = 1.5
"""A control this many times slower than usual, or than on the other side of the timing, makes it a
disturbed one."""

SIGNS = (
    f"a control more than {BUSY:g} {TIMES} as slow as usual, or a GPU's clocks held down by heat "
    "or a fault"
)
"""What tells a disturbed timing, in words."""
USUAL = "power cap"
"""A GPU at the cap of its power works as it always does at such a load."""


def disturbed(records: Iterable[Record]) -> set[str]:
    """Return the ids of timing cells whose control, before or after, was that slow, and of those
    that the GPU was throttled in.

    Usual is the lower quartile, over all controls with the same machine class, threads and torch,
    of the fastest sample of each: a few busy minutes leave it where it is, and even a machine that
    is busy throughout has quiet milliseconds.
    """
    controls: dict[object, dict[str, list[float]]] = defaultdict(dict)
    fastest: dict[object, list[float]] = defaultdict(list)
    throttled: set[str] = set()
    for record in records:
        cell = record.cell
        if isinstance(cell, EfficiencyCell) and {*record.method.get("throttled_by", ())} - {USUAL}:
            throttled.add(record.id)
        found = [record.metrics.get(name) for name in ("control_before", "control_after")]
        values = [metric.value for metric in found if metric is not None and metric.value]
        if isinstance(cell, EfficiencyCell) and values:
            place = (cell.machine, cell.threads, cell.torch, cell.device)
            controls[place][record.id] = values
            fastest[place] += [m.minimum or m.value for m in found if m is not None and m.value]
    return throttled | {
        id
        for place, cells in controls.items()
        for usual in [_lower_quartile(fastest[place])]
        for id, values in cells.items()
        if max(values) > BUSY * min(usual, *values)
    }


def _lower_quartile(values: list[float]) -> float:
    return sorted(values)[len(values) // 4]
