"""Jobs run on this machine into a store, for commands that need no more of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing

from lra.core.records import Record
from lra.engine.jobs import Job
from lra.engine.process import pool
from lra.engine.process.launch import ForkServer
from lra.engine.process.runner import Watcher
from lra.store import Store

Watch = Callable[[list[Job]], Watcher]
"""Function from the due jobs to their watcher, which is closed when they are over."""


def run_jobs(
    store: Store,
    server: ForkServer,
    jobs: Sequence[Job],
    *,
    due: Callable[[Job], bool],
    watch: Watch,
    slots: int | None = None,
    timeout: float | None = None,
    prune: bool = True,
) -> list[tuple[Job, Record]]:
    """Run the jobs that are due; return all jobs with their records, in order.

    A job whose record cannot be read is left out. `slots` run side by side, None for as many as the
    cores allow; `timeout` and `prune` are `Runner`'s own. Raises `StoreError` for records of a
    newer version, and what `Runner.run` raises.
    """
    with store.locked():
        store.refuse_newer(job.cell.id for job in jobs)
        missing = [job for job in jobs if due(job)]
        with closing(watch(missing)) as watcher:
            slots = slots or pool.default_slots(jobs)
            runner = pool.Pool(
                store, server, slots=slots, watcher=watcher, timeout=timeout, prune=prune
            )
            for _ in runner.run(missing):
                pass
        read = [(job, store.load(job.cell.id)) for job in jobs]
    return [(job, record) for job, record in read if record is not None]
