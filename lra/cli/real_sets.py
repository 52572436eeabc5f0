"""Real data of a run, read before its first cell: bad data is told at once, not after timings."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lra.engine.jobs import Job


def prepare_real_sets(jobs: Iterable[Job], *, quiet: bool) -> None:
    """Make the real sets that jobs need in the cache, where their cells find them.

    Raises `DataError` for the first fault in what the cells would read.
    """
    from lra.cli.data_progress import name_task_errors, show_progress
    from lra.core import catalogue
    from lra.core.cells import BaselineCell, ProfileCell, QualityCell
    from tasks.sources.data_hash import prepared_name
    from tasks.sources.opening import built, open_or_prepare
    from tasks.sources.preparing import QUIET

    made: set[Path] = set()
    for job in jobs:
        cell = job.cell
        if job.source is None or not isinstance(cell, QualityCell | BaselineCell | ProfileCell):
            continue
        target = catalogue.find("task", job.task or cell.data.task)
        folder = Path(job.cache) / prepared_name(target.file, cell.data)
        if folder in made:
            continue
        made.add(folder)
        with name_task_errors(target), closing(show_progress(target.name)) as watch:
            task = built(target.reference, cell.data)
            open_or_prepare(task, cell.data, job.source, folder, QUIET if quiet else watch)
