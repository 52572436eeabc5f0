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
"""Between two cells of a round: with more, what was measured before it is of another hour."""


class Due:
    """Finds the jobs that are to be run of those of a plan.

    `rerun` says which are besides those without a record; `busy` are the ids of timings of a busy
    machine. `timeout` is what each cell has, in seconds. Without `prune` what is longer than a cell
    that ran out of memory or time is due as well; with `together` what belongs to a round of which
    a cell is due, or which was broken by a pause.
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
        """Return jobs in the order to run them: from the first without a record on, or else from
        the oldest record's; with `together` the whole of its round first.

        So the same command again goes on where one was stopped; what that had done comes last.
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
        """Return which of those due go on with what was paid for: trainings that have a checkpoint;
        with `together` the rest of a round of which some was measured just now."""
        waiting = {job.cell.id: job for job in due}
        # An older figure of a round would be due with the rest of it.
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
        """Records that leave longer inputs out."""
        return resource_failures(self.store.records(), self.timeout) if self.prune else []

    def _outdated_rounds(self, jobs: Sequence[Job], due: Set[str]) -> set[str]:
        """Cells whose figures are too old for what is due of their rounds, or for the rest of one
        that was broken by a pause."""
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
    """Return what the timings of one round share, as a hash; any other cell is one by itself."""
    if not isinstance(job.cell, EfficiencyCell):
        return job.cell.id
    return replace(job.cell, mechanism=Mechanism(name=""), versions={}).id


def _has_pause(records: Iterable[Record]) -> bool:
    """Whether there was a pause between figures of one round; a cell that failed may fill it."""
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
