"""Time lost on cells that were stopped, so that no cell is tried in vain for ever.

A cell without an estimate may be longer than any budget. After each note of lost time it starts
only where there is more time than it had.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from lra.core.cells import QualityCell
from lra.core.records import Record
from lra.engine.jobs import Job, Progress
from lra.engine.process.runner import Watcher
from lra.store import Store

MORE = 1.25
"""Factor by which a cell must have longer than it had in vain."""


class LostTime(Watcher):
    """Watcher that passes events on to another, and notes the time lost on stopped cells in the
    store."""

    def __init__(self, store: Store, watcher: Watcher) -> None:
        self._store, self._watcher = store, watcher
        self._began: dict[str, float] = {}

    def started(self, job: Job) -> None:
        """Note the time of its start."""
        self._began[job.cell.id] = time.monotonic()
        self._watcher.started(job)

    def progress(self, job: Job, progress: Progress) -> None:
        """Pass on its progress."""
        self._watcher.progress(job, progress)

    def waiting(self, job: Job, whom: str) -> None:
        """Pass on whom it waits for."""
        self._watcher.waiting(job, whom)

    def noticed(self, words: str) -> None:
        """Pass on what became of a machine."""
        self._watcher.noticed(words)

    def finished(self, job: Job, record: Record) -> None:
        """Remove its note, since its record tells more."""
        _note(self._store, job).unlink(missing_ok=True)
        self._watcher.finished(job, record)

    def left(self, job: Job) -> None:
        """Note how long it had, where all of that is lost and it never had longer."""
        if not isinstance(job.cell, QualityCell):
            had = time.monotonic() - self._began[job.cell.id]
            had = max(had, _seconds_lost(self._store, job) or 0.0)
            # A run that ends for want of disk space reports that itself.
            with suppress(OSError):
                _note(self._store, job).write_text(f"{had:.1f}\n", encoding="ascii")
        self._watcher.left(job)

    def close(self) -> None:
        """Pass on that the run is over."""
        self._watcher.close()


def seconds_needed(store: Store, job: Job) -> float | None:
    """Return the seconds that a cell needs after it was stopped; None where it was not."""
    had = _seconds_lost(store, job)
    return None if had is None else MORE * had


def _seconds_lost(store: Store, job: Job) -> float | None:
    try:
        return float(_note(store, job).read_text(encoding="ascii"))
    except (OSError, ValueError):
        # The note is missing, or was cut off by a full disk.
        return None


def _note(store: Store, job: Job) -> Path:
    return store.checkpoint(job.cell.id).with_suffix(".cut")
