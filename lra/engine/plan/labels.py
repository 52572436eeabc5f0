"""Labels that set the cells of a plan apart: sizes and settings that vary over it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from lra.core.cells import (
    BaselineCell,
    Cell,
    EfficiencyCell,
    ErrorCell,
    ProfileCell,
    QualityCell,
)
from lra.core.escape import escape_controls
from lra.engine.jobs import Job
from lra.report.load.settings import slot_words
from lra.report.load.variants import distinguishing_settings

_LACKING: dict[type[Cell], tuple[str, ...]] = {
    QualityCell: ("scale", "order", "slots", "seed", "rate"),
    BaselineCell: ("scale",),
    ProfileCell: ("scale", "slots"),
    EfficiencyCell: ("task", "heads", "head_width"),
    ErrorCell: ("batch", "heads", "head_width", "direction", "dtype"),
}
"""Fields missing from a cell's own label, by kind of cell."""
_BARE = ("task", "order", "slots", "direction", "dtype")
"""Fields whose value needs no name before it."""


def with_labels(jobs: Sequence[Job]) -> list[Job]:
    """Return a plan's jobs with labels that also give the fields that vary over cells of their
    kind, and the settings that vary over those of their mechanism."""
    kinds: dict[type[Cell], list[Cell]] = defaultdict(list)
    for job in jobs:
        kinds[type(job.cell)].append(job.cell)
    said = {
        id: words
        for kind, cells in kinds.items()
        for id, words in _distinguishing_words(kind, cells).items()
    }
    return [msgspec.structs.replace(job, apart=said[job.cell.id]) for job in jobs]


def _distinguishing_words(kind: type[Cell], cells: Sequence[Cell]) -> dict[str, tuple[str, ...]]:
    """Words that set cells of one kind apart, by their ids."""
    varying = [name for name in _LACKING.get(kind, ()) if len({_value(c, name) for c in cells}) > 1]
    settings = _settings(cells)
    return {
        cell.id: (
            *(_describe(name, value) for name in varying if (value := _value(cell, name)) != ""),
            *settings[cell.id],
        )
        for cell in cells
    }


def _settings(cells: Sequence[Cell]) -> dict[str, list[str]]:
    """Settings that differ among cells of one mechanism, by the ids of all cells."""
    found: dict[str, list[str]] = {cell.id: [] for cell in cells}
    mechanisms: dict[str, dict[str, dict[str, object]]] = defaultdict(dict)
    for cell in cells:
        if mechanism := getattr(cell, "mechanism", None):
            mechanisms[mechanism.name][cell.id] = mechanism.config
    for name, configs in mechanisms.items():
        settings = distinguishing_settings([*configs.values()], name)
        for id, words in zip(configs, settings, strict=True):
            found[id] = [escape_controls(words)] if words else []
    return found


def _value(cell: Cell, name: str) -> object:
    """Value of a field; "" for the usual one."""
    if isinstance(cell, QualityCell) and name == "order":
        return "" if cell.data.order == "given" else cell.data.order
    if isinstance(cell, QualityCell) and name == "rate":
        return f"{cell.training.learning_rate:g}" if cell.track == "tuned" else ""
    if isinstance(cell, QualityCell | ProfileCell) and name == "slots":
        return slot_words(cell.model.open_slots) if cell.model.open_slots else ""
    return getattr(cell, name)


def _describe(name: str, value: object) -> str:
    return f"{value}" if name in _BARE else f"{name.replace('_', ' ')} {value}"
