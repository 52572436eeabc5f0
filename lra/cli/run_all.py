"""Jobs carried out on this machine into a store, where nothing more is asked of a run."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from lra.cli.echo import echo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from lra.cli.progress import ProgressWatcher
    from lra.core.records import Record
    from lra.engine.jobs import Job
    from lra.engine.process.launch import ForkServer
    from lra.store import Store


def run_jobs(
    store: Store,
    server: ForkServer,
    jobs: Sequence[Job],
    *,
    due: Callable[[Job], bool],
    watch: Callable[[list[Job]], ProgressWatcher],
    slots: int | None = None,
    timeout: float | None = None,
    prune: bool = True,
) -> list[tuple[Job, Record]]:
    """Run the jobs that are due; return all of them with their records, as `load_records` does.

    `watch` returns what hears of those that are due; `slots` run side by side, None for as many as
    the cores allow; `timeout` and `prune` are `Runner`'s own. Raises `StoreError` for records of a
    newer version, and what `Runner.run` raises.
    """
    from lra.engine.process.pool import Pool, default_slots

    with store.locked():
        store.refuse_newer(job.cell.id for job in jobs)
        missing = [job for job in jobs if due(job)]
        with closing(watch(missing)) as watching:
            slots = slots or default_slots(jobs)
            pool = Pool(store, server, slots=slots, watcher=watching, timeout=timeout, prune=prune)
            for _ in pool.run(missing):
                pass
        return load_records(jobs, store)


def load_records(jobs: Iterable[Job], store: Store) -> list[tuple[Job, Record]]:
    """Return jobs that have ended with their records, in order. One whose record cannot be read is
    left out, and said to be."""
    read = [(job, store.load(job.cell.id)) for job in jobs]
    unread = {job.cell.id for job, record in read if record is None}
    warn_unread(len(unread))
    return [(job, record) for job, record in read if record is not None]


def warn_unread(cells: int) -> None:
    """Print how many cells ended without a record that can be read, if any did."""
    from lra.report.words import count

    if cells:
        echo(f"{count(cells, 'cell')} ended without a record that can be read", err=True)
