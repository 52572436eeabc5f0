"""Records of jobs that are done in seconds: from the store where they are, else run now."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lra.core.findings import Finding
    from lra.core.records import Record
    from lra.engine.jobs import Job
    from lra.store import Store


def recorded(
    jobs: list[Job],
    place: Store,
    *,
    slots: int | None,
    quiet: bool,
    silent: bool = False,
    timeout: float | None = None,
) -> list[Record]:
    """Run what has no record, failed or ran out of time; return records in the jobs' order.

    `silent` says nothing at all meanwhile, of failures neither.
    """
    from lra.cli.progress import Shown, watcher
    from lra.engine.pool import Pool, slots_for
    from lra.engine.server import ForkServer

    with ForkServer() as server, place.writing():
        place.refuse_newer(job.cell.id for job in jobs)
        kept = {job.cell.id: place.load(job.cell.id) for job in jobs}
        done = {id for id, record in kept.items() if record and _is_done(record)}
        missing = [job for job in jobs if job.cell.id not in done]
        with closing(Shown() if silent else watcher(missing, quiet=quiet)) as watch:
            slots = slots or slots_for(jobs)
            pool = Pool(place, server, slots=slots, watcher=watch, timeout=timeout)
            for _ in pool.run(missing):
                pass
        records = [place.load(job.cell.id) for job in jobs]
    return [record for record in records if record is not None]


def _is_done(record: Record) -> bool:
    """A machine may have been too busy for a law, or too full: it is tried again."""
    from lra.core.records import FAILED

    return record.status not in FAILED and not any(map(_is_of_the_machine, record.findings))


def _is_of_the_machine(finding: Finding) -> bool:
    """Whether time or memory may have run out: the kernel kills a check before other processes."""
    killed = finding.ending == "crash" and "SIGKILL" in finding.detail
    return killed or finding.ending == "timeout"
