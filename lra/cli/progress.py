"""Progress while cells run: bars on a terminal, one plain line per cell elsewhere.

Both tell how many cells are done, failed and left, and about how long the rest takes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from statistics import fmean
from types import MappingProxyType
from typing import Any

from tqdm import tqdm

from lra.cli.echo import echo
from lra.core.errors import truncate
from lra.core.escape import escape_controls
from lra.core.records import FAILED, Record
from lra.engine.jobs import Job, Progress
from lra.engine.process.runner import Watcher
from lra.report.load.disturbed import disturbed
from lra.report.words import count, duration

_SHARES = ("share", "ratio")
NOTHING_KNOWN: Mapping[str, float] = MappingProxyType({})
_TELLING = 0.05
"""Share of a run after which its own pace alone counts. Before, the rest of this share is taken to
be as fast as expected: a cell of two seconds does not tell how fast one of an hour is."""


class Quiet(Watcher):
    """Silent but for errors."""

    def noticed(self, words: str) -> None:
        """Print what became of a machine."""
        echo(words, err=True)

    def finished(self, job: Job, record: Record) -> None:
        """Print a cell that is not ok."""
        if record.status != "ok":
            echo(_describe_end(job, record), err=True)


class Pace:
    """The share of a run that is done, and an estimate of the rest at the pace so far.

    `expected` has the expected seconds of cells, `slots` of them side by side; a cell missing there
    counts as their mean.
    """

    def __init__(
        self,
        cells: Collection[str],
        expected: Mapping[str, float],
        slots: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        usual = fmean(expected.values()) if expected else 1.0
        self._expects, self._slots = bool(expected), slots
        self._waiting = {id: expected.get(id, usual) for id in cells}
        self._whole = self._left = sum(self._waiting.values())
        self._clock, self._start = clock, clock()
        self._untelling = 0.0
        """Seconds spent on cells without a result."""
        self.total, self.done, self.failed = len(cells), 0, 0

    def ended(self, record: Record) -> None:
        """Count a cell that ended."""
        expected = self._waiting.pop(record.id, 0.0)
        self._left -= expected
        self.done += 1
        self.failed += record.status in FAILED
        if record.status != "ok":
            # A cell that ends early or is skipped says nothing of the time that others take.
            self._whole -= expected
            self._untelling += record.seconds

    def __str__(self) -> str:
        """Return `12/40, 1 failed, 3 min left`: the second part where any failed, the last where
        known."""
        parts = [f"{self.done:>{len(str(self.total))}}/{self.total}"]
        if self.failed:
            parts.append(f"{self.failed} failed")
        over = self._whole - self._left
        untold = max(0.0, _TELLING * self._whole - over) if self._expects and self.done else 0.0
        if self._waiting and over + untold > 0.0:
            spent = self._clock() - self._start - self._untelling / self._slots
            pace = (max(0.0, spent) + untold / self._slots) / (over + untold)
            parts.append(f"{duration(pace * self._left)} left")
        return ", ".join(parts)


class Lines(Watcher):
    """One line on standard error for each cell that ends."""

    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self._reached: dict[str, Progress] = {}
        """Steps of trainings, by cell."""

    def progress(self, job: Job, progress: Progress) -> None:
        """Remember how far a training is."""
        if progress.steps:
            self._reached[job.cell.id] = progress

    def waiting(self, job: Job, whom: str) -> None:
        """Say why nothing happens."""
        echo(f"{job.label}: waits for {whom}", err=True)

    def noticed(self, words: str) -> None:
        """Print what became of a machine."""
        echo(words, err=True)

    def finished(self, job: Job, record: Record) -> None:
        """Print how a cell ended."""
        self.pace.ended(record)
        echo(escape_controls(f"[{self.pace}] {_describe_end(job, record)}"), err=True)

    def left(self, job: Job) -> None:
        """Print a cell that is left for another run, and how far its training is."""
        words = f"left for another run: {job.label}"
        if reached := self._reached.get(job.cell.id):
            words += f", {reached.step:,} of {reached.steps:,} steps done"
        echo(words, err=True)


class Bars(Lines):
    """A bar over all cells and one under it for each cell in training."""

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self._all = tqdm(
            total=pace.total,
            unit="cell",
            file=sys.stderr,
            position=0,
            leave=False,
            # The time left stands in the lines above; tqdm would take all cells for alike.
            bar_format="{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]",
        )
        self._training: dict[str, tqdm[Any]] = {}

    def progress(self, job: Job, progress: Progress) -> None:
        """Move a cell's bar, or name its phase."""
        super().progress(job, progress)
        bar = self._training.get(job.cell.id)
        if progress.steps and bar is None:
            bar = self._training[job.cell.id] = tqdm(
                total=progress.steps,
                desc=escape_controls(job.label),
                unit="step",
                file=sys.stderr,
                leave=False,
            )
        if bar is None:
            self._all.set_postfix_str(escape_controls(f"{job.label}: {progress.phase}"))
            return
        if progress.loss is not None:
            bar.set_postfix_str(f"loss {progress.loss:.3f}", refresh=False)
        bar.update(progress.step - bar.n)

    def waiting(self, job: Job, whom: str) -> None:
        """Say why nothing happens, above the bars."""
        with self._all.external_write_mode(file=sys.stderr):
            super().waiting(job, whom)

    def noticed(self, words: str) -> None:
        """Print above the bars what became of a machine."""
        with self._all.external_write_mode(file=sys.stderr):
            super().noticed(words)

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
        """Remove the bars from the terminal."""
        for bar in (*self._training.values(), self._all):
            bar.close()

    def _close(self, job: Job) -> None:
        bar = self._training.pop(job.cell.id, None)
        if bar is not None:
            bar.close()


def watcher(
    jobs: Iterable[Job],
    *,
    quiet: bool,
    expected: Mapping[str, float] = NOTHING_KNOWN,
    slots: int = 1,
) -> Watcher:
    """Return the watcher that suits the person: quiet, bars on a terminal, lines elsewhere.

    `expected` has the expected seconds of cells, where known, `slots` of them side by side.
    """
    if quiet:
        return Quiet()
    pace = Pace([job.cell.id for job in jobs], expected, slots)
    return Bars(pace) if sys.stderr.isatty() else Lines(pace)


def _describe_end(job: Job, record: Record) -> str:
    """The end of a cell in words, with its leading figure."""
    text = f"{job.label}: {_figure(record) if record.status == 'ok' else record.status}"
    if record.failure is not None:
        text += f" ({truncate(record.failure.message)})"
    return f"{text}  [{record.seconds:.1f} s]"


def _figure(record: Record) -> str:
    def value(name: str) -> float | None:
        metric = record.metrics.get(name)
        return None if metric is None else metric.value

    if (accuracy := value("test_accuracy")) is not None:
        return f"test accuracy {accuracy:.1%}"
    if (bits := value("bits_per_byte")) is not None:
        return f"{bits:.3f} bits per byte"
    if (nat := value("nat")) is not None:
        return f"{nat:.3f} nat"
    if (latency := value("latency")) is not None:
        # By its own controls alone; the report also compares those of other timings.
        busy = " (busy machine)" if disturbed([record]) else ""
        return f"{latency * 1e3:.2f} ms{busy}"
    if (step := value("step_seconds")) is not None:
        return f"{step * 1e3:.3g} ms a step"
    if record.findings:
        # The verb prints the outcomes of single laws.
        verdicts = [finding.verdict for finding in record.findings]
        held, failed = (verdicts.count(one) for one in ("held", "failed"))
        return f"{count(held, 'law')} held, {failed or 'none'} failed"
    known = {name: (m.value, m.unit) for name, m in record.metrics.items() if m.value is not None}
    return ", ".join(
        f"{name.replace('_', ' ')} {f'{found:.1%}' if unit in _SHARES else f'{found:.3g} {unit}'}"
        for name, (found, unit) in known.items()
    )
