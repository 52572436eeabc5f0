"""The worker: one cell in a process of its own, from a job to an outcome.

Reached by name only: it imports torch, and whoever starts it must not.
"""

from __future__ import annotations

import math
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import cast

import msgspec
import torch

# Imported before the fork, or the first optimiser of every worker would pay for it.
import torch._dynamo

from attention_impls.contract import Layer, MechanismConfig, Position
from lra.core import catalogue
from lra.core.cells import BaselineCell, EfficiencyCell, QualityCell, ShowCell, VerifyCell
from lra.core.dataset import Dataset
from lra.core.errors import LraError, UnsupportedError, UsageError
from lra.core.protocol import DataSpec, Mechanism
from lra.core.records import CurvePoint, Failure, Metric
from lra.engine.jobs import Job, Message, Outcome, Progress, Stopped
from lra.engine.tails import one_line
from lra.measure.efficiency import measure_efficiency
from lra.models.build import build_model, parameter_count
from lra.training import outcome as training
from lra.training.loop import train
from tasks.contract import Task
from tasks.sources.prepared import open_or_prepare

Report = Callable[[Progress], None]

REPORT_EVERY = 0.2
"""Seconds between messages of one phase that bring no new loss."""


def main(connection: Connection) -> None:
    """Receive a job, run its cell, send messages and one last: its outcome, or that it stopped."""
    # Ctrl-C is for the run; it tells its workers what to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    job = msgspec.msgpack.decode(connection.recv_bytes(), type=Job)
    phase = _Phase(connection)
    last: Message
    try:
        last = run_cell(job, report=phase)
    except training.Interrupted:
        last = Stopped()
    except BaseException as error:
        last = _failed(error, phase.name)
    connection.send_bytes(msgspec.msgpack.encode(last))


def run_cell(job: Job, *, report: Report = lambda progress: None) -> Outcome:
    """Run one cell in this process and return how it ended, where it ended in good order.

    Raises what the cell raises; `lra.training.outcome.Interrupted` after SIGTERM in training.
    """
    cell = job.cell
    torch.set_num_threads(cell.threads)
    if isinstance(cell, QualityCell):
        return _quality(cell, job, report)
    if isinstance(cell, BaselineCell):
        return _baseline(cell, job, report)
    if isinstance(cell, VerifyCell):
        return _verify(cell, job, report)
    if isinstance(cell, ShowCell):
        return _show(cell, job, report)
    return _efficiency(cell, job, report)


def _quality(cell: QualityCell, job: Job, report: Report) -> Outcome:
    device = _device(cell.device)
    mechanism, config = load_mechanism(cell.mechanism, job.mechanism)
    position = catalogue.load(catalogue.find("position", cell.model.position))
    report(Progress(phase="data"))
    dataset = _dataset(cell.data, job)[1]
    report(Progress(phase="build"))
    model = build_model(
        cell.model,
        mechanism=mechanism,
        config=config,
        position=cast(type[Position], position),
        vocabulary=dataset.vocabulary,
        classes=dataset.classes,
        inputs=dataset.inputs,
        length=dataset.length,
        rules=cell.data.rules,
        seed=cell.seed,
    )
    parameters = parameter_count(model)
    checkpoint = Path(job.checkpoint) if job.checkpoint else None
    method = {
        "device": device.type,
        "threads": torch.get_num_threads(),
        "compile": "eager",
        "continued": checkpoint is not None and checkpoint.is_file(),
    }
    report(Progress(phase="train", steps=cell.training.steps))
    try:
        trained = train(
            model,
            dataset,
            cell.training,
            seed=cell.seed,
            rules=cell.data.rules,
            device=device,
            pad_to_length=mechanism.card.capabilities.padding != "content",
            checkpoint=checkpoint,
            report=_training_report(report),
            stop=_stop_on_sigterm(),
        )
    except training.Diverged as error:
        return Outcome(
            status="diverged",
            curve=_finite(error.curve),
            parameters=parameters,
            failure=Failure(type="Diverged", message=one_line(error), phase="train"),
            method=method,
        )
    return Outcome(
        status="ok",
        metrics={
            "test_accuracy": _share(trained.test.accuracy),
            "test_loss": _loss(trained.test.loss),
            "validation_accuracy": _share(trained.validation_accuracy),
            "training_seconds": Metric(value=trained.seconds, unit="s", better="lower"),
            "steps_per_second": Metric(value=trained.steps_per_second, unit="1/s", better="higher"),
        },
        curve=trained.curve,
        parameters=parameters,
        best_step=trained.best_step,
        rows=dataset.rows,
        method=method,
    )


def _baseline(cell: BaselineCell, job: Job, report: Report) -> Outcome:
    from lra.measure.baselines import FITTED_ROWS, STEPS, baselines

    report(Progress(phase="data"))
    task, dataset = _dataset(cell.data, job)
    report(Progress(phase="baselines"))
    found = {**baselines(dataset), **task.rules_of_thumb(dataset)}
    return Outcome(
        status="ok",
        metrics={name: _share(accuracy) for name, accuracy in found.items()},
        rows=dataset.rows,
        method={
            # What the fork server's environment leaves to libraries other than torch.
            "threads": 1,
            "bag of tokens": f"logistic regression, at most {STEPS} steps of L-BFGS, on the first "
            f"{min(FITTED_ROWS, len(dataset.train)):,} training rows",
        },
    )


def _efficiency(cell: EfficiencyCell, job: Job, report: Report) -> Outcome:
    _device(cell.device)
    mechanism, config = load_mechanism(cell.mechanism, job.mechanism)
    measured = measure_efficiency(
        cell, mechanism, config, report=lambda phase: report(Progress(phase=phase))
    )
    return Outcome(
        status="ok",
        metrics=measured.metrics,
        parameters=measured.parameters,
        method=measured.method,
    )


def _verify(cell: VerifyCell, job: Job, report: Report) -> Outcome:
    """Try every law in a process of its own; this one only waits, and never computes."""
    from lra.verify import kit
    from lra.verify.subject import Subject

    _device(cell.device)
    mechanism, config = load_mechanism(cell.mechanism, job.mechanism)
    subject = Subject(mechanism, config, cell.form == "full", cell.device, cell.case)
    laws = kit.select(cell.laws, full=subject.full)
    findings = tuple(kit.verify(subject, laws, tell=lambda law: report(Progress(phase=law.name))))
    return Outcome(status="ok", findings=findings, method={"device": cell.device})


def _show(cell: ShowCell, job: Job, report: Report) -> Outcome:
    from lra.measure.pattern import measure_pattern

    mechanism, config = load_mechanism(cell.mechanism, job.mechanism)
    report(Progress(phase="draw"))
    pattern = measure_pattern(cell, mechanism, config, source=job.source)
    pairs = Metric(value=pattern.share, unit="share", better="neither")
    return Outcome(status="ok", metrics={"pairs": pairs}, pattern=pattern)


def load_mechanism(mechanism: Mechanism, reference: str) -> tuple[type[Layer], MechanismConfig]:
    """Return the class behind a mechanism and its configuration."""
    found = catalogue.load(catalogue.find("mechanism", reference or mechanism.name))
    layer = cast(type[Layer], found)
    try:
        return layer, msgspec.convert(mechanism.config, layer.Config)
    except msgspec.ValidationError as error:
        raise UsageError(f"mechanism '{mechanism.name}': {error}; fix its settings") from error


def _dataset(spec: DataSpec, job: Job) -> tuple[Task, Dataset]:
    found = cast(type[Task], catalogue.load(catalogue.find("task", job.task or spec.task)))
    try:
        config = msgspec.convert(spec.parameters, found.Config)
    except msgspec.ValidationError as error:
        raise UsageError(f"task '{spec.task}': {error}; fix its parameters") from error
    task = found(config, length=spec.length, rules=spec.rules)
    return task, open_or_prepare(task, spec, job.source, Path(job.cache))


def _device(name: str) -> torch.device:
    if name == "cuda" and not torch.cuda.is_available():
        raise LraError("torch finds no GPU here; choose --device cpu or install a build for CUDA")
    return torch.device(name)


class _Phase:
    """Sends progress, not too often, and remembers where the worker stands."""

    def __init__(self, connection: Connection) -> None:
        self.name = "start"
        self._connection = connection
        self._sent_at = 0.0

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        news = progress.phase != self.name or progress.loss is not None
        if not news and now - self._sent_at < REPORT_EVERY:
            return
        self.name, self._sent_at = progress.phase, now
        # Nobody listens any more: the run is about to end this process.
        with suppress(OSError):
            self._connection.send_bytes(msgspec.msgpack.encode(progress))


def _training_report(report: Report) -> Callable[[training.Progress], None]:
    def tell(progress: training.Progress) -> None:
        loss = progress.point.train_loss if progress.point is not None else None
        report(Progress(phase="train", step=progress.step, steps=progress.steps, loss=loss))

    return tell


def _stop_on_sigterm() -> Callable[[], bool]:
    """From here on SIGTERM is a request; before, it ends the process, which has nothing to save."""
    asked = False

    def ask(*_: object) -> None:
        nonlocal asked
        asked = True

    signal.signal(signal.SIGTERM, ask)
    return lambda: asked


def _failed(error: BaseException, phase: str) -> Outcome:
    message = one_line(error) + ("" if isinstance(error, LraError) else _place(error))
    failure = Failure(type=type(error).__name__, message=message, phase=phase)
    if isinstance(error, UnsupportedError):
        return Outcome(status="unsupported", failure=failure)
    # The tail of the record: all that this process wrote to its standard error.
    traceback.print_exception(error, file=sys.stderr)
    if _is_out_of_memory(error):
        return Outcome(status="oom", failure=failure)
    if isinstance(error, SystemExit):
        message = f"the worker called sys.exit({error.code!r}) before it had a result"
        return Outcome(status="error", failure=msgspec.structs.replace(failure, message=message))
    return Outcome(status="error", failure=failure)


def _place(error: BaseException) -> str:
    """Where an exception was raised, by the file's bare name: ` (mine.py, line 12)`."""
    frames = traceback.extract_tb(error.__traceback__)
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""


def _is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    # torch has no class of its own for a CPU that is out of memory.
    return isinstance(error, RuntimeError) and "DefaultCPUAllocator" in str(error)


def _share(value: float) -> Metric:
    return Metric(value=value, unit="share", better="higher")


def _loss(value: float) -> Metric:
    finite = math.isfinite(value)
    return Metric(
        value=value if finite else None,
        unit="nat",
        better="lower",
        why_null=None if finite else f"it is {value}",
    )


def _finite(curve: tuple[CurvePoint, ...]) -> tuple[CurvePoint, ...]:
    """The points that JSON can hold."""
    return tuple(
        point
        for point in curve
        if math.isfinite(point.train_loss) and math.isfinite(point.validation_loss)
    )
