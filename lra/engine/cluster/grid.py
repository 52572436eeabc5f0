"""The grid: runs jobs on the workers of a cluster, and stores their records.

Dask may run a task twice; a record is written once, here, from the first outcome received.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Unpack

import msgspec
from distributed import Future
from msgspec.structs import replace

from lra.core.records import Failure, Record
from lra.engine.cluster.cluster import Cluster, ClusterLost, Worker
from lra.engine.cluster.worker import Ended, Order, TaskEvent, Waiting, run_cell
from lra.engine.jobs import Job, Outcome, Progress
from lra.engine.process.error_text import named_line
from lra.engine.process.runner import Runner, RunnerOptions
from lra.engine.process.supervisor import TICK, utc
from lra.store import Store

DEATHS = 2
"""Workers that may die under a cell before the cell counts as the reason."""
_LATE = 2.0
"""Seconds for the last events of a run to arrive."""


@dataclass(eq=False)
class _Task:
    """A job that was given to a worker."""

    job: Job
    worker: Worker
    future: Future
    saved: float
    """Time of its checkpoint's last write before the task; 0 where there was none."""
    started_at: str
    began: float
    phase: str = "start"


class Grid(Runner):
    """Runs jobs on the workers of a cluster; see `Runner`.

    A job whose worker dies runs again on another; after `DEATHS` deaths without a new checkpoint
    its record says so.
    """

    def __init__(self, store: Store, cluster: Cluster, **terms: Unpack[RunnerOptions]) -> None:
        first = next(iter(cluster.workers.values()))
        super().__init__(store, first.handshake.provenance, **terms)
        self._cluster = cluster
        self._tasks: dict[str, _Task] = {}
        self._deaths: Counter[str] = Counter()
        self._events: SimpleQueue[TaskEvent | str] = SimpleQueue()
        """Events of workers, and the keys of tasks that are done."""
        self._stopping = False
        self._alone_since = time.monotonic()
        cluster.client.subscribe_topic(cluster.run, self._put)

    def _put(self, event: tuple[float, bytes]) -> None:
        """Take an event of the topic, with its time; runs in a thread of the client's."""
        self._events.put(msgspec.msgpack.decode(event[1], type=TaskEvent))

    def _is_busy(self) -> bool:
        return bool(self._tasks)

    def _start(self) -> Iterator[Record]:
        """Give jobs to free workers; a job without a suitable worker lets those behind it go
        first."""
        closed: set[str] = set()
        for job in list(self._waiting):
            if not self._cluster.free(closed):
                return
            if (yield from self._settle(job)):
                continue
            worker = self._cluster.place(job, closed)
            if worker is not None:
                self._waiting.remove(job)
                self._launch(job, worker)

    def _launch(self, job: Job, worker: Worker) -> None:
        order = Order(
            # Absolute paths, since workers have another current folder. No series, since each cell
            # there has a process of its own.
            job=replace(job, cache=str(Path(job.cache).resolve()), series=""),
            run=self._cluster.run,
            folder=self._cluster.folder,
            environment=worker.environment,
            timeout=self.timeout,
            grace=self._grace,
        )
        key = f"lra-{job.cell.id}-{uuid.uuid4().hex}"
        future = self._cluster.client.submit(
            run_cell, order, key=key, workers=[worker.address], pure=False
        )
        # Queued after its events: a worker's messages keep their order.
        future.add_done_callback(lambda _: self._events.put(key))
        worker.job = job
        saved = self._saved_at(job)
        self._tasks[key] = _Task(job, worker, future, saved, utc(), time.monotonic())
        self._launched(job)

    def _collect(self) -> Iterator[Record]:
        with suppress(Empty):
            event = self._events.get(timeout=TICK)
            while True:
                yield from self._receive(event)
                event = self._events.get_nowait()
        yield from self._check_workers()

    def _receive(self, event: TaskEvent | str) -> Iterator[Record]:
        key = event if isinstance(event, str) else event.key
        task = self._tasks.get(key)
        if task is None:
            return
        match event:
            case str():
                if not self._stopping:
                    # Now, for a future that is released has no error.
                    error = task.future.exception() if task.future.status == "error" else None
                    yield from self._end_without_news(self._forget(key), error)
            case TaskEvent(content=Progress() as progress):
                task.phase = progress.phase
                self.watcher.progress(task.job, progress)
            case TaskEvent(content=Waiting(holder=holder)):
                self.watcher.waiting(task.job, holder)
            case TaskEvent(content=Ended(record=None, unfit=why)):
                self._forget(key)
                if not self._stopping:
                    # The run did not cancel it: the worker is no longer to be used.
                    self._refuse(task.worker, why or "is being ended")
                self._run_again(task.job)
            case TaskEvent(content=Ended(record=Record() as record)):
                self._forget(key)
                yield self._keep(task.job, record)

    def _check_workers(self) -> Iterator[Record]:
        """Update the workers that have come and gone."""
        cluster = self._cluster
        cluster.update()
        for key, task in list(self._tasks.items()):
            if task.worker.address not in cluster.workers:
                yield from self._worker_died(self._forget(key))
        for line in cluster.refusals:
            self.watcher.noticed(line)
        cluster.refusals.clear()
        if cluster.workers:
            self._alone_since = time.monotonic()
        elif time.monotonic() - self._alone_since > cluster.patience and not self._stopping:
            raise ClusterLost(
                f"no worker of the cluster {cluster.name} is left; finished cells are stored: "
                "start workers and run the same command again"
            )

    def _forget(self, key: str) -> _Task:
        """Forget a task and its future: Dask would run held ones again when their worker is
        lost."""
        task = self._tasks.pop(key)
        task.worker.job = None
        task.future.release()
        return task

    def _end_without_news(self, task: _Task, error: BaseException | None) -> Iterator[Record]:
        """Handle a task that is done without a final event."""
        if error is None or type(error).__name__ == "KilledWorker":
            self._cluster.workers.pop(task.worker.address, None)
            yield from self._worker_died(task)
        else:
            self._refuse(task.worker, f"cannot run cells: {named_line(error)}; see its log")
            self._run_again(task.job)

    def _worker_died(self, task: _Task) -> Iterator[Record]:
        """Count a death against the worker's job, from zero where its checkpoint moved on."""
        job, name = task.job, task.worker.name
        self._deaths[job.cell.id] *= self._saved_at(job) <= task.saved
        self._deaths[job.cell.id] += 1
        if self._stopping or self._deaths[job.cell.id] < DEATHS:
            self.watcher.noticed(f"worker {name} died; {job.label} runs again")
            self._run_again(job)
            return
        message = f"{DEATHS} workers died while they ran it; see logs/ in the store"
        failure = Failure(type="KilledWorker", message=message, phase=task.phase)
        yield self._save(
            job,
            Outcome(status="crash", failure=failure),
            started_at=task.started_at,
            seconds=time.monotonic() - task.began,
        )

    def _run_again(self, job: Job) -> None:
        """Queue a job without a record again, where there is still time for it."""
        if self._stopping:
            self._leave(job)
        else:
            self._waiting.insert(0, job)

    def _refuse(self, worker: Worker, why: str) -> None:
        self._cluster.refuse(worker.address, worker.name, why)

    def _saved_at(self, job: Job) -> float:
        try:
            return self.store.checkpoint(job.cell.id).stat().st_mtime
        except OSError:
            return 0.0

    def _stop_all(self, grace: float) -> list[Record]:
        self._stopping = True
        late: list[Record] = []
        # The loss of a cluster is reported already, or will be with the cells that are left.
        with suppress(OSError, ClusterLost):
            # Workers see the cancellation, let their cells save themselves, and report.
            self._cluster.client.cancel([task.future for task in self._tasks.values()])
            deadline = time.monotonic() + grace + _LATE
            while self._tasks and self._signals.count < 2 and time.monotonic() < deadline:
                late += self._collect()
        for key in list(self._tasks):
            self._leave(self._forget(key).job)
        return late
