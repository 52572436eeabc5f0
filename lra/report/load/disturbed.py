"""Timings taken while the machine was busy, told by the control that frames each of them, or while
heat or a fault held the clocks of a GPU down, told by its driver."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable

from lra.core.cells import EfficiencyCell
from lra.core.records import Metric, Record
from lra.report.words import TIMES

BUSY = 1.5
"""A control this many times slower than usual, or than on the other side of the timing, makes it a
disturbed one."""

FAR = 4
"""A control this many times slower than the reference of the same class of machine makes it one as
well: no two processors of a class differ so much, and where a machine is held up all along (by a
neighbour, or by two threads on one core) nothing else of its own tells."""

SIGNS = (
    f"a control more than {BUSY:g} {TIMES} as slow as usual, or {FAR:g} {TIMES} as slow as the "
    "reference of this class of machine, or a GPU's clocks held down by heat or a fault"
)
"""What tells a disturbed timing, in words."""
USUAL = "power cap"
"""A GPU at the cap of its power works as it always does at such a load."""


def disturbed(records: Iterable[Record], reference: Iterable[Record] = ()) -> set[str]:
    """Return the ids of timing cells whose control, before or after, was that slow, and of those
    that the GPU was throttled in.

    Usual is the lower quartile, over all controls with the same machine class, threads and torch,
    of the fastest sample of each: a few busy minutes leave it where it is, and even a machine that
    is busy throughout has quiet milliseconds.
    """
    controls: dict[object, dict[str, list[float]]] = defaultdict(dict)
    fastest: dict[object, list[float]] = defaultdict(list)
    found: set[str] = set()
    for record in records:
        if isinstance(record.cell, EfficiencyCell) and {*record.method.get("throttled_by", ())} - {
            USUAL
        }:
            found.add(record.id)
        if values := [metric.value for metric in _controls(record) if metric.value]:
            controls[_place(record)][record.id] = values
            fastest[_place(record)] += _quickest(record)
    elsewhere: dict[object, list[float]] = defaultdict(list)
    for record in reference:
        if quickest := _quickest(record):
            elsewhere[_place(record)] += quickest
    for place, cells in controls.items():
        usual = _lower_quartile(fastest[place])
        far = FAR * _lower_quartile(elsewhere[place]) if place in elsewhere else math.inf
        found |= {
            id for id, values in cells.items() if max(values) > min(BUSY * min(usual, *values), far)
        }
    return found


def _controls(record: Record) -> list[Metric]:
    """The controls of a timing; of any other record none."""
    if not isinstance(record.cell, EfficiencyCell):
        return []
    found = (record.metrics.get(name) for name in ("control_before", "control_after"))
    return [metric for metric in found if metric is not None]


def _quickest(record: Record) -> list[float]:
    """The fastest sample of each of its controls, in seconds."""
    found = ((metric.minimum or metric.value) for metric in _controls(record))
    return [value for value in found if value]


def _place(record: Record) -> object:
    """What controls have to share to be as fast as one another."""
    cell = record.cell
    assert isinstance(cell, EfficiencyCell), "only timings have controls"
    return cell.machine, cell.threads, cell.torch, cell.device


def _lower_quartile(values: list[float]) -> float:
    return sorted(values)[len(values) // 4]
