"""Estimates of the time of cells, by earlier records of similar ones. Never imports torch."""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict
from collections.abc import Iterable

import msgspec

from lra.core.cells import (
    BaselineCell,
    CeilingCell,
    Cell,
    EfficiencyCell,
    ErrorCell,
    ProfileCell,
    QualityCell,
)
from lra.core.profile_metrics import training_seconds
from lra.core.records import Record

GROWTH = 2.0
"""Exponent, that of attention, by which a longer input is taken to cost more; a shorter one is
taken to cost as much, since most of a short cell's time is the same at any length."""

_COSTING = ("batch", "micro_batches", "precision", "recompute", "execution", "bucketed")
"""Fields of a training that decide the cost of a step."""


class Estimate:
    """Estimates of cells by the records nearest to them."""

    def __init__(self, records: Iterable[Record]) -> None:
        oldest: dict[object, dict[float, Record]] = defaultdict(dict)
        self._profiles: dict[object, list[Record]] = defaultdict(list)
        self._trained: dict[bytes, Record] = {}
        """Oldest of the trainings that are alike in all settings."""
        for record in records:
            # A step shared by several devices tells nothing of one.
            if record.status == "ok" and record.method.get("devices", 1) == 1:
                own, size = oldest[_kind(record.cell)], _size(record.cell)
                own[size] = min(own.get(size, record), record, key=lambda r: r.started_at)
                if isinstance(record.cell, ProfileCell):
                    self._profiles[_training(record.cell)].append(record)
                elif isinstance(record.cell, QualityCell):
                    alike = _shared_settings(record.cell)
                    known = self._trained.get(alike, record)
                    self._trained[alike] = min(known, record, key=lambda r: r.started_at)
        self._by_kind = {kind: sorted(own.items(), key=_first) for kind, own in oldest.items()}
        """For each kind of cell the oldest record of each size, smallest first."""

    def seconds(self, cell: Cell) -> float | None:
        """Return the estimated seconds of a cell by the nearest record; for a training by the
        profile of its step where that is nearer. None where no record is similar."""
        own = self._own_training(cell)
        if own is not None:
            return _seconds(own)
        profiled = self._by_profile(cell)
        if profiled is not None:
            return profiled
        alike = self._by_kind.get(_kind(cell), [])
        if not alike:
            return None
        size = _size(cell)
        # The next smaller, or as large, and the next larger.
        place = bisect(alike, size, key=_first)
        near = alike[max(0, place - 1) : place + 1]
        known, nearest = min(near, key=lambda one: (_size_ratio(one[0], size), one[1].started_at))
        ratio = size / known
        if isinstance(cell, EfficiencyCell | ErrorCell):
            ratio = max(1.0, ratio) ** GROWTH
        return _seconds(nearest) * ratio

    def is_by_profile(self, cell: Cell) -> bool:
        """Return whether a training's time is known only by the profile of its step."""
        return self._own_training(cell) is None and self._by_profile(cell) is not None

    def _own_training(self, cell: Cell) -> Record | None:
        """The oldest training on the cell's class of machine with its settings and steps."""
        if not isinstance(cell, QualityCell):
            return None
        return self._trained.get(_shared_settings(cell))

    def _by_profile(self, cell: Cell) -> float | None:
        """Steps times the time of one, and the evaluations, by the newest of the most similar
        profiles; beside trainings of its kind only by one alike in all settings."""
        if not isinstance(cell, QualityCell):
            return None
        profiles = self._profiles.get(_training(cell), [])
        if not profiles:
            return None
        nearest = max(
            profiles, key=lambda record: (_similarity(record.cell, cell), record.started_at)
        )
        if _kind(cell) in self._by_kind and not all(_similarity(nearest.cell, cell)):
            return None
        step, row = nearest.metrics["step_seconds"].value, nearest.metrics["row_seconds"].value
        if step is None or row is None:
            return None
        rows = nearest.rows or cell.data.rows
        return training_seconds(cell.training, rows, step=step, row=row)


def _shared_settings(cell: QualityCell) -> bytes:
    """Key of trainings that are alike in all settings that decide their time."""
    alike = (_training(cell), _size(cell), _time_determinants(cell))
    return msgspec.json.encode(alike, order="sorted")


def _similarity(one: Cell, other: QualityCell) -> tuple[bool, ...]:
    """Equality of two trainings in each setting that decides a step's time, most important
    first."""
    if not isinstance(one, QualityCell | ProfileCell):
        return (False,)
    return tuple(
        a == b for a, b in zip(_time_determinants(one), _time_determinants(other), strict=True)
    )


def _time_determinants(cell: QualityCell | ProfileCell) -> tuple[object, ...]:
    data = cell.data
    return (
        cell.machine,
        (cell.model, data.rules, *(getattr(cell.training, name) for name in _COSTING)),
        cell.mechanism.config,
        data.length,
        cell.threads,
        (data.source, data.hash, data.parameters),
    )


def _seconds(record: Record) -> float:
    """Seconds that a cell took in all. The record of a continued training has the seconds of its
    last part, but metrics of the whole."""
    training = record.metrics.get("training_seconds")
    whole = training.value if training is not None else None
    return record.seconds if whole is None else max(record.seconds, whole)


def _first(one: tuple[float, Record]) -> float:
    return one[0]


def _size_ratio(one: float, other: float) -> float:
    """Factor between two sizes."""
    return max(one, other) / min(one, other)


def _kind(cell: Cell) -> object:
    """Key of cells that cost the same but for their size."""
    kind = cell.__struct_config__.tag
    mechanism = cell.mechanism.name if hasattr(cell, "mechanism") else ""
    if isinstance(cell, EfficiencyCell):
        return kind, mechanism, cell.mode, cell.level, cell.execution, cell.device
    if isinstance(cell, QualityCell | ProfileCell):
        return kind, *_training(cell)
    if isinstance(cell, ErrorCell):
        return kind, mechanism, cell.device
    if isinstance(cell, BaselineCell):
        return kind, cell.data.task, cell.scale, cell.data.source
    if isinstance(cell, CeilingCell):
        return kind, cell.dtype, cell.device
    return kind, mechanism


def _training(cell: QualityCell | ProfileCell) -> tuple[str, ...]:
    """Key of trainings that cost the same but for their steps."""
    return cell.mechanism.name, cell.data.task, cell.scale, cell.device


def _size(cell: Cell) -> float:
    """Size of a cell, proportional to its work: positions measured, or steps trained."""
    if isinstance(cell, EfficiencyCell | ErrorCell):
        return float(cell.length * cell.batch)
    if isinstance(cell, QualityCell):
        return float(cell.training.steps)
    return 1.0
