"""Runner of jobs, on this machine or a cluster: the jobs worth starting, and their records.

Every ending becomes a record on the disk the moment it is known. However a run stops, only its
running cells are lost, and trainings among them go on from their checkpoints.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TypedDict

import msgspec

from lra.core.bounds import why_impossible
from lra.core.errors import LraError, without_middle
from lra.core.records import Failure, Provenance, Record
from lra.engine.jobs import Job, Outcome, Progress
from lra.engine.order.budget import GRACE_MOST, Budget
from lra.engine.process.exit_status import (
    WORDS,
    ByLength,
    is_same_but_repetition,
    resource_failures,
    skip_pruned,
    skip_uninstalled,
)
from lra.engine.process.signals import StopSignals
from lra.engine.process.supervisor import utc
from lra.store import Store


class RunStopped(LraError):  # noqa: N818  an ending, not a fault
    """Ctrl-C, SIGTERM or SIGHUP ended the run; all finished cells are stored."""

    exit_code = 130


class Watcher:
    """Receiver of events; override those of interest."""

    def started(self, job: Job) -> None:
        """A worker has been asked for."""

    def progress(self, job: Job, progress: Progress) -> None:
        """A worker sends its progress."""

    def waiting(self, job: Job, whom: str) -> None:
        """A timing waits for another run's on its machine; reported once a minute at most."""

    def finished(self, job: Job, record: Record) -> None:
        """A record has been stored."""

    def left(self, job: Job) -> None:
        """A running cell was stopped without a record; a rerun runs it."""

    def noticed(self, words: str) -> None:
        """An event of a machine that cells run on, in one line."""

    def close(self) -> None:
        """The run is over, in whatever way."""


class RunnerOptions(TypedDict, total=False):
    """Arguments of every runner; see `Runner`."""

    timeout: float | None
    budget: Budget | None
    admits: Callable[[Job], bool]
    watcher: Watcher | None
    prune: bool


class Runner(ABC):
    """Runs jobs; the caller holds the store open for writing.

    `timeout` is for each cell, in seconds. A job that `admits` refuses when its turn comes is left.
    With `prune` a cell is skipped where its shorter twin ran out of memory or time, in this run or,
    by the store, in an earlier one that gave it as much time.
    """

    def __init__(
        self,
        store: Store,
        provenance: Provenance,
        *,
        timeout: float | None = None,
        budget: Budget | None = None,
        admits: Callable[[Job], bool] = lambda job: True,
        watcher: Watcher | None = None,
        prune: bool = True,
    ) -> None:
        self.store, self.timeout, self.budget, self.prune = store, timeout, budget, prune
        self._admits = admits
        self.watcher = watcher or Watcher()
        self.left: list[Job] = []
        """Jobs without a record when `run` ends: out of budget, or stopped."""
        self._waiting: list[Job] = []
        self._provenance = provenance
        self._failed: list[Record] = []
        self._failed_before: list[Record] = []
        self._signals = StopSignals()

    def run(self, jobs: Iterable[Job]) -> Iterator[Record]:
        """Run all jobs and yield each record once it is stored.

        Raises `RunStopped` on SIGINT, SIGTERM or SIGHUP, after running cells had time to save
        themselves, and `LraError` where the store or the fork server fails.
        """
        self._waiting = list(jobs)
        self._failed_before = self._at_their_limit() if self.prune else []
        with self._signals as signals:
            try:
                while self._waiting or self._is_busy():
                    if signals.received:
                        break
                    if self.budget is not None and not self.budget.left:
                        break
                    yield from self._start()
                    yield from self._collect()
            finally:
                # Also when the caller gives up, or fails, between two records.
                late = self._stop_all(self._grace)
                self.left += self._waiting
            yield from late
            if signals.received:
                raise RunStopped(
                    f"stopped by {signals.received}; finished cells are stored, "
                    f"{len(self.left)} are left: run the same command again to continue"
                )

    @property
    def _grace(self) -> float:
        """Seconds for running cells to save themselves."""
        return GRACE_MOST if self.budget is None else self.budget.grace

    @abstractmethod
    def _is_busy(self) -> bool:
        """Whether any cell runs."""

    @abstractmethod
    def _start(self) -> Iterator[Record]:
        """Start waiting jobs while there is room; yield records of those not worth it.

        Each goes through `_settle` before its start and `_launched` after it.
        """

    @abstractmethod
    def _collect(self) -> Iterable[Record]:
        """Wait for news, a tick at most, and store the records of cells that have ended."""

    @abstractmethod
    def _stop_all(self, grace: float) -> list[Record]:
        """Ask running cells to save themselves, end them after `grace` seconds; store and return
        late records."""

    def _settle(self, job: Job) -> Generator[Record, None, bool]:
        """Yield the record of a waiting job that is not worth starting; leave one that is not
        admitted. Return whether it was either, and waits no longer."""
        why = skip_uninstalled(job)
        if why is None and self.prune:
            why = skip_pruned(job.cell, [*self._failed_before, *self._failed])
        if why is not None:
            self._waiting.remove(job)
            yield self._save(job, why, started_at=utc(), seconds=0.0)
        elif not self._admits(job):
            self._waiting.remove(job)
            self.left.append(job)
        else:
            return False
        return True

    def _launched(self, job: Job) -> None:
        """Note that a job has started."""
        # A cell that is tried again says nothing of longer inputs until it has ended.
        self._failed_before = [
            r for r in self._failed_before if not is_same_but_repetition(job.cell, r.cell)
        ]
        self.watcher.started(job)

    def _save(
        self,
        job: Job,
        outcome: Outcome,
        *,
        started_at: str,
        seconds: float,
    ) -> Record:
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
        if record.status == "ok" and (wrong := why_impossible(record)):
            # A figure of somebody's own code: on loading it would count as damage.
            message = f"{wrong}; mend the code that gives it"
            failure = Failure(type="ImpossibleFigure", message=without_middle(message, WORDS))
            record = msgspec.structs.replace(
                record, status="error", failure=failure, metrics={}, curve=(), findings=(),
                pattern=None, attended=None, method={},
            )  # fmt: skip
        return self._keep(job, record)

    def _keep(self, job: Job, record: Record) -> Record:
        """Store a record, and give back its checkpoint where nothing would continue from it."""
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

    def _at_their_limit(self) -> list[Record]:
        """Records of earlier runs that ran out of memory, or of at least the present time limit."""
        if not any(isinstance(job.cell, ByLength) for job in self._waiting):
            return []
        return resource_failures(self.store.records(), self.timeout)
