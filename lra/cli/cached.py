"""Records of jobs that are done in seconds: from the store where they are, else run now."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    """Run what has no record, failed or ran out of time; return jobs with their records, in order.

    One whose record cannot be read is left out, and said to be. `silent` says nothing meanwhile, of
    failures neither.
    """
    from lra.cli.progress import ProgressWatcher, watcher
    from lra.cli.run_all import run_jobs
    from lra.engine.process.launch import ForkServer

    def watch(missing: list[Job]) -> ProgressWatcher:
        return ProgressWatcher() if silent else watcher(missing, quiet=quiet)

    with ForkServer() as server:
        return run_jobs(
            store,
            server,
            jobs,
            due=lambda job: not _is_done(store.load(job.cell.id)),
            watch=watch,
            slots=slots,
            timeout=timeout,
        )


def _is_done(record: Record | None) -> bool:
    """A time-out or a kill for memory may be the machine's fault, not the law's: try again."""
    from lra.core.records import FAILED

    if record is None or record.status in FAILED:
        return False
    return not any(map(_may_be_machine_failure, record.findings))


def _may_be_machine_failure(finding: Finding) -> bool:
    """Whether time or memory may have run out: the kernel kills a check before other processes."""
    killed = finding.ending == "crash" and "SIGKILL" in finding.detail
    return killed or finding.ending == "timeout"
