"""Cells of a plan that are due, and their order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence, Set
from datetime import UTC, datetime, timedelta
from functools import cached_property

from msgspec.structs import replace

from lra.core.cells import EfficiencyCell
from lra.core.protocol import Mechanism
from lra.core.records import FAILED, Record
from lra.engine.jobs import Job
from lra.engine.plan.spec import Rerun
from lra.engine.process.exit_status import resource_failures, skip_pruned
from lra.store import Store

_PAUSE = timedelta(minutes=5)
"""Longest pause between two cells of a round; after a longer one, earlier figures are of another
hour."""


class Due:
    """Selection of a plan's jobs that are to be run.

    `rerun` says which records are measured again; `busy` has the ids of timings of a busy machine,
    and `timeout` is each cell's limit in seconds. Without `prune`, cells longer than one that ran
    out of memory or time are due as well. With `together`, so are outdated cells of a round with a
    due cell, or broken by a pause.
    """

    def __init__(
        self,
        store: Store,
        *,
        rerun: Rerun = "missing",
        busy: Collection[str] = (),
        timeout: float | None = None,
        prune: bool = True,
        together: bool = False,
    ) -> None:
        self.store, self.rerun, self.busy = store, rerun, busy
        self.timeout, self.prune, self.together = timeout, prune, together

    def select(self, jobs: Sequence[Job]) -> list[Job]:
        """Return the jobs that are due, in the order of the plan."""
        due = {job.cell.id for job in jobs if self._is_due(job)}
        if self.together:
            due |= self._outdated_rounds(jobs, due)
        return [job for job in jobs if job.cell.id in due]

    def ordered(self, due: Sequence[Job]) -> list[Job]:
        """Return jobs in the order to run them: from the first without a record, else from the
        oldest record; with `together` the whole of its round first.

        So the same command goes on where it was stopped, and finished cells come last.
        """
        if not due:
            return []
        records = [self.store.load(job.cell.id) for job in due]
        began = ["" if record is None else record.started_at for record in records]
        first = start = end = began.index(min(began))
        if self.together:
            rounds = [round_of(job) for job in due]
            start = rounds.index(rounds[first])
            end = start + rounds.count(rounds[first])
        return [*due[first:end], *due[start:first], *due[end:], *due[:start]]

    def resumable(self, jobs: Iterable[Job], due: Iterable[Job]) -> set[str]:
        """Return the due jobs that continue earlier work: trainings with a checkpoint; with
        `together` also the rest of a round with a recent figure."""
        waiting = {job.cell.id: job for job in due}
        # An outdated figure of a round would itself be due.
        measured = {
            round_of(job)
            for job in (jobs if self.together else ())
            if job.cell.id not in waiting
            and (record := self.store.load(job.cell.id)) is not None
            and record.status == "ok"
        }
        return {
            id
            for id, job in waiting.items()
            if self.store.checkpoint(id).is_file() or round_of(job) in measured
        }

    def _is_due(self, job: Job) -> bool:
        record = self.store.load(job.cell.id)
        if record is None or self.rerun == "all":
            return True
        if self.rerun == "disturbed":
            return record.id in self.busy
        if record.failure is not None and record.failure.type == "Pruned":
            return self.rerun == "failed" or skip_pruned(job.cell, self._limits) is None
        return self.rerun == "failed" and record.status in FAILED

    @cached_property
    def _limits(self) -> list[Record]:
        """Records of failures that rule out longer inputs."""
        return resource_failures(self.store.records(), self.timeout) if self.prune else []

    def _outdated_rounds(self, jobs: Sequence[Job], due: Set[str]) -> set[str]:
        """Cells too old to be compared with the due cells of their round, or with the rest of one
        broken by a pause."""
        rounds: dict[str, list[str]] = defaultdict(list)
        for job in jobs:
            rounds[round_of(job)].append(job.cell.id)
        before, found = datetime.now(UTC) - _PAUSE, set[str]()
        for ids in rounds.values():
            records = [record for id in ids if (record := self.store.load(id)) is not None]
            if not due.isdisjoint(ids) or _has_pause(records):
                found |= {r.id for r in records if r.status == "ok" and _span(r)[1] < before}
        return found


def round_of(job: Job) -> str:
    """Return the hash shared by the timings of one round; any other cell is a round of its own."""
    if not isinstance(job.cell, EfficiencyCell):
        return job.cell.id
    return replace(job.cell, mechanism=Mechanism(name=""), versions={}).id


def _has_pause(records: Iterable[Record]) -> bool:
    """Whether there is a pause between figures of one round; a failed cell may fill it."""
    end = None
    for record in sorted(records, key=lambda record: record.started_at):
        began, ended = _span(record)
        if end is not None and began - end > _PAUSE:
            if record.status == "ok":
                return True
        elif end is not None or record.status == "ok":
            end = ended
    return False


def _span(record: Record) -> tuple[datetime, datetime]:
    began = datetime.fromisoformat(record.started_at)
    return began, began + timedelta(seconds=record.seconds)
