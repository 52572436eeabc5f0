"""Records of jobs that are done in seconds: from the store where they are, else run now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lra.cli.echo import echo

if TYPE_CHECKING:
    from lra.core.findings import Finding
    from lra.core.records import Record
    from lra.engine.jobs import Job
    from lra.store import Store


def cached_records(
    jobs: list[Job],
    store: Store,
    *,
    slots: int | None,
    quiet: bool,
    silent: bool = False,
    timeout: float | None = None,
) -> list[tuple[Job, Record]]:
    """Run jobs that have no record, failed or ran out of time; return jobs with their records, in
    order.

    A job whose record cannot be read is left out, with a warning. `silent` prints no progress and
    no failure.
    """
    from lra.cli.progress import watcher
    from lra.engine.process.launch import ForkServer
    from lra.engine.process.run_jobs import run_jobs
    from lra.engine.process.runner import Watcher

    with ForkServer() as server:
        found = run_jobs(
            store,
            server,
            jobs,
            due=lambda job: not _is_done(store.load(job.cell.id)),
            watch=lambda due: Watcher() if silent else watcher(due, quiet=quiet),
            slots=slots,
            timeout=timeout,
        )
    warn_unread(len(jobs) - len(found))
    return found


def warn_unread(cells: int) -> None:
    """Print how many cells ended without a record that can be read, if any did."""
    from lra.report.words import count

    if cells:
        echo(f"{count(cells, 'cell')} ended without a record that can be read", err=True)


def _is_done(record: Record | None) -> bool:
    """Whether a record stands; a time-out or a kill for memory may be the machine's fault, not the
    law's, and is tried again."""
    from lra.core.records import FAILED

    if record is None or record.status in FAILED:
        return False
    return not any(map(_may_be_machine_failure, record.findings))


def _may_be_machine_failure(finding: Finding) -> bool:
    """Whether time or memory may have run out: the kernel kills a check before other processes."""
    killed = finding.ending == "crash" and "SIGKILL" in finding.detail
    return killed or finding.ending == "timeout"
