"""Cells of the probe, run as by a worker."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import msgspec
import torch

from lra.core.cells import Cell, EfficiencyCell
from lra.core.profile_metrics import OPERATOR
from lra.engine.jobs import Job, Progress, Report
from lra.engine.process.worker import run_cell
from lra.identity.calls import Trace
from lra.training import outcome as training

UNSTEADY = ("peak_resident_bytes", "operators_seconds", OPERATOR)
"""Prefixes of metrics that depend on the machine: its clock and its system's memory."""
TASKS = "lra.identity.ragged_tasks"


def cell_outcome(cell: Cell) -> Iterator[object]:
    """Yield the content of a cell's record."""
    with TemporaryDirectory() as folder, _without_compiling():
        yield _record_lines(_job(cell, folder))


def trained_attention(cell: Cell) -> Iterator[object]:
    """Yield the trained attention of a cell's record."""
    with TemporaryDirectory() as folder:
        yield msgspec.to_builtins(run_cell(_job(cell, folder)))["attended"]


def operator_trace(phase: str, cell: Cell) -> Iterator[object]:
    """Yield the content of a cell's record, and the operators of one phase, or of all where none is
    named."""
    with Trace(recording=not phase) as seen, TemporaryDirectory() as folder:

        def report(progress: Progress) -> None:
            seen.recording = phase in ("", progress.phase)

        yield _record_lines(_job(cell, folder), report)
    yield seen.operators


def resumed_training(cell: Cell) -> Iterator[object]:
    """Yield the content of the record of a training that is stopped in its middle and goes on."""
    looks = itertools.count()
    with TemporaryDirectory() as folder:
        job = msgspec.structs.replace(_job(cell, folder), checkpoint=str(Path(folder) / "c.pt"))
        with mock.patch("lra.engine.work.quality._Stop.__call__", lambda _: next(looks) == 8):
            yield _record_lines(job)
        yield _record_lines(job)


def _job(cell: Cell, folder: str) -> Job:
    task = cell.task if isinstance(cell, EfficiencyCell) else cell.data.task  # type: ignore[union-attr]
    return Job(cell=cell, task=f"{TASKS}:{task}" if task else "", cache=folder)


def _record_lines(job: Job, report: Report = lambda progress: None) -> object:
    try:
        found = msgspec.to_builtins(run_cell(job, report=report))
    except training.Interrupted as error:
        return ["interrupted", error.step]
    # Trained attention has a case of its own, and the rest of the method is words for people.
    del found["attended"]
    found["method"] = found["method"].get("warmup_calls")
    found["metrics"] = {
        name: one for name, one in found["metrics"].items() if not name.startswith(UNSTEADY)
    }
    return found


@contextmanager
def _without_compiling() -> Iterator[None]:
    """Run functions that would be compiled as they are, and print the settings of the
    compilation."""

    def carried_out(function: Any = None, **settings: Any) -> Any:
        print("compiled", sorted(settings.items()))
        return function

    with mock.patch.object(torch, "compile", carried_out):
        yield
