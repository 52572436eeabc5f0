"""Records of jobs: from the store where they are, else run now."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

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
) -> list[tuple[Job, Record]]:
    """Run what has no record, failed or ran out of time; return jobs with their records, in the
    jobs' order. One whose record cannot be read is left out, and said to be.

    `silent` says nothing of cells meanwhile, of failures neither.
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
        return loaded(jobs, place)


def loaded(jobs: Sequence[Job], store: Store) -> list[tuple[Job, Record]]:
    """Return jobs that have ended with their records, in order; says how many cannot be read."""
    from lra.report.words import count

    found = [(job, record) for job in jobs if (record := store.load(job.cell.id)) is not None]
    unread = len({job.cell.id for job in jobs} - {record.id for _, record in found})
    if unread:
        click.echo(f"{count(unread, 'cell')} ended without a record that can be read", err=True)
    return found


def _is_done(record: Record) -> bool:
    """A machine may have been too busy for a law, or too full: it is tried again."""
    from lra.core.records import FAILED

    return record.status not in FAILED and not any(map(_is_of_the_machine, record.findings))


def _is_of_the_machine(finding: Finding) -> bool:
    """Whether time or memory may have run out: the kernel kills a check before other processes."""
    killed = finding.ending == "crash" and "SIGKILL" in finding.detail
    return killed or finding.ending == "timeout"
