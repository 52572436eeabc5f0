"""Estimates of how long cells take, by earlier records of their like. Never imports torch."""

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
"""Exponent by which a longer input is taken to cost more, that of attention; a shorter one is taken
to cost as much, since most of a short cell is what it costs at any length."""

_COSTING = ("batch", "micro_batches", "precision", "recompute", "execution", "bucketed")
"""Fields of a training that decide the cost of a step."""


class Estimate:
    """Looks cells up among records."""

    def __init__(self, records: Iterable[Record]) -> None:
        oldest: dict[object, dict[float, Record]] = defaultdict(dict)
        self._profiles: dict[object, list[Record]] = defaultdict(list)
        self._trained: dict[bytes, Record] = {}
        """The oldest of the trainings that are alike throughout."""
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
        """By kind the oldest record of each size, the smallest first."""

    def seconds(self, cell: Cell) -> float | None:
        """Return about how long a cell takes, by the record nearest to it; of a training by the
        profile of its step where that is nearer. None where no record is like it."""
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
        """Return whether a training's time is known by the profile of its step alone."""
        return self._own_training(cell) is None and self._by_profile(cell) is not None

    def _own_training(self, cell: Cell) -> Record | None:
        """The oldest training on the cell's class of machine with its settings and steps."""
        if not isinstance(cell, QualityCell):
            return None
        return self._trained.get(_shared_settings(cell))

    def _by_profile(self, cell: Cell) -> float | None:
        """Steps times what one takes, and the evaluations, by the newest of the profiles that are
        most like the cell; beside trainings of its kind only by one that is like it throughout."""
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
    """Key of trainings that are alike in all that decides how long they take."""
    alike = (_training(cell), _size(cell), _time_determinants(cell))
    return msgspec.json.encode(alike, order="sorted")


def _similarity(one: Cell, other: QualityCell) -> tuple[bool, ...]:
    """In which of what decides a step's time two trainings are alike, what matters most first."""
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
    """How long a cell took in all. A continued training's record has the seconds of the last part,
    and its figures those of the whole."""
    training = record.metrics.get("training_seconds")
    whole = training.value if training is not None else None
    return record.seconds if whole is None else max(record.seconds, whole)


def _first(one: tuple[float, Record]) -> float:
    return one[0]


def _size_ratio(one: float, other: float) -> float:
    """By what factor two sizes differ."""
    return max(one, other) / min(one, other)


def _kind(cell: Cell) -> object:
    """Key of cells that cost alike but for their size."""
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
    """Key of trainings that cost alike but for their steps."""
    return cell.mechanism.name, cell.data.task, cell.scale, cell.device


def _size(cell: Cell) -> float:
    """Size of a cell, in which its time grows: positions measured, or steps trained."""
    if isinstance(cell, EfficiencyCell | ErrorCell):
        return float(cell.length * cell.batch)
    if isinstance(cell, QualityCell):
        return float(cell.training.steps)
    return 1.0
