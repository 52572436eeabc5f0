"""Stores and suites of any size, for what the suite itself costs as they grow.

Cells become more in all three ways at once, each by about the cube root: more mechanisms, more
seeds and replicates, more lengths. The figures of a cell are a committed record's of its kind,
each moved by up to 3 % so that spreads and intervals are real ones.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain, count, islice
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from lra.core.cells import (
    BaselineCell,
    CeilingCell,
    EfficiencyCell,
    ErrorCell,
    Mode,
    QualityCell,
    ShowCell,
    VerifyCell,
)
from lra.core.records import Failure, Metric, Record
from lra.core.scales import EfficiencyBlock, QualityBlock, Suite
from lra.store import Store

ROOT = Path(__file__).resolve().parents[2]
TASKS = ("listops", "text", "retrieval", "image", "pathfinder")
MODES: tuple[Mode, ...] = ("forward", "train", "decode")
_FIRST = ("sdpa", "identity", "full", "performer")
"""Mechanisms that even the smallest store has: the anchors, one that runs out of memory, and one
whose error has budgets."""
_QUADRATIC = "full"
_BEGAN = datetime(2026, 11, 1, tzinfo=UTC)
_MOVED = 0.03


class Axes(NamedTuple):
    """How many seeds and replicates a store has, and at how many lengths it is timed."""

    repeats: int
    lengths: tuple[int, ...]


def axes(number: int) -> Axes:
    """Return those of a store of so many cells; mechanisms make up the rest."""
    share = (number / 1000) ** (1 / 3)
    return Axes(max(1, round(3 * share)), lengths(max(3, round(6 * share))))


def lengths(number: int) -> tuple[int, ...]:
    """Return so many lengths: 256, 384, 512, 768, 1024 and on."""
    return tuple(128 * (2 + place % 2) * 2 ** (place // 2) for place in range(number))


def records(number: int) -> list[Record]:
    """Return so many records, the same each time."""
    return [*islice(_records(axes(number), count(1)), number)]


def records_of(copies: int, asked: Axes) -> list[Record]:
    """Return all records of so many copies of the first mechanisms."""
    return [*_records(asked, range(1, copies + 1), _FIRST)]


def suite(number: int) -> Suite:
    """Return a suite that comes to about so many cells with all of our mechanisms."""
    share = (number / 1000) ** 0.5
    return Suite(
        name="grown",
        title="grown",
        quality=(QualityBlock(scale="mini", tasks=TASKS, seeds=max(1, round(2.1 * share))),),
        efficiency=(
            EfficiencyBlock(
                scale="mini",
                lengths=lengths(max(1, round(6 * share))),
                modes=MODES,
                heads=(4,),
                head_widths=(64,),
                replicates=max(1, round(2.1 * share)),
                ceilings=True,
            ),
        ),
    )


class _Committed:
    """The committed records that others are made from."""

    def __init__(self) -> None:
        self.once: list[Record] = []
        """Records of no mechanism."""
        self.checks: dict[str, Record] = {}
        self.pictures: dict[str, Record] = {}
        self.trainings: dict[str, dict[str, Record]] = {}
        """By mechanism and task."""
        self.timings: dict[str, dict[tuple[str, int], Record]] = {}
        """By mechanism, mode and length: those of a layer in the sizes of a sweep."""
        self.errors: dict[str, dict[str, Record]] = {}
        """By mechanism and configuration: of the longest input, and scale 1."""
        for record in Store(ROOT / "results/reference/amd-epyc-2c").records():
            self._sort(record)

    @property
    def names(self) -> list[str]:
        """Mechanisms that were trained and timed, those that every store has first."""
        both = self.trainings.keys() & self.timings.keys()
        return [*_FIRST, *sorted(both - {*_FIRST})]

    def _sort(self, record: Record) -> None:
        cell = record.cell
        if isinstance(cell, CeilingCell):
            self.once.append(record)
        elif isinstance(cell, VerifyCell):
            self.checks[cell.mechanism.name] = record
        elif isinstance(cell, ShowCell):
            self.pictures[cell.mechanism.name] = record
        elif cell.scale != "mini":
            return
        elif isinstance(cell, BaselineCell):
            if cell.data.task in TASKS:
                self.once.append(record)
        elif isinstance(cell, QualityCell):
            if cell.data.task in TASKS and cell.data.order == "given":
                self.trainings.setdefault(cell.mechanism.name, {})[cell.data.task] = record
        elif isinstance(cell, EfficiencyCell):
            if (cell.level, cell.batch, cell.heads) == ("layer", 1, 4):
                own = self.timings.setdefault(cell.mechanism.name, {})
                own[cell.mode, cell.length] = record
        elif isinstance(cell, ErrorCell) and (cell.length, cell.input_scale) == (1024, 1.0):
            own_errors = self.errors.setdefault(cell.mechanism.name, {})
            own_errors[str(cell.mechanism.config)] = record


def _records(
    asked: Axes, copies: Iterable[int], names: Sequence[str] | None = None
) -> Iterator[Record]:
    """Yield records mechanism by mechanism, then those of further copies of them all."""
    committed, draw = _Committed(), random.Random(0)
    named = (
        _named(record, name, copy)
        for copy in copies
        for name in names or committed.names
        for record in _of_mechanism(committed, name, asked)
    )
    for place, record in enumerate(chain(committed.once, named)):
        yield _moved(record, place, draw)


def _named(record: Record, name: str, copy: int) -> Record:
    """The record of a mechanism or of a copy of it: `linear`, `linear_2`."""
    cell = record.cell
    assert not isinstance(cell, BaselineCell | CeilingCell)
    own = replace(cell.mechanism, name=name if copy == 1 else f"{name}_{copy}")
    return replace(record, cell=replace(cell, mechanism=own))


def _of_mechanism(committed: _Committed, name: str, asked: Axes) -> Iterator[Record]:
    for repeat in range(asked.repeats):
        trained = [*committed.trainings[name].values(), *committed.errors.get(name, {}).values()]
        for record in trained:
            assert isinstance(record.cell, QualityCell | ErrorCell)
            yield replace(record, cell=replace(record.cell, seed=repeat))
        for mode in MODES:
            for length in asked.lengths:
                yield _timing(committed.timings[name], mode, length, repeat, asked)
    for known in (committed.checks, committed.pictures):
        if name in known:
            yield known[name]


def _timing(
    known: dict[tuple[str, int], Record], mode: str, length: int, replicate: int, asked: Axes
) -> Record:
    """The record of the nearest shorter input; exact attention without a fused kernel runs out of
    memory at the last length but one."""
    nearest = max(n for m, n in known if m == mode and n <= length)
    record = known[mode, nearest]
    cell = record.cell
    assert isinstance(cell, EfficiencyCell)
    record = replace(record, cell=replace(cell, length=length, replicate=replicate))
    if cell.mechanism.name == _QUADRATIC and length == asked.lengths[-2]:
        gone = Failure(type="MemoryError", message="asked for 4.3 GB, 2 GB allowed", phase="time")
        return replace(record, status="oom", metrics={}, failure=gone)
    if cell.mechanism.name == _QUADRATIC and length == asked.lengths[-1]:
        left = Failure(type="Pruned", message=f"not tried: oom already at {asked.lengths[-2]}")
        return replace(record, status="skipped", metrics={}, failure=left)
    times = length / nearest
    metrics = {
        name: _times(metric, times) if name in ("latency", "prefill") else metric
        for name, metric in record.metrics.items()
    }
    return replace(record, metrics=metrics)


def _moved(record: Record, place: int, draw: random.Random) -> Record:
    """The record with its own figures, hour and hash."""
    times = 1 + draw.uniform(-_MOVED, 0)
    return replace(
        record,
        id=record.cell.id,
        started_at=(_BEGAN + timedelta(seconds=20 * place)).isoformat(timespec="seconds"),
        metrics={name: _times(metric, times) for name, metric in record.metrics.items()},
    )


def _times(metric: Metric, times: float) -> Metric:
    """A figure so many times as large; counts and what was not measured stay."""
    if metric.value is None or metric.unit == "count":
        return metric
    q1, q3, least = (n and times * n for n in (metric.q1, metric.q3, metric.minimum))
    samples = tuple(times * sample for sample in metric.samples)
    return replace(metric, value=times * metric.value, samples=samples, q1=q1, q3=q3, minimum=least)
