"""Ceilings: the highest rates that a machine has reached in a large product and a large copy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from lra.core.cells import CeilingCell
from lra.core.protocol import Machine
from lra.core.records import Record


class Place(NamedTuple):
    """Conditions that a ceiling holds for."""

    machine: Machine
    threads: int
    torch: str
    dtype: str
    device: str


class Ceiling(NamedTuple):
    """Rates of operations and of copied bytes, a second."""

    operations: float
    bytes: float


def ceilings(records: Iterable[Record]) -> dict[Place, Ceiling]:
    """Return the highest rates by conditions: disturbances only make a machine slower."""
    found: dict[Place, Ceiling] = {}
    for record in records:
        cell = record.cell
        if not isinstance(cell, CeilingCell) or record.status != "ok":
            continue
        rates = [record.metrics.get(name) for name in ("product_rate", "copy_rate")]
        product, copy = (None if rate is None else rate.value for rate in rates)
        if product and copy:
            place = Place(cell.machine, cell.threads, cell.torch, cell.dtype, cell.device)
            known = found.get(place, Ceiling(0.0, 0.0))
            found[place] = Ceiling(max(product, known.operations), max(copy, known.bytes))
    return found
