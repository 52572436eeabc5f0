"""The grid: runs jobs on the workers of a cluster, and stores what comes of them, here alone.

Dask may run a task twice; a record is written once, by this side, from the first end that is heard.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Unpack

from distributed import Future
from msgspec.structs import replace

from lra.core.records import Failure, Record
from lra.engine.cluster.cluster import Cluster, ClusterLost
from lra.engine.cluster.messages import Ended, Order, Waits, Word, pack
from lra.engine.cluster.worker import carry
from lra.engine.cluster.workers import Member
from lra.engine.jobs import Job, Outcome, Progress
from lra.engine.process.error_text import named_line
from lra.engine.process.runner import Runner, RunnerOptions
from lra.engine.process.supervisor import TICK, utc
from lra.store import Store

DEATHS = 2
"""Workers that may die under a cell before it is taken for the reason."""
_LATE = 2.0
"""Seconds for the word of an end to come here."""


@dataclass(eq=False)
class _Flight:
    """A job that a worker has been given."""

    job: Job
    member: Member
    future: Future
    saved: float
    """When its checkpoint was last written before; 0 where there is none."""
    started_at: str
    began: float
    phase: str = "start"
    silent_since: float = 0.0
    """When its task was seen to be done without a word of its end; 0 before."""


class Grid(Runner):
    """Runs jobs on the workers of a cluster; see `Runner`.

    A job whose worker dies runs again on another; one that has ended `DEATHS` workers, without a
    new checkpoint in between, becomes a row that says so.
    """

    def __init__(self, store: Store, cluster: Cluster, **terms: Unpack[RunnerOptions]) -> None:
        found = next(iter(cluster.roster.members.values())).greeting.provenance
        super().__init__(store, found, **terms)
        self._cluster, self._roster = cluster, cluster.roster
        self._flights: dict[str, _Flight] = {}
        self._deaths: Counter[str] = Counter()
        self._words: SimpleQueue[Word | None] = SimpleQueue()
        self._stopping = False
        self._alone_since = time.monotonic()
        cluster.listen(self._words.put)

    def _is_busy(self) -> bool:
        return bool(self._flights)

    def _start(self) -> Iterator[Record]:
        """Give jobs to free workers; what finds none lets those behind it go first."""
        self._roster.new_round()
        for job in list(self._waiting):
            if not self._roster.has_room:
                return
            if (yield from self._settle(job)):
                continue
            member = self._roster.place_for(job)
            if member is not None:
                self._waiting.remove(job)
                self._launch(job, member)

    def _launch(self, job: Job, member: Member) -> None:
        file = self.store.checkpoint(job.cell.id).resolve()
        order = Order(
            # There each cell has a process of its own.
            job=replace(self._cluster.localised(job, file), series=""),
            run=self._cluster.run,
            shared=self._cluster.shared,
            variables=member.variables,
            timeout=self.timeout,
            grace=self._grace,
        )
        key = f"lra-{job.cell.id}-{uuid.uuid4().hex}"
        future = self._roster.ask(member.address, carry, pack(order), key=key)
        # A task that fails says so nowhere else.
        future.add_done_callback(lambda _: self._words.put(None))
        member.job = job
        saved = self._saved_at(job)
        self._flights[key] = _Flight(job, member, future, saved, utc(), time.monotonic())
        self._launched(job)

    def _collect(self) -> Iterator[Record]:
        try:
            word = self._words.get(timeout=TICK)
            while True:
                if word is not None and word.key in self._flights:
                    yield from self._hear(word)
                word = self._words.get_nowait()
        except Empty:
            pass
        if not self._stopping:
            self._cluster.tend(self._roster.names)
        yield from self._look()

    def _hear(self, word: Word) -> Iterator[Record]:
        flight = self._flights[word.key]
        match word.said:
            case Progress():
                flight.phase = word.said.phase
                self.watcher.progress(flight.job, word.said)
            case Waits():
                self.watcher.waiting(flight.job, word.said.whom)
            case Ended():
                self._land(word.key)
                yield from self._finish(flight, word.said)

    def _land(self, key: str) -> _Flight:
        """Forget a task and its future: Dask runs again what is held when its worker is lost."""
        flight = self._flights.pop(key)
        flight.member.job = None
        flight.future.release()
        return flight

    def _finish(self, flight: _Flight, ended: Ended) -> Iterator[Record]:
        if ended.outcome is not None:
            yield self._save(
                flight.job,
                ended.outcome,
                started_at=ended.started_at,
                seconds=ended.seconds,
                provenance=ended.provenance,
            )
            return
        if not self._stopping:
            # Nobody here asked for it: the worker is no longer to be used.
            self._roster.refuse(flight.member, ended.unfit or "is being ended")
        self._again(flight.job)

    def _again(self, job: Job) -> None:
        """Let a job without an outcome run once more, where there is still time for it."""
        if self._stopping:
            self._leave(job)
        else:
            self._waiting.insert(0, job)

    def _look(self) -> Iterator[Record]:
        """See which workers are gone, and which tasks will say nothing any more."""
        if self._cluster.client.status != "running":
            raise self._cluster.lost()
        try:
            gone = self._roster.look()
        except OSError as error:
            raise self._cluster.lost() from error
        for key, flight in list(self._flights.items()):
            if flight.member in gone:
                self._land(key)
                yield from self._mourn(flight)
            elif flight.future.done() and not self._stopping:
                yield from self._conclude(key, flight)
        for line in self._roster.news():
            self.watcher.noticed(line)
        if self._roster.members or self._roster.is_waiting:
            self._alone_since = time.monotonic()
        elif time.monotonic() - self._alone_since > self._cluster.patience and not self._stopping:
            raise ClusterLost(
                f"no worker of the cluster {self._cluster.name} is left; finished cells are "
                "stored: start workers and run the same command again"
            )

    def _conclude(self, key: str, flight: _Flight) -> Iterator[Record]:
        """Deal with a task that is done and whose end has not been heard."""
        if flight.future.status == "finished":
            # Its last word is under way, or lost.
            flight.silent_since = flight.silent_since or time.monotonic()
            if time.monotonic() - flight.silent_since < _LATE:
                return
            self._land(key)
            yield from self._mourn(flight)
            return
        error = flight.future.exception() if flight.future.status == "error" else None
        self._land(key)
        if error is None or type(error).__name__ == "KilledWorker":
            self._roster.members.pop(flight.member.address, None)
            yield from self._mourn(flight)
            return
        self._roster.refuse(flight.member, f"cannot run cells: {named_line(error)}; see its log")
        self._again(flight.job)

    def _mourn(self, flight: _Flight) -> Iterator[Record]:
        """Count a death against the job that the worker had, unless it had come further."""
        job, name = flight.job, flight.member.name
        if self._stopping:
            self._leave(job)
            return
        if self._saved_at(job) > flight.saved:
            self._deaths[job.cell.id] = 0
        self._deaths[job.cell.id] += 1
        if self._deaths[job.cell.id] < DEATHS:
            self.watcher.noticed(f"worker {name} died; {job.label} runs again")
            self._again(job)
            return
        message = f"{DEATHS} workers died while they ran it; see logs/ in the store"
        failure = Failure(type="KilledWorker", message=message, phase=flight.phase)
        yield self._save(
            job,
            Outcome(status="crash", failure=failure),
            started_at=flight.started_at,
            seconds=time.monotonic() - flight.began,
            provenance=flight.member.greeting.provenance,
        )

    def _saved_at(self, job: Job) -> float:
        try:
            return self.store.checkpoint(job.cell.id).stat().st_mtime
        except OSError:
            return 0.0

    def _stop_all(self, grace: float) -> list[Record]:
        self._stopping = True
        late: list[Record] = []
        try:
            if self._flights and self._cluster.client.status == "running":
                # Its worker sees that, lets the cell save itself, and says so.
                self._cluster.client.cancel([one.future for one in self._flights.values()])
            deadline = time.monotonic() + grace + _LATE
            while self._flights and self._signals.count < 2 and time.monotonic() < deadline:
                late += self._collect()
        except (OSError, ClusterLost):
            # Told already, or by the line of what is left.
            pass
        for key in list(self._flights):
            self._leave(self._land(key).job)
        return late
