"""A record that takes part in a report, and the ids by which sections join its figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from lra.core.cells import BaselineCell, MeasuredCell, QualityCell
from lra.core.hashing import value_hash
from lra.core.records import Record
from lra.report.load.variants import in_force
from lra.report.load.versions import data_hash

Origin = Literal["run", "reference"]
"""run: the reported store. reference: committed records that it is compared with."""
_DIGITS = 12


class Measurement(msgspec.Struct, frozen=True):
    """A record that takes part in the report."""

    origin: Origin
    variant: str
    """Id of a mechanism with a configuration; "" for simple baselines."""
    label: str
    """Name for people: the mechanism, with the settings that set it apart from others of its
    name."""
    record: Record
    rates_tried: tuple[float, ...] = ()
    """Learning rates that a tuned training's rate was chosen from."""
    disturbed: bool = False
    """Whether the machine was busy at a timing."""

    @property
    def cell(self) -> MeasuredCell:
        """Cell of the measurement."""
        return measured(self.record)


def measured(record: Record) -> MeasuredCell:
    """Return the cell of a record with a measurement."""
    assert isinstance(record.cell, MeasuredCell), "checks and pictures have sections of their own"
    return record.cell


def variant_of(cell: MeasuredCell) -> str:
    """Return the id of a cell's mechanism with the configuration in force; "" where it has none."""
    return (
        ""
        if isinstance(cell, BaselineCell)
        else variant_id(cell.mechanism.name, cell.mechanism.config)
    )


def variant_id(name: str, config: Mapping[str, Any]) -> str:
    """Return the id of a mechanism with a configuration; values of different types differ."""
    return f"{name}:{value_hash([name, in_force(config, name)])[:_DIGITS]}"


def protocol_hash(cell: QualityCell) -> str:
    """Return the hash of all conditions that cells must share for their accuracies to be compared;
    for tuned ones without the learning rate."""
    training: object = cell.training
    if cell.track == "tuned":
        training = {**msgspec.to_builtins(cell.training), "learning_rate": "tuned"}
    return value_hash([cell.scale, cell.track, data_hash(cell), cell.model, training])
