"""Training and test of a model around a mechanism on a task."""

from __future__ import annotations

import math
import os
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch

# Imported before the fork, or the first optimiser of every worker would pay for it.
import torch._dynamo

from lra.core.cards import TaskMetric
from lra.core.cells import QualityCell
from lra.core.dataset import Split
from lra.core.errors import UnsupportedError
from lra.core.records import CurvePoint, Failure, Metric
from lra.engine.jobs import Job, Outcome, Progress, Report
from lra.engine.process import torchrun
from lra.engine.process.error_text import one_line
from lra.engine.work.data import load
from lra.engine.work.mechanism import device, load_network
from lra.measure.cross_maps import measure_cross_maps
from lra.measure.trained_attention import measure_trained_attention
from lra.models.build import parameter_count
from lra.models.model import Model
from lra.models.sequence_model import SequenceModel
from lra.training import outcome as training
from lra.training.decoding import decode_agreement
from lra.training.loop import Run, train
from lra.training.ranks import ALONE, Ranks, joined
from lra.training.setup import Training, is_convex, model_for
from lra.training.written import write_answers


def run(cell: QualityCell, job: Job, report: Report) -> Outcome:
    """Return the score on the test set, and the curve that led there."""
    if job.devices > 1:
        return torchrun.run(job, report)
    return _train(cell, job, report, device(cell.device), ALONE)


def as_rank(cell: QualityCell, job: Job, report: Report) -> Outcome:
    """Return the same outcome from one of the processes that train together."""
    torch.set_num_threads(cell.threads)
    place = device(cell.device)
    if place.type == "cuda":
        place = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(place)
    with joined(place, timedelta(seconds=job.patience)) as ranks:
        return _train(cell, job, report, place, ranks)


def _train(
    cell: QualityCell, job: Job, report: Report, place: torch.device, ranks: Ranks
) -> Outcome:
    network = load_network(cell.model, cell.mechanism, job.mechanism)
    report(Progress(phase="data"))
    task, dataset = load(cell.data, job)
    report(Progress(phase="build"))
    pad_to_length = network.capabilities.padding != "content"
    checkpoint = Path(job.checkpoint) if job.checkpoint else None
    stop = _Stop()

    model = model_for(
        dataset,
        cell.model,
        network=network,
        rules=cell.data.rules,
        seed=cell.seed,
        picture_width=task.card.picture_width(cell.data.length),
        answers_first=task.card.answers_first,
    )
    method: dict[str, Any] = {
        "device": place.type,
        "devices": ranks.count,
        "threads": torch.get_num_threads(),
        "compile": cell.training.execution,
        "continued": checkpoint is not None and checkpoint.is_file(),
    }
    parameters = parameter_count(model)
    asked = Training(
        dataset,
        cell.training,
        seed=cell.seed,
        rules=cell.data.rules,
        metric=cell.metric,
        pad_to_length=pad_to_length,
    )
    report(Progress(phase="train", steps=cell.training.steps))
    stop.listen()
    try:
        trained = train(
            Run(
                model,
                asked,
                device=place,
                checkpoint=checkpoint,
                report=_training_report(report),
                stop=stop,
                ranks=ranks,
            )
        )
    except training.Diverged as error:
        return Outcome(
            status="diverged",
            curve=_finite(error.curve),
            parameters=parameters,
            failure=Failure(type="Diverged", message=one_line(error), phase="train"),
            method=method,
        )
    metrics = _scores(trained, cell.metric)
    if isinstance(model, Model) and dataset.test.by_token and network.capabilities.decode != "none":
        report(Progress(phase="decode"))
        with _noting_errors(method, "decode"):
            agreement = decode_agreement(model, dataset.test, place)
            metrics["decode_agreement"] = Metric.share(agreement)
    if isinstance(model, SequenceModel) and task.card.answers_first is not None:
        report(Progress(phase="decode"))
        with _noting_errors(method, "decode"):
            metrics |= _written(model, dataset.test, place, asked, task.card.answers_first)
    attended = None
    if isinstance(model, SequenceModel) and is_convex([network.slots.cross]):
        report(Progress(phase="look"))
        with _noting_errors(method, "look"):
            attended = measure_cross_maps(
                model, dataset.validation, place, rules=asked.rules, length=asked.length
            )
    elif isinstance(model, Model) and is_convex(network.slots):
        report(Progress(phase="look"))
        with _noting_errors(method, "look"):
            attended = measure_trained_attention(
                model,
                dataset,
                place,
                rules=cell.data.rules,
                pad_to_length=pad_to_length,
                pictures=task.card.picture,
            )
    return Outcome(
        status="ok",
        metrics=metrics
        | {
            "training_seconds": Metric(value=trained.seconds, unit="s", better="lower"),
            "steps_per_second": Metric(value=trained.steps_per_second, unit="1/s", better="higher"),
        },
        curve=trained.curve,
        parameters=parameters,
        best_step=trained.best_step,
        rows=dataset.rows,
        attended=attended,
        method=method,
    )


@contextmanager
def _noting_errors(method: dict[str, Any], phase: str) -> Iterator[None]:
    """Keep an error after a training from losing it: the record gets one line, standard error the
    traceback."""
    try:
        yield
    except Exception as error:
        traceback.print_exc()
        method[f"{phase}_failed"] = one_line(error)


def _training_report(report: Report) -> Callable[[training.Progress], None]:
    def tell(progress: training.Progress) -> None:
        loss = progress.point.train_loss if progress.point is not None else None
        report(Progress(phase="train", step=progress.step, steps=progress.steps, loss=loss))

    return tell


class _Stop:
    """Whether SIGTERM has asked for an end."""

    def __init__(self) -> None:
        self._asked = False

    def __call__(self) -> bool:
        return self._asked

    def listen(self) -> None:
        """Make SIGTERM a request from here on; before, it ends the process, which has nothing to
        save."""
        signal.signal(signal.SIGTERM, self._ask)

    def _ask(self, *_: object) -> None:
        self._asked = True


def _scores(trained: training.Trained, metric: TaskMetric) -> dict[str, Metric]:
    """Scores of the model, in the task's own unit."""
    loss = _loss(trained.test.loss)
    if metric == "nat":
        return {"nat": loss, "test_loss": loss}
    if metric == "bits_per_byte":
        bits = None if loss.value is None else loss.value / math.log(2)
        quoted = Metric(value=bits, unit="bit", better="lower", why_null=loss.why_null)
        return {"bits_per_byte": quoted, "test_loss": loss}
    return {
        "test_accuracy": Metric.share(trained.test.accuracy),
        "test_loss": loss,
        "validation_accuracy": Metric.share(trained.validation_accuracy),
    }


def _written(
    model: SequenceModel, split: Split, place: torch.device, asked: Training, first: int
) -> dict[str, Metric]:
    """Scores of answers that the model writes by itself; a reason where its mechanisms cannot."""
    names = ("exact_match", "rouge_1", "rouge_2", "rouge_l")
    try:
        found = write_answers(
            model, split, place, rules=asked.rules, length=asked.length, first=first
        )
    except UnsupportedError as error:
        lacking = Metric(value=None, unit="share", better="higher", why_null=str(error))
        return dict.fromkeys(names, lacking)
    return dict(zip(names, map(Metric.share, (found.exact, *found.rouge)), strict=True))


def _loss(value: float) -> Metric:
    finite = math.isfinite(value)
    return Metric(
        value=value if finite else None,
        unit="nat",
        better="lower",
        why_null=None if finite else f"it is {value}",
    )


def _finite(curve: tuple[CurvePoint, ...]) -> tuple[CurvePoint, ...]:
    """Points of a curve that JSON can hold."""
    return tuple(
        point
        for point in curve
        if math.isfinite(point.train_loss) and math.isfinite(point.validation_loss)
    )
