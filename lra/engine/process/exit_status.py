"""Outcome of a worker from its exit, and the cells that are not worth a worker."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec

from lra.core import peers
from lra.core.cells import Cell, EfficiencyCell, ErrorCell, ShowCell
from lra.core.errors import truncate, without_middle
from lra.core.findings import Finding
from lra.core.records import Failure, Metric, Record
from lra.engine.jobs import Job, Outcome
from lra.engine.process.error_text import publishable, whole_lines
from lra.engine.process.secrets import mask_credentials
from lra.engine.process.signals import signal_name

ByLength = EfficiencyCell | ErrorCell
"""Kinds of cells that a plan has at several lengths."""

NOTED = ("_failed", "untried")
"""Endings of the names of method notes on errors, after a training or in the trial of laws."""
TAIL = 4096
"""Largest number of characters that a record keeps of a worker's output."""
WORDS = 4096
"""Largest number of characters of any other text that somebody's code may have made."""


@dataclass(frozen=True)
class Ending:
    """All that is known of a worker that has ended."""

    outcome: Outcome | None
    """Its last message; None where it could not send one."""
    exit_code: int | None
    """Exit code; negative: killed by that signal. None: the fork server died with it."""
    phase: str
    timeout: float | None
    """Seconds after which the pool killed it; None where it did not."""
    out_of_memory: bool
    """Whether the kernel killed a process for memory while it ran."""
    tail: str
    """End of its standard output and error, as written."""


def outcome_of(ending: Ending, job: Job) -> Outcome:
    """Return the outcome of a job whose worker has ended."""
    outcome = ending.outcome or _unexplained_outcome(ending, job.cell)
    checkpoints = str(Path(job.checkpoint).parent)
    modules = [reference.partition(":")[0] for reference in (job.mechanism, job.task)]
    known = [place for place in (job.source, job.cache, checkpoints, *modules) if place]
    # Each is cut after it is masked: half a credential has no known shape.
    findings = tuple(_publishable_finding(finding, known) for finding in outcome.findings)

    def words(text: str) -> str:
        return without_middle(publishable(text, known), WORDS)

    def masked(text: str) -> str:
        return without_middle(mask_credentials(text), WORDS)

    failure = outcome.failure and msgspec.structs.replace(
        outcome.failure,
        type=truncate(outcome.failure.type),
        message=words(outcome.failure.message),
        tail="" if outcome.status == "unsupported" else _end(publishable(ending.tail, known)),
    )
    metrics = {
        name: metric
        if metric.why_null is None
        else msgspec.structs.replace(metric, why_null=words(metric.why_null))
        for name, metric in map(_with_reason, outcome.metrics.items())
    }
    # Notes of errors alone have paths; other texts may be formulas.
    method = {
        name: _with_each_text(value, words if name.endswith(NOTED) else masked)
        for name, value in outcome.method.items()
    }
    return msgspec.structs.replace(
        outcome, failure=failure, findings=findings, metrics=metrics, method=method
    )


def skip_uninstalled(job: Job) -> Outcome | None:
    """Return `skipped` for a cell of a peer whose package is not installed; else None."""
    if not job.unavailable or not job.mechanism.startswith(peers.PREFIX):
        return None
    package = peers.read(job.mechanism).package
    try:
        version(package)
    except PackageNotFoundError:
        message = f"needs the package '{package}'; pip install -c constraints.txt \".[peers]\""
        return Outcome(status="skipped", failure=Failure(type="NotInstalled", message=message))
    return None


def resource_failures(records: Iterable[Record], timeout: float | None) -> list[Record]:
    """Return the records of cells that ran out of memory, or of at least as much time as
    `timeout`."""
    return [
        record
        for record in records
        if isinstance(record.cell, ByLength)
        and (
            record.status == "oom"
            or (record.status == "timeout" and timeout is not None and record.seconds >= timeout)
        )
    ]


def skip_pruned(cell: Cell, failed: Iterable[Record]) -> Outcome | None:
    """Return `skipped` for a cell whose shorter twin ran out of memory or time; else None."""
    if not isinstance(cell, ByLength):
        return None
    for record in failed:
        twin = record.cell
        if (
            record.status in ("oom", "timeout")
            and isinstance(twin, ByLength)
            and twin.length < cell.length
            and _at_length(cell, twin) == twin
        ):
            message = f"not tried: {record.status} already at length {twin.length}"
            return Outcome(status="skipped", failure=Failure(type="Pruned", message=message))
    return None


def is_same_but_repetition(cell: Cell, other: Cell) -> bool:
    """Return whether two cells are the same but for the number of the repetition."""
    if not isinstance(cell, ByLength) or not isinstance(other, ByLength):
        return False
    return cell.length == other.length and _at_length(cell, other) == other


def _at_length(cell: ByLength, twin: ByLength) -> ByLength:
    """The cell at the length and repetition of another."""
    if isinstance(cell, EfficiencyCell) and isinstance(twin, EfficiencyCell):
        return msgspec.structs.replace(cell, length=twin.length, replicate=twin.replicate)
    if isinstance(cell, ErrorCell) and isinstance(twin, ErrorCell):
        return msgspec.structs.replace(cell, length=twin.length, seed=twin.seed)
    return cell


def _publishable_finding(finding: Finding, known: Sequence[str]) -> Finding:
    """A finding with its texts of somebody's code as a record holds them."""
    tried = finding.tried
    if tried is not None and tried.refusals:
        why = {size: truncate(publishable(one, known)) for size, one in tried.refusals.items()}
        tried = msgspec.structs.replace(tried, refusals=why)
    detail = truncate(publishable(finding.detail, known))
    return msgspec.structs.replace(finding, detail=detail, tried=tried)


def _with_each_text(value: Any, change: Callable[[str], str]) -> Any:
    """A plain value with every text in it changed, however deep it lies."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)(_with_each_text(part, change) for part in value)
    if isinstance(value, dict):
        return {key: _with_each_text(part, change) for key, part in value.items()}
    return value


def _with_reason(named: tuple[str, Metric]) -> tuple[str, Metric]:
    """A metric; one that JSON cannot hold becomes null with the reason. Somebody's own code may
    give it."""
    name, metric = named
    if metric.value is None or math.isfinite(metric.value):
        return named
    return name, msgspec.structs.replace(metric, value=None, why_null=f"it is {metric.value}")


def _end(text: str) -> str:
    """End of a text that is masked already."""
    end = text[-TAIL:]
    return text if len(text) <= TAIL else whole_lines(end) or end


def _unexplained_outcome(ending: Ending, cell: Cell) -> Outcome:
    """Outcome of a worker that sent none."""
    code, phase = ending.exit_code, ending.phase
    if ending.timeout is not None:
        # `lra show` has neither flag: its time limit is its own.
        shown = isinstance(cell, ShowCell)
        remedy = "give fewer positions" if shown else "give --timeout more, and --rerun failed"
        message = f"no result after {ending.timeout:g} s; {remedy}"
        return Outcome(
            status="timeout", failure=Failure(type="Timeout", message=message, phase=phase)
        )
    assert code is not None, "the pool keeps what fell with the server"
    if code >= 0:
        message = f"the worker ended with exit code {code} before it had a result"
        return Outcome(
            status="error", failure=Failure(type="NoResult", message=message, phase=phase)
        )
    name = signal_name(-code)
    if name == "SIGKILL" and ending.out_of_memory:
        message = "the kernel killed the worker because memory ran out"
        return Outcome(status="oom", failure=Failure(type=name, message=message, phase=phase))
    return Outcome(
        status="crash",
        failure=Failure(type=name, message=f"the worker ended by {name}", phase=phase),
    )
