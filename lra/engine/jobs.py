"""Jobs and messages between a run and its workers: one job in, one outcome out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from lra.core.cells import (
    CeilingCell,
    Cell,
    EfficiencyCell,
    ErrorCell,
    ProfileCell,
    QualityCell,
    ShowCell,
    VerifyCell,
)
from lra.core.findings import Finding
from lra.core.pattern import Pattern
from lra.core.protocol import Frozen, Rows
from lra.core.records import CurvePoint, Failure, Metric, Status
from lra.core.trained_attention import TrainedAttention

LOST = 3
"""Exit code of a process of a training that lost another one: the death of that one is the
reason."""


class Job(Frozen, frozen=True, kw_only=True):
    """A cell, with the places of the things that it only names. Never part of a record."""

    cell: Cell
    mechanism: str = ""
    """Reference of the mechanism for `lra.core.catalogue.find`; empty where the cell's name is
    one."""
    unavailable: str = ""
    """Reason why the mechanism cannot be imported, for its row."""
    task: str = ""
    """Reference of the task; empty where the cell's name is one."""
    source: str | None = None
    """Path of real data or of an input to draw, or `hub`; None for the generator."""
    cache: str
    """Folder of prepared data."""
    checkpoint: str = ""
    """File that a training cell saves to and continues from; the pool fills it in."""
    series: str = ""
    """Name of jobs that may share a process, one after another; empty for a process of its own."""
    devices: int = 1
    """GPUs, or processes on a CPU, that share a training."""
    patience: float = 600.0
    """Seconds that one of these processes waits for the others before it takes one for dead."""
    apart: tuple[str, ...] = ()
    """Words that set its cell apart from others of the plan."""

    @property
    def label(self) -> str:
        """A few words for a progress line."""
        return " ".join((self._name, *self.apart))

    @property
    def _name(self) -> str:
        cell = self.cell
        if isinstance(cell, EfficiencyCell):
            return " ".join((cell.mechanism.name, cell.mode, str(cell.length), *_unusual(cell)))
        if isinstance(cell, QualityCell):
            where = f" on {self.devices} devices" if self.devices > 1 else ""
            return f"{cell.mechanism.name} {cell.data.task}{where}"
        if isinstance(cell, ProfileCell):
            return f"profile {cell.mechanism.name} {cell.data.task}"
        if isinstance(cell, ErrorCell):
            return (
                f"error {cell.mechanism.name} {cell.length} scale {cell.input_scale:g} "
                f"seed {cell.seed}"
            )
        if isinstance(cell, VerifyCell):
            return f"verify {cell.mechanism.name}"
        if isinstance(cell, ShowCell):
            return f"show {cell.mechanism.name}"
        if isinstance(cell, CeilingCell):
            return f"ceilings {cell.dtype}"
        return f"baselines {cell.data.task}"

    @property
    def alone(self) -> bool:
        """Whether no other cell of ours may run beside it."""
        return isinstance(self.cell, EfficiencyCell | ProfileCell | CeilingCell)


def _unusual(cell: EfficiencyCell) -> Iterator[str]:
    """Words for the fields of a cell that differ from their defaults."""
    words = {
        "level": cell.level,
        "direction": cell.direction,
        "dtype": cell.dtype,
        "execution": cell.execution,
        "batch": f"batch {cell.batch}",
        "replicate": f"replicate {cell.replicate}",
    }
    for field in msgspec.structs.fields(cell):
        if field.name in words and getattr(cell, field.name) != field.default:
            yield words[field.name]


class Progress(Frozen, frozen=True, tag="progress", kw_only=True):
    """Progress of a worker."""

    phase: str
    """`data`, `build`, `train`, `memory`, `time`, ..."""
    step: int = 0
    steps: int = 0
    """0 where the phase has no steps."""
    loss: float | None = None
    """Training loss in nat."""


class Stopped(Frozen, frozen=True, tag="stopped"):
    """The worker was told to stop, and saved its checkpoint."""


class Outcome(Frozen, frozen=True, tag="outcome", kw_only=True):
    """Outcome of a cell by its worker; the pool adds time, provenance and the end of the error
    output."""

    status: Status
    metrics: dict[str, Metric] = msgspec.field(default_factory=dict)
    curve: tuple[CurvePoint, ...] = ()
    parameters: int | None = None
    best_step: int | None = None
    rows: Rows | None = None
    findings: tuple[Finding, ...] = ()
    pattern: Pattern | None = None
    attended: TrainedAttention | None = None
    failure: Failure | None = None
    method: dict[str, Any] = msgspec.field(default_factory=dict)


def stays_after(outcome: Outcome, job: Job) -> bool:
    """Return whether a worker waits for another job: in a series it does, until one fails."""
    return bool(job.series) and outcome.status in ("ok", "unsupported")


Report = Callable[[Progress], None]

Message = Progress | Stopped | Outcome
"""Messages of a worker, in MessagePack, which unlike JSON knows infinities."""
