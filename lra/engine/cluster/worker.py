"""The worker's side: a pool of one slot, whose records go to the run as events of its topic.

The worker computes nothing itself: each cell has a process of its own, as on one machine. Records
are not the results of Dask tasks: those stay on a worker and are computed anew when it dies.
"""

from __future__ import annotations

import logging
import math
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from distributed import Status, get_worker

from lra.core.errors import LraError
from lra.core.protocol import Frozen
from lra.core.records import Record
from lra.engine.cluster.shared_folder import SharedFolder, log_to
from lra.engine.jobs import Job, Progress
from lra.engine.order.budget import Budget
from lra.engine.process.launch import ForkServer
from lra.engine.process.pool import Pool
from lra.engine.process.runner import Watcher
from lra.engine.process.supervisor import Supervisor
from lra.store import Store

_ENDS = (Status.closing_gracefully, Status.closing, Status.closed, Status.failed)
_OF_NANNY = "MALLOC_TRIM_THRESHOLD_"
"""Variable by which Dask's nanny has freed memory returned at once; it would slow timed calls."""

logger = logging.getLogger("lra.cluster")


class Order(Frozen, frozen=True, kw_only=True):
    """A job for one worker, with the facts about the run that it needs."""

    job: Job
    run: str
    """Name of the run, and of the topic of its events."""
    folder: SharedFolder
    environment: dict[str, str] = {}
    """Environment variables of the cell: the GPU that it computes on, whether hubs are asked."""
    timeout: float | None = None
    """Time limit of the cell in seconds."""
    grace: float
    """Seconds for a cell to save itself once its task is cancelled."""


class Waiting(Frozen, frozen=True, tag="waiting"):
    """A timing that waits for another run's on its machine."""

    holder: str


class Ended(Frozen, frozen=True, tag="ended"):
    """The end of a cell, or of the attempt to start it."""

    record: Record | None = None
    """Record of the cell; None where it was stopped before it had one, or `unfit`."""
    unfit: str = ""
    """Reason why the worker cannot run cells, to follow its name; empty where it can."""


class TaskEvent(Frozen, frozen=True):
    """News of one task."""

    key: str
    content: Progress | Waiting | Ended


class Task(Watcher):
    """A Dask task that sends news of its cell."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self._worker = get_worker()
        self._key = str(self._worker.get_current_task())

    @property
    def is_cancelled(self) -> bool:
        """Whether the run has cancelled the task, or is gone, or the worker itself has to end."""
        task = self._worker.state.tasks.get(self._key)
        return self._worker.status in _ENDS or task is None or task.state == "cancelled"

    def send(self, content: Progress | Waiting | Ended) -> None:
        """Send an event to the run."""
        event = msgspec.msgpack.encode(TaskEvent(self._key, content))
        self._worker.log_event(self.order.run, event)

    def started(self, job: Job) -> None:
        """Log the start."""
        logger.info("start %s", job.label)

    def progress(self, job: Job, progress: Progress) -> None:
        """Send the progress."""
        self.send(progress)

    def waiting(self, job: Job, whom: str) -> None:
        """Send that the job waits."""
        self.send(Waiting(whom))


class TaskBudget(Budget):
    """Time budget of a cell: nothing is left once its task is cancelled."""

    def __init__(self, task: Task) -> None:
        self._task, self.grace = task, task.order.grace

    @property
    def left(self) -> float:
        """Seconds left: all or none."""
        return 0.0 if self._task.is_cancelled else math.inf


class WorkerPool(Pool):
    """A pool that runs the cells of one run, one at a time; the run stores their records."""

    def __init__(self, order: Order) -> None:
        # Starts the fork server before anything imports torch: the worker itself never does.
        with _environment(order.environment):
            super().__init__(Store(Path(order.folder.path)), ForkServer(), slots=1, prune=False)

    def run_one(self, task: Task) -> Record | None:
        """Return the record of a cell; None where it was stopped before it had one."""
        self.watcher, self.budget = task, TaskBudget(task)
        self.timeout = task.order.timeout
        return next(iter(list(self.run([task.order.job]))), None)

    def _keep(self, job: Job, record: Record) -> Record:
        logger.info("%s %s  [%.1f s]", record.status, job.label, record.seconds)
        if record.failure is not None:
            logger.info("%s\n%s", record.failure.message, record.failure.tail)
        return record

    def _is_told_to_stop(self, running: Supervisor) -> bool:
        # A signal to a whole job of the cluster may reach the cell first.
        is_over = self.budget is not None and not self.budget.left
        return super()._is_told_to_stop(running) or is_over


_LOCK = threading.Lock()
"""One cell at a time: a worker with several threads may serve several runs."""
_POOLS: dict[str, WorkerPool] = {}
"""Pool of the last run, by the run's name. Each run has its own, which imports the sources as they
are then."""


def run_cell(order: Order) -> None:
    """Run the cell of an order, and send how it ended; the function of a Dask task."""
    logger.setLevel(logging.INFO)
    with _LOCK, log_to(order.folder.log(str(get_worker().name))):
        task = Task(order)
        task.send(_run(task))


def release(run: str) -> None:
    """End the fork server of a run, where no cell runs."""
    if run in _POOLS and _LOCK.acquire(blocking=False):
        _close_pools()
        _LOCK.release()


def _run(task: Task) -> Ended:
    folder, run = task.order.folder, task.order.run
    if problem := folder.problem():
        return Ended(unfit=problem)
    try:
        if run not in _POOLS:
            _close_pools()
            _POOLS[run] = WorkerPool(task.order)
        record = _POOLS[run].run_one(task)
    except LraError as error:
        _close_pools()
        return Ended(unfit=f"cannot run cells: {error}")
    # A failure of the folder says nothing of the cell.
    if record and record.failure and (problem := folder.problem()):
        return Ended(unfit=problem)
    return Ended(record)


def _close_pools() -> None:
    for pool in _POOLS.values():
        pool.server.close()
    _POOLS.clear()


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Set these variables, and unset the nanny's, while the context lasts: the next run may want
    others."""
    before = {name: os.environ.get(name) for name in (*variables, _OF_NANNY)}
    os.environ.update(variables)
    os.environ.pop(_OF_NANNY, None)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
