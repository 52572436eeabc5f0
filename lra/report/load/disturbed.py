"""Timings on a busy machine, detected by the control around each of them, or on a GPU whose clocks
were held down by heat or a fault, as its driver reports."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable

from lra.core.cells import EfficiencyCell
from lra.core.records import Metric, Record
from lra.report.words import TIMES

BUSY = 1.5
"""Ratio of a control to the usual one, or to the one on the other side of the timing, from which on
the timing is disturbed."""

FAR = 4
"""Ratio of a control to the reference's on the same class of machine from which on it is disturbed
as well. No two processors of a class differ so much, and it alone shows a machine that is slowed
down all along (by a neighbour, or by two threads on one core)."""

SIGNS = (
    f"a control more than {BUSY:g} {TIMES} as slow as usual, or {FAR:g} {TIMES} as slow as the "
    "reference of this class of machine, or a GPU's clocks held down by heat or a fault"
)
"""Signs of a disturbed timing, in words."""
USUAL = "power cap"
"""Reason of throttling that is no disturbance: a GPU at its power cap always works like that under
such a load."""


def disturbed(records: Iterable[Record], reference: Iterable[Record] = ()) -> set[str]:
    """Return the ids of timings with so slow a control, before or after, and of those with a
    throttled GPU.

    The usual time is the lower quartile, over all controls with the same machine class, threads and
    torch, of the fastest sample of each: a few busy minutes do not move it, and even a machine that
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
    """Controls of a timing; none for any other record."""
    if not isinstance(record.cell, EfficiencyCell):
        return []
    found = (record.metrics.get(name) for name in ("control_before", "control_after"))
    return [metric for metric in found if metric is not None]


def _quickest(record: Record) -> list[float]:
    """Fastest sample of each control, in seconds."""
    found = ((metric.minimum or metric.value) for metric in _controls(record))
    return [value for value in found if value]


def _place(record: Record) -> object:
    """Conditions under which controls should be equally fast."""
    cell = record.cell
    assert isinstance(cell, EfficiencyCell), "only timings have controls"
    return cell.machine, cell.threads, cell.torch, cell.device


def _lower_quartile(values: list[float]) -> float:
    return sorted(values)[len(values) // 4]
