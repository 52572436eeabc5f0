"""The local pool: runs jobs side by side, each in a fresh process, and stores what comes of them.

Every ending becomes a record on the disk the moment it is known. Whatever stops the run, only the
cells that were running are lost, and training cells among them go on from their checkpoints.
"""

from __future__ import annotations

import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from multiprocessing.connection import wait

import msgspec

from lra.core.errors import LraError
from lra.core.records import Record
from lra.engine import host
from lra.engine.budget import GRACE_MOST, Budget
from lra.engine.endings import (
    ByLength,
    Ending,
    at_their_limit,
    judge,
    not_installed,
    pruned,
    repeats,
)
from lra.engine.jobs import Job, Message, Outcome, Progress, Stopped
from lra.engine.provenance import provenance
from lra.engine.server import ForkServer, Worker
from lra.engine.signals import StopSignals
from lra.engine.timing_lock import TimingLock
from lra.store import Store

TICK = 0.25
"""Seconds between looks at clocks and signals while nothing else happens."""


class RunStopped(LraError):  # noqa: N818  an ending, not a fault
    """Ctrl-C or SIGTERM ended the run; all finished cells are stored."""

    exit_code = 130


class Watcher:
    """Hears what happens; override what you want to show."""

    def started(self, job: Job) -> None:
        """A worker has been asked for."""

    def progress(self, job: Job, progress: Progress) -> None:
        """A worker tells where it stands."""

    def waiting(self, job: Job) -> None:
        """A timing cell waits for another run's timing cell on this machine; told once."""

    def finished(self, job: Job, record: Record) -> None:
        """A record has been stored."""

    def left(self, job: Job) -> None:
        """A running cell was stopped without a record; a rerun does it."""


@dataclass
class _Running:
    job: Job
    worker: Worker
    started_at: str
    outcome: Outcome | None = None
    phase: str = "start"
    timed_out: bool = False
    asked_to_stop: bool = False
    stopped: bool = False
    memory_kills: int = field(default_factory=host.memory_kills)


class Pool:
    """Runs jobs on worker slots; the caller holds the store open for writing.

    `timeout` is for each cell, in seconds. Jobs start in the order given; what `admits` refuses
    when its turn comes is left, and a timing cell waits until nothing of ours runs beside it. With
    `prune` a cell is skipped where its shorter twin ran out of memory or time, in this run or, by
    the store, in an earlier one that gave it as much time.
    """

    def __init__(
        self,
        store: Store,
        server: ForkServer,
        *,
        slots: int,
        timeout: float | None = None,
        budget: Budget | None = None,
        admits: Callable[[Job], bool] = lambda job: True,
        watcher: Watcher | None = None,
        prune: bool = True,
    ) -> None:
        self.store, self.server, self.slots = store, server, slots
        self.timeout, self.budget, self.prune = timeout, budget, prune
        self._admits = admits
        self.watcher = watcher or Watcher()
        self.left: list[Job] = []
        """Jobs without a record when `run` ends: out of budget, or stopped."""
        self._running: list[_Running] = []
        self._lock = TimingLock()
        self._provenance = provenance(host.facts())
        self._failed: list[Record] = []
        self._failed_before: list[Record] = []
        self._signals = StopSignals()

    def run(self, jobs: Iterable[Job]) -> Iterator[Record]:
        """Run all jobs and yield each record once it is stored.

        Raises `RunStopped` on SIGINT or SIGTERM, after running cells had time to save themselves,
        and `LraError` where the store or the fork server fails.
        """
        waiting = deque(jobs)
        self._failed_before = self._at_their_limit(waiting) if self.prune else []
        with self._signals as signals:
            try:
                while waiting or self._running:
                    if signals.received:
                        break
                    if self.budget is not None and not self.budget.left:
                        break
                    yield from self._start(waiting)
                    yield from self._collect(self._wait())
            finally:
                # Also when the caller gives up, or fails, between two records.
                late = self._stop_all()
                self.left += waiting
            yield from late
            if signals.received:
                raise RunStopped(
                    f"stopped by {signals.received}; finished cells are stored, "
                    f"{len(self.left)} are left: run the same command again to continue"
                )

    def _at_their_limit(self, jobs: Iterable[Job]) -> list[Record]:
        """What ran out of memory in earlier runs, or of as much time as there is now."""
        if not any(isinstance(job.cell, ByLength) for job in jobs):
            return []
        return at_their_limit(self.store.records(), self.timeout)

    def _start(self, waiting: deque[Job]) -> Iterator[Record]:
        """Fill free slots in the order of the jobs; yields records of cells not worth starting."""
        while waiting and len(self._running) < self.slots:
            job = waiting[0]
            why = not_installed(job)
            if why is None and self.prune:
                why = pruned(job.cell, [*self._failed_before, *self._failed])
            if why is not None:
                waiting.popleft()
                yield self._save(job, why, started_at=_utc(), seconds=0.0)
                continue
            if not self._admits(job):
                self.left.append(waiting.popleft())
                continue
            if self._running and (job.alone or self._running[0].job.alone):
                return
            if job.alone and not self._lock.acquire():
                if self._lock.news:
                    self.watcher.waiting(job)
                return
            waiting.popleft()
            self._launch(job)

    def _launch(self, job: Job) -> None:
        # What is tried again says nothing of longer inputs until it has ended.
        self._failed_before = [r for r in self._failed_before if not repeats(job.cell, r.cell)]
        checkpoint = self.store.checkpoint(job.cell.id)
        job = msgspec.structs.replace(job, checkpoint=str(checkpoint))
        worker = self.server.start(msgspec.msgpack.encode(job))
        self._running.append(_Running(job, worker, _utc()))
        self.watcher.started(job)

    def _wait(self) -> list[_Running]:
        """Wait for news or a tick; return the workers that have ended."""
        if not self._running:
            time.sleep(TICK)
            return []
        by_source = {}
        for running in self._running:
            by_source[running.worker.fileno()] = running
            if not running.worker.connection.closed:
                by_source[running.worker.connection.fileno()] = running
        for source in wait(list(by_source), timeout=TICK):
            assert isinstance(source, int)
            running = by_source[source]
            if source == running.worker.fileno():
                running.worker.poll()
            else:
                self._receive(running)
        now = time.monotonic()
        for running in self._running:
            age = now - running.worker.forked_at
            if self.timeout is not None and running.worker.pid is not None and age > self.timeout:
                running.timed_out = True
                running.worker.kill()
        return [running for running in self._running if running.worker.ended]

    def _receive(self, running: _Running) -> None:
        connection = running.worker.connection
        try:
            message = msgspec.msgpack.decode(connection.recv_bytes(), type=Message)
        except (OSError, EOFError):
            # It has closed its end; how it ended comes over the status pipe.
            connection.close()
            return
        match message:
            case Progress():
                running.phase = message.phase
                self.watcher.progress(running.job, message)
            case Stopped():
                running.stopped = True
            case Outcome():
                running.outcome = message

    def _collect(self, ended: list[_Running]) -> list[Record]:
        """Store what came of workers that have ended."""
        return [record for running in ended if (record := self._finish(running)) is not None]

    def _finish(self, running: _Running) -> Record | None:
        worker, job = running.worker, running.job
        with suppress(OSError):
            while not worker.connection.closed and worker.connection.poll():
                self._receive(running)
        self._forget(running)
        if worker.pid is None:
            worker.close()
            self._leave(job)
            raise self.server.lost()
        ending = Ending(
            outcome=running.outcome,
            exit_code=worker.exit_code,
            phase=running.phase,
            timeout=self.timeout if running.timed_out else None,
            out_of_memory=host.memory_kills() > running.memory_kills,
            tail=worker.tail(),
        )
        seconds = worker.ended_at - worker.forked_at
        worker.close()
        if running.outcome is None and (running.stopped or self._is_told_to_stop(running)):
            self._leave(job)
            return None
        if running.outcome is None and worker.exit_code is None:
            # It fell with the process that starts workers, through no fault of its own.
            self._leave(job)
            raise self.server.lost()
        return self._save(job, judge(ending, job), started_at=running.started_at, seconds=seconds)

    def _forget(self, running: _Running) -> None:
        self._running.remove(running)
        if running.job.alone:
            self._lock.release()

    def _is_told_to_stop(self, running: _Running) -> bool:
        """Whether a worker ended because the run does, by its order or whoever ends all of us."""
        if running.worker.exit_code == -signal.SIGTERM and not self._signals.received:
            # A signal to a whole cgroup may reach the worker first.
            time.sleep(TICK)
        return running.asked_to_stop or bool(self._signals.received)

    def _save(self, job: Job, outcome: Outcome, *, started_at: str, seconds: float) -> Record:
        record = Record(
            id=job.cell.id,
            cell=job.cell,
            status=outcome.status,
            started_at=started_at,
            seconds=seconds,
            metrics=outcome.metrics,
            curve=outcome.curve,
            parameters=outcome.parameters,
            best_step=outcome.best_step,
            rows=outcome.rows,
            findings=outcome.findings,
            pattern=outcome.pattern,
            attended=outcome.attended,
            failure=outcome.failure,
            method=outcome.method,
            provenance=self._provenance,
        )
        self.store.save(record)
        if record.status in ("ok", "diverged", "unsupported"):
            self.store.checkpoint(record.id).unlink(missing_ok=True)
        else:
            self._failed.append(record)
        self.watcher.finished(job, record)
        return record

    def _leave(self, job: Job) -> None:
        self.left.append(job)
        self.watcher.left(job)

    def _stop_all(self) -> list[Record]:
        """Ask running cells to save themselves, give them time, end them; store late records."""
        late: list[Record] = []
        grace = GRACE_MOST if self.budget is None else self.budget.grace
        deadline = time.monotonic() + grace
        for running in self._running:
            running.asked_to_stop = True
        while self._running:
            impatient = self._signals.count > 1 or time.monotonic() > deadline
            for running in list(self._running):
                if not impatient:
                    running.worker.stop()
                elif running.worker.pid is not None:
                    running.worker.kill()
                else:
                    # Never forked: the fork server is still importing, and ends it when closed.
                    self._forget(running)
                    running.worker.close()
                    self._leave(running.job)
            late += self._collect(self._wait())
        return late


def side_by_side(jobs: Iterable[Job]) -> int:
    """Return how many cells of a plan may run at once: as many as the cores allow with the threads
    of the one that computes with most; one where they share a GPU, its memory and its time."""
    cells = [job.cell for job in jobs if not job.alone]
    if any(getattr(cell, "device", "cpu") == "cuda" for cell in cells):
        return 1
    return max(1, min((cell.machine.cores // cell.threads for cell in cells), default=1))


def _utc() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
