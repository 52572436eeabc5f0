"""A generated set made by several processes, each a stretch of rows at a time, in their order."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from lra.core.dataset import Split
from lra.core.errors import DataError
from lra.core.protocol import DataSpec
from tasks.contract import Task
from tasks.sources.opening import built
from tasks.sources.prepared import open_kept
from tasks.sources.preparing import (
    QUIET,
    Stretch,
    Watch,
    generated_pieces,
    make_set,
    stretches,
)

_AHEAD = 2
"""Stretches that wait to be written, for each process."""

_task: Task
"""The task of a worker process, from its start on."""


def generate(
    reference: str, spec: DataSpec, folder: Path, processes: int, watch: Watch = QUIET
) -> bool:
    """Make the generated set of `spec` in `folder`; False if it is there already.

    `reference` is the task as `lra.core.catalogue.find` knows it. Raises `DataError` where what is
    there is damaged, the disk is full or a process was killed, such as for want of memory.
    """
    task = built(reference, spec)
    if folder.is_dir():
        open_kept(folder)
        return False
    due = stretches(task, spec.rows)
    with _makers(reference, spec, due, processes) as made:
        pieces = partial(generated_pieces, due, made)
        make_set(task, spec.task, folder, folder.name, pieces, what=spec.task, watch=watch)
    return True


@contextmanager
def _makers(
    reference: str, spec: DataSpec, due: Sequence[Stretch], processes: int
) -> Iterator[Callable[[int], Split]]:
    """Yield what returns the rows of `due[number]`, to be asked for in rising order."""
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, context, _begin, (reference, spec))
    waiting: dict[int, Future[Split]] = {}

    def made(number: int) -> Split:
        try:
            for ahead in range(number, min(number + _AHEAD * processes, len(due))):
                if ahead not in waiting:
                    waiting[ahead] = pool.submit(_make, due[ahead])
            return waiting.pop(number).result()
        except BrokenProcessPool as error:
            raise DataError(
                f"a process that made rows of {spec.task} was killed; where memory is short say "
                f"--jobs 1, and run again to go on"
            ) from error

    try:
        yield made
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _begin(*arguments: Any) -> None:
    global _task
    # Ctrl-C reaches all processes of a terminal: these end without a word, the first one speaks.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_the_first, daemon=True).start()
    _task = built(*arguments)


def _end_with_the_first() -> None:
    """However the process ends that started this one: nobody wants the rows any more."""
    first = multiprocessing.parent_process()
    if first is not None:
        wait([first.sentinel])
        os._exit(1)


def _make(stretch: Stretch) -> Split:
    return stretch.made(_task)
