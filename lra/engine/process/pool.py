"""The local pool: runs jobs side by side, each in a fresh process, and stores their records."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from multiprocessing.connection import wait
from typing import Unpack

import msgspec

from lra.core.records import Record
from lra.engine.jobs import Job
from lra.engine.machine import host
from lra.engine.machine.provenance import provenance
from lra.engine.machine.timing_lock import TimingLock
from lra.engine.order.budget import GRACE_MOST
from lra.engine.process.exit_status import outcome_of
from lra.engine.process.launch import ForkServer, Worker
from lra.engine.process.runner import Runner, RunnerOptions
from lra.engine.process.supervisor import TICK, Supervisor, listen
from lra.store import Store

PATIENCE = 10.0
"""Seconds that a timing waits for another run's, with nothing running here, before later cells
start: its turn comes with the end of that run's cell, and goes by while these run."""


class Pool(Runner):
    """Runs jobs on worker slots of this machine; see `Runner`.

    Jobs start in the order given; a timing waits until nothing of ours runs beside it. While it
    waits for another run's timing, later cells that are no timings go on, and it keeps its place
    among the runs. A job of a series takes the worker of the one before, where that did not fail.
    """

    def __init__(
        self, store: Store, server: ForkServer, *, slots: int, **terms: Unpack[RunnerOptions]
    ) -> None:
        super().__init__(store, provenance(host.machine_facts()), **terms)
        self.server, self.slots = server, slots
        self._running: list[Supervisor] = []
        self._lock = TimingLock()
        self._spare: tuple[str, Worker] | None = None
        """Name of a series, and the worker that waits for its next job."""

    def _is_busy(self) -> bool:
        return bool(self._running)

    def _start(self) -> Iterator[Record]:
        """Fill free slots in the order of the jobs."""
        passed = False
        for job in list(self._waiting):
            if len(self._running) == self.slots or self._times:
                return
            if (passed and job.alone) or (yield from self._settle(job)):
                continue
            if job.alone and not self._may_time(job):
                passed = self._may_pass()
                if not passed:
                    return
                continue
            self._waiting.remove(job)
            self._launch(job)
        if not self._times and not any(job.alone for job in self._waiting):
            # The timing that waited is no longer worth it.
            self._lock.release()

    @property
    def _times(self) -> bool:
        return bool(self._running) and self._running[0].job.alone

    def _may_time(self, job: Job) -> bool:
        """Whether a timing may start: nothing runs here, and the lock is ours."""
        if self._running:
            return False
        if self._lock.acquire():
            return True
        self._dismiss()
        if self._lock.news:
            self.watcher.waiting(job, self._lock.news)
        return False

    def _may_pass(self) -> bool:
        """Whether other cells may start before a timing: beside running ones while another run
        times, since that costs no time; else only after a wait for the end of that run's cell."""
        return self._lock.is_contended if self._running else self._lock.waited > PATIENCE

    def _launch(self, job: Job) -> None:
        if not job.alone:
            # The turn would be lost on a run that cannot time now.
            self._lock.yield_turn()
        checkpoint = self.store.checkpoint(job.cell.id)
        job = msgspec.structs.replace(job, checkpoint=str(checkpoint))
        worker, written = self._worker_for(job)
        report = partial(self.watcher.progress, job)
        self._running.append(
            Supervisor(job, worker, timeout=self.timeout, on_progress=report, written=written)
        )
        self._launched(job)

    def _worker_for(self, job: Job) -> tuple[Worker, int]:
        """Worker for a job: the one that waits for its series, else a new one; and the number of
        bytes that it wrote before."""
        payload = msgspec.msgpack.encode(job)
        if self._spare is not None and self._spare[0] == job.series:
            _, worker = self._spare
            written = worker.written()
            # A worker that has died meanwhile takes no message.
            with suppress(OSError):
                worker.connection.send_bytes(payload)
                self._spare = None
                return worker, written
        self._dismiss()
        return self.server.start(payload), 0

    def _dismiss(self) -> None:
        """End the worker that waits for the next job of its series, and free its share of a GPU."""
        if self._spare is None:
            return
        (_, worker), self._spare = self._spare, None
        worker.connection.close()
        deadline = time.monotonic() + GRACE_MOST
        while not worker.ended:
            if wait([worker.fileno()], timeout=max(0.0, deadline - time.monotonic())):
                worker.poll()
            else:
                worker.kill()
        worker.close()

    def _collect(self) -> list[Record]:
        ended = listen(self._running)
        return [record for running in ended if (record := self._finish(running)) is not None]

    def _finish(self, running: Supervisor) -> Record | None:
        """Store the outcome of a worker that has ended."""
        worker, job = running.worker, running.job
        running.drain()
        self._forget(running)
        if worker.pid is None:
            worker.close()
            self._leave(job)
            raise self.server.lost()
        ending = running.ending()
        if running.is_idle and not worker.ended:
            self._spare = job.series, worker
        else:
            worker.close()
        if running.outcome is None and (running.stopped or self._is_told_to_stop(running)):
            self._leave(job)
            return None
        if running.outcome is None and worker.exit_code is None:
            # It died with the fork server, through no fault of its own.
            self._leave(job)
            raise self.server.lost()
        outcome = outcome_of(ending, job)
        return self._save(job, outcome, started_at=running.started_at, seconds=running.seconds)

    def _forget(self, running: Supervisor) -> None:
        self._running.remove(running)
        if running.job.alone:
            self._lock.release()

    def _is_told_to_stop(self, running: Supervisor) -> bool:
        """Whether a worker ended because the run does, by its order or by a signal to all
        processes."""
        if running.worker.exit_code == -signal.SIGTERM and not self._signals.received:
            # A signal to a whole cgroup may reach the worker first.
            time.sleep(TICK)
        return running.asked_to_stop or bool(self._signals.received)

    def _stop_all(self, grace: float) -> list[Record]:
        self._dismiss()
        late: list[Record] = []
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
            late += self._collect()
        self._dismiss()
        self._lock.release()
        return late


def default_slots(jobs: Iterable[Job]) -> int:
    """Return how many cells of a plan may run at once: as many as the cores allow with the largest
    number of threads among them; one where they share a GPU, its memory and its time."""
    beside = [job for job in jobs if not job.alone]
    if any(getattr(job.cell, "device", "cpu") == "cuda" for job in beside):
        return 1
    rooms = (job.cell.machine.cores // (job.cell.threads * job.devices) for job in beside)
    return max(1, min(rooms, default=1))
