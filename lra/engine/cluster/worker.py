"""The worker's side: a pool of one slot, whose records go to the run as events of its topic.

The worker computes nothing itself: each cell has a process of its own, as on one machine. Records
are no results of Dask tasks, which stay on a worker and are computed anew when it dies.
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
"""Variable by which Dask's nanny has freed memory given back; it would slow what is timed."""

logger = logging.getLogger("lra.cluster")


class Order(Frozen, frozen=True, kw_only=True):
    """A job for one worker, with what it has to know of the run."""

    job: Job
    run: str
    """Name of the run, and of the topic of its events."""
    folder: SharedFolder
    environment: dict[str, str] = {}
    """Variables of the cell: the one GPU that it computes on, whether hubs are asked."""
    timeout: float | None = None
    """Seconds for the cell."""
    grace: float
    """Seconds that a cell has to save itself once its task is cancelled."""


class Waiting(Frozen, frozen=True, tag="waiting"):
    """A timing waits for another run's on its machine."""

    holder: str


class Ended(Frozen, frozen=True, tag="ended"):
    """The cell has ended, or never started."""

    record: Record | None = None
    """None where it was stopped before it had one, or `unfit`."""
    unfit: str = ""
    """Why the worker cannot run cells, after its name; empty where it can."""


class TaskEvent(Frozen, frozen=True):
    """News of one task."""

    key: str
    content: Progress | Waiting | Ended


class Task(Watcher):
    """A task of Dask's, which sends news of its cell."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self._worker = get_worker()
        self._key = str(self._worker.get_current_task())

    @property
    def is_cancelled(self) -> bool:
        """Whether the run has cancelled it, or is gone, or the worker itself has to end."""
        task = self._worker.state.tasks.get(self._key)
        return self._worker.status in _ENDS or task is None or task.state == "cancelled"

    def send(self, content: Progress | Waiting | Ended) -> None:
        """Send an event to the run."""
        event = msgspec.msgpack.encode(TaskEvent(self._key, content))
        self._worker.log_event(self.order.run, event)

    def started(self, job: Job) -> None:
        """Note it in the log."""
        logger.info("start %s", job.label)

    def progress(self, job: Job, progress: Progress) -> None:
        """Send it."""
        self.send(progress)

    def waiting(self, job: Job, whom: str) -> None:
        """Send it."""
        self.send(Waiting(whom))


class TaskBudget(Budget):
    """The time of a cell: none is left once its task is cancelled."""

    def __init__(self, task: Task) -> None:
        self._task, self.grace = task, task.order.grace

    @property
    def left(self) -> float:
        """All or none."""
        return 0.0 if self._task.is_cancelled else math.inf


class WorkerPool(Pool):
    """Runs cells of one run, one at a time; their records are for the run to store."""

    def __init__(self, order: Order) -> None:
        # The fork server before anything imports torch: the worker itself never does.
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
"""That of the last run, by name. Each run has its own, which imports the sources as they are."""


def run_cell(order: Order) -> None:
    """Run the cell of an order, and send how it ended: a task of Dask's."""
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
    # A failure with the folder says nothing of the cell.
    if record and record.failure and (problem := folder.problem()):
        return Ended(unfit=problem)
    return Ended(record)


def _close_pools() -> None:
    for pool in _POOLS.values():
        pool.server.close()
    _POOLS.clear()


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Have these variables, and not the nanny's, while the context lasts: the next run may want
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
