"""Watcher of a pool that writes down each event."""

from __future__ import annotations

from collections.abc import Callable

from lra.core.records import Record
from lra.engine.jobs import Job, Progress
from lra.engine.process.runner import Watcher


class Diary(Watcher):
    """Writes down what it hears; calls back at the first progress of training."""

    def __init__(self, at_training: Callable[[], None] = lambda: None) -> None:
        self.lines: list[str] = []
        self.losses: list[float] = []
        self.steps: dict[str, list[int]] = {}
        self.at_training = at_training

    def started(self, job: Job) -> None:
        self.lines.append(f"start {job.label}")

    def progress(self, job: Job, progress: Progress) -> None:
        if progress.phase == "train" and progress.step:
            self.steps.setdefault(job.cell.id, []).append(progress.step)
            self.at_training()
        if progress.loss is not None:
            self.losses.append(progress.loss)

    def finished(self, job: Job, record: Record) -> None:
        self.lines.append(f"{record.status} {job.label}")

    def left(self, job: Job) -> None:
        self.lines.append(f"left {job.label}")

    def noticed(self, words: str) -> None:
        self.lines.append(f"noticed {words}")
