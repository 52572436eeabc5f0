"""Trains a model around a mechanism on a task."""

from __future__ import annotations

import gc
import math
import os
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import torch

# Imported before the fork, or the first optimiser of every worker would pay for it.
import torch._dynamo
from msgspec.structs import replace

from attention_impls.contract import Position
from lra.core import catalogue
from lra.core.cards import TaskMetric
from lra.core.cells import QualityCell
from lra.core.records import CurvePoint, Failure, Metric
from lra.engine import gang
from lra.engine.jobs import Job, Outcome, Progress, Report
from lra.engine.tails import one_line
from lra.engine.work.data import load
from lra.engine.work.mechanism import device, load_mechanism
from lra.measure.attended import measure_attended
from lra.models.build import parameter_count
from lra.models.classifier import Classifier
from lra.training import outcome as training
from lra.training.decoding import decode_agreement
from lra.training.loop import Run, train
from lra.training.ranks import ALONE, Ranks, joined
from lra.training.setup import model_for
from lra.training.stacked import abreast, train_stacked, why_not_stacked


def run(cell: QualityCell, job: Job, report: Report) -> Outcome:
    """Return the score on the test set, and the curve that led there."""
    if job.devices > 1:
        return gang.run(job, report)
    return _trained(cell, job, report, device(cell.device), ALONE)


def as_rank(cell: QualityCell, job: Job, report: Report) -> Outcome:
    """Return the same from one of the processes that train together."""
    torch.set_num_threads(cell.threads)
    place = device(cell.device)
    if place.type == "cuda":
        place = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(place)
    with joined(place, timedelta(seconds=job.patience)) as ranks:
        return _trained(cell, job, report, place, ranks)


def _trained(
    cell: QualityCell, job: Job, report: Report, place: torch.device, ranks: Ranks
) -> Outcome:
    mechanism, config = load_mechanism(cell.mechanism, job.mechanism)
    position = catalogue.load(catalogue.find("position", cell.model.position))
    report(Progress(phase="data"))
    task, dataset = load(cell.data, job)
    report(Progress(phase="build"))
    pad_to_length = mechanism.card.capabilities.padding != "content"
    checkpoint = Path(job.checkpoint) if job.checkpoint else None
    stop = _Stop()

    def model(seed: int) -> Classifier:
        return model_for(
            dataset,
            cell.model,
            mechanism=mechanism,
            config=config,
            position=cast(type[Position], position),
            rules=cell.data.rules,
            seed=seed,
        )

    def begun(seed: int) -> Run:
        """The training of a seed, from where its checkpoint left it."""
        is_own = seed == cell.seed
        file = checkpoint
        if checkpoint is not None and not is_own:
            file = checkpoint.with_stem(replace(cell, seed=seed).id)
        return Run(
            model(seed),
            dataset,
            cell.training,
            seed=seed,
            rules=cell.data.rules,
            metric=cell.metric,
            device=place,
            pad_to_length=pad_to_length,
            checkpoint=file,
            report=_training_report(report) if is_own else None,
            stop=stop,
            ranks=ranks,
        )

    method: dict[str, Any] = {
        "device": place.type,
        "devices": ranks.count,
        "threads": torch.get_num_threads(),
        "compile": cell.training.execution,
        "continued": checkpoint is not None and checkpoint.is_file(),
    }
    parameters = parameter_count(model(cell.seed))
    report(Progress(phase="train", steps=cell.training.steps))
    stop.listen()
    try:
        run, trained = _carried_out(begun, cell.seed, job.beside, method)
    except training.Diverged as error:
        return Outcome(
            status="diverged",
            curve=_finite(error.curve),
            parameters=parameters,
            failure=Failure(type="Diverged", message=one_line(error), phase="train"),
            method=method,
        )
    metrics = _scores(trained, cell.metric)
    tested = cast(Classifier, run.model)
    if dataset.test.by_token and mechanism.card.capabilities.decode != "none":
        report(Progress(phase="decode"))
        with _noted(method, "decode"):
            agreement = decode_agreement(tested, dataset.test, place)
            metrics["decode_agreement"] = Metric.share(agreement)
    attended = None
    if mechanism.card.weights == "convex":
        report(Progress(phase="look"))
        with _noted(method, "look"):
            attended = measure_attended(
                tested,
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


def _carried_out(
    begun: Callable[[int], Run], seed: int, beside: Sequence[int], method: dict[str, Any]
) -> tuple[Run, training.Trained]:
    """Train a seed, and those beside it in the same steps where they stand where it does and their
    models can be stacked; `method` says how it was."""
    runs: list[Run] = []
    try:
        if beside:
            runs = abreast([begun(one) for one in (seed, *beside)])
        if len(runs) > 1:
            if why_not := why_not_stacked(runs):
                method["stacking_failed"] = why_not
            else:
                return runs[0], train_stacked(runs)
    except (training.Diverged, training.Interrupted):
        raise
    except Exception as error:
        # Another seed's checkpoint, memory for several, or a batch of a shape not tried.
        traceback.print_exc()
        method["stacking_failed"] = one_line(error)
    finally:
        method["stacked"] = runs[0].standing.stacked if runs else 1
    # Anew, for the draws that are its own. What failed is in circles, so memory waits for `gc`.
    runs.clear()
    gc.collect()
    run = begun(seed)
    method["stacked"] = run.standing.stacked
    return run, train(run)


@contextmanager
def _noted(method: dict[str, Any], phase: str) -> Iterator[None]:
    """Keep what goes wrong after a training from losing it: a word of it stands in the record, the
    traceback goes to standard error."""
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
        """From here on SIGTERM is a request; before, it ends the process, which has nothing to
        save."""
        signal.signal(signal.SIGTERM, self._ask)

    def _ask(self, *_: object) -> None:
        self._asked = True


def _scores(trained: training.Trained, metric: TaskMetric) -> dict[str, Metric]:
    """What the model reached, in the task's own unit."""
    loss = _loss(trained.test.loss)
    if metric == "bits_per_byte":
        bits = None if loss.value is None else loss.value / math.log(2)
        quoted = Metric(value=bits, unit="bit", better="lower", why_null=loss.why_null)
        return {"bits_per_byte": quoted, "test_loss": loss}
    return {
        "test_accuracy": Metric.share(trained.test.accuracy),
        "test_loss": loss,
        "validation_accuracy": Metric.share(trained.validation_accuracy),
    }


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
