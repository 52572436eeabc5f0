"""What a person sees while cells run: bars on a terminal, one plain line per cell elsewhere."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import click
from tqdm import tqdm

from lra.core.records import Record
from lra.engine.jobs import Job, Progress
from lra.engine.pool import Watcher


class Shown(Watcher):
    """A watcher to be closed when the cells are over, however that comes."""

    def close(self) -> None:
        """Leave the terminal to whoever writes next."""


class Quiet(Shown):
    """Says nothing but what went wrong."""

    def finished(self, job: Job, record: Record) -> None:
        """Name a cell that is not ok."""
        if record.status != "ok":
            click.echo(_line(job, record), err=True)


class Lines(Shown):
    """One line on standard error for each cell that ends."""

    def __init__(self, total: int) -> None:
        self.total, self.done = total, 0

    def waiting(self, job: Job) -> None:
        """Say why nothing happens."""
        click.echo(f"{job.label}: waits for another run's timing on this machine", err=True)

    def finished(self, job: Job, record: Record) -> None:
        """Print how a cell ended."""
        self.done += 1
        click.echo(
            f"[{self.done:>{len(str(self.total))}}/{self.total}] {_line(job, record)}", err=True
        )

    def left(self, job: Job) -> None:
        """Print a cell that will have to run another time."""
        click.echo(f"left for another run: {job.label}", err=True)


class Bars(Lines):
    """A bar over all cells and one under it for each cell in training."""

    def __init__(self, total: int) -> None:
        super().__init__(total)
        self._all = tqdm(total=total, unit="cell", file=sys.stderr, position=0, leave=False)
        self._training: dict[str, tqdm[Any]] = {}

    def progress(self, job: Job, progress: Progress) -> None:
        """Move a cell's bar, or name its phase."""
        bar = self._training.get(job.cell.id)
        if progress.steps and bar is None:
            bar = self._training[job.cell.id] = tqdm(
                total=progress.steps, desc=job.label, unit="step", file=sys.stderr, leave=False
            )
        if bar is None:
            self._all.set_postfix_str(f"{job.label}: {progress.phase}")
            return
        if progress.loss is not None:
            bar.set_postfix_str(f"loss {progress.loss:.3f}", refresh=False)
        bar.update(progress.step - bar.n)

    def waiting(self, job: Job) -> None:
        """Say why nothing happens, above the bars."""
        with self._all.external_write_mode(file=sys.stderr):
            super().waiting(job)

    def finished(self, job: Job, record: Record) -> None:
        """Close the cell's bar and print its line above the others."""
        self._close(job)
        with self._all.external_write_mode(file=sys.stderr):
            super().finished(job, record)
        self._all.update()

    def left(self, job: Job) -> None:
        """Close the cell's bar."""
        self._close(job)
        with self._all.external_write_mode(file=sys.stderr):
            super().left(job)

    def close(self) -> None:
        """Take the bars off the terminal."""
        for bar in (*self._training.values(), self._all):
            bar.close()

    def _close(self, job: Job) -> None:
        bar = self._training.pop(job.cell.id, None)
        if bar is not None:
            bar.close()


def watcher(total: int, *, quiet: bool) -> Shown:
    """Return what suits the person: quiet, bars on a terminal, lines elsewhere."""
    if quiet:
        return Quiet()
    return Bars(total) if sys.stderr.isatty() else Lines(total)


def _line(job: Job, record: Record) -> str:
    """How a cell ended, with its leading figure."""
    told = f"{job.label}: {_figure(record) if record.status == 'ok' else record.status}"
    if record.failure is not None:
        told += f" ({record.failure.message})"
    return f"{told}  [{record.seconds:.1f} s]"


def _figure(record: Record) -> str:
    metrics = record.metrics
    if "test_accuracy" in metrics and metrics["test_accuracy"].value is not None:
        return f"test accuracy {metrics['test_accuracy'].value:.1%}"
    if "latency" in metrics and metrics["latency"].value is not None:
        return f"{metrics['latency'].value * 1e3:.2f} ms"
    if record.findings:
        told = Counter(finding.verdict for finding in record.findings)
        return ", ".join(f"{number} {verdict}" for verdict, number in told.items())
    shares = {name: m.value for name, m in metrics.items() if m.value is not None}
    return ", ".join(f"{name.replace('_', ' ')} {value:.1%}" for name, value in shares.items())
