"""The worker: one cell in a process of its own, or the cells of a series, from job to outcome.

Imported by name only: it imports torch, and its starter must not.
"""

from __future__ import annotations

import gc
import importlib
import signal
import time
from contextlib import suppress
from itertools import count
from multiprocessing.connection import Connection
from types import ModuleType

import msgspec
import torch

from lra.core.cells import Cell
from lra.core.errors import LraError
from lra.engine.jobs import Job, Message, Outcome, Progress, Report, Stopped, stays_after
from lra.engine.process.failures import outcome_of_exception
from lra.training.outcome import Interrupted

REPORT_EVERY = 0.2
"""Seconds between messages of one phase that bring no new loss."""


def main(connection: Connection) -> None:
    """Receive a job, run its cell, send messages, and last its outcome, or that it stopped.

    In a series go on with the next job, until one fails or no more comes.
    """
    # Ctrl-C is for the run; it tells its workers what to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for before in count():
        try:
            job = msgspec.msgpack.decode(connection.recv_bytes(), type=Job)
        except EOFError:
            return
        last = _report_end(job, connection)
        if isinstance(last, Outcome) and job.series:
            last = msgspec.structs.replace(last, method=last.method | {"cells_before": before})
        connection.send_bytes(msgspec.msgpack.encode(last))
        if not isinstance(last, Outcome) or not stays_after(last, job):
            return
        _free_memory()


def _report_end(job: Job, connection: Connection) -> Message:
    """Send the end of a job, whether it returns or raises."""
    phase = _Phase(connection)
    try:
        return run_cell(job, report=phase)
    except Interrupted:
        return Stopped()
    except BaseException as error:
        return outcome_of_exception(error, phase.name, job)


def _free_memory() -> None:
    """Give the next cell of a series as much memory as a new process has."""
    gc.collect()
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.empty_cache()


def run_cell(job: Job, *, report: Report = lambda progress: None) -> Outcome:
    """Run one cell in this process and return its outcome.

    Raises what the cell raises; `lra.training.outcome.Interrupted` after SIGTERM in training.
    """
    if job.unavailable:
        raise LraError(job.unavailable)
    torch.set_num_threads(job.cell.threads)
    outcome: Outcome = _work_module(type(job.cell)).run(job.cell, job, report)
    return outcome


def _work_module(kind: type[Cell]) -> ModuleType:
    """Module that runs cells of a kind, named by the kind's tag."""
    return importlib.import_module(f"lra.engine.work.{kind.__struct_config__.tag}")


# Imported before the fork, or every worker would pay for the import.
for _kind in Cell.__args__:
    _work_module(_kind)


class _Phase:
    """Sends progress, not too often, and remembers the phase of the worker."""

    def __init__(self, connection: Connection) -> None:
        self.name = "start"
        self._connection = connection
        self._sent_at = 0.0

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        news = progress.phase != self.name or progress.loss is not None
        if not news and now - self._sent_at < REPORT_EVERY:
            return
        self.name, self._sent_at = progress.phase, now
        # Nobody listens any more: the run is about to end this process.
        with suppress(OSError):
            self._connection.send_bytes(msgspec.msgpack.encode(progress))
