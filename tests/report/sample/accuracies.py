"""Trainings with their accuracies, and the shortcuts that they are compared with."""

from __future__ import annotations

from lra.core.cells import BaselineCell, QualityCell
from lra.core.protocol import DataSpec, Machine, ModelSpec, TrainSpec
from lra.core.records import CurvePoint, Metric, Record, Status

from .outcomes import failure, make_record
from .settings import HERE, MODEL, TRAINING, Named, answering, data


def quality(
    name: Named,
    task: str,
    accuracy: float | None = 0.5,
    *,
    status: Status = "ok",
    seed: int = 0,
    scale: str = "mini",
    machine: Machine = HERE,
    data_spec: DataSpec | None = None,
    model: ModelSpec = MODEL,
    training: TrainSpec = TRAINING,
    measure: int = 1,
    started: str = "2026-11-20T10:00:00Z",
    parameters: int | None = 70_000,
) -> Record:
    own, versions = answering(name)
    given = data_spec or data(task)
    cell = QualityCell(
        scale=scale,
        machine=machine,
        torch="2.13.0",
        threads=1,
        versions={
            "train": measure,
            f"data/{given.task}": 1,
            **({"data/shuffled": 1} if given.order == "shuffled" else {}),
            **versions,
        },
        mechanism=own,
        data=given,
        model=model,
        training=training,
        seed=seed,
    )
    if status != "ok":
        return make_record(cell, status, started, failure=failure(status), parameters=parameters)
    metrics = {
        "test_loss": Metric(value=0.7, unit="nat"),
        "training_seconds": Metric(value=11.25, unit="s"),
        "steps_per_second": Metric(value=26.5, unit="1/s", better="higher"),
    }
    if accuracy is not None:
        metrics["test_accuracy"] = Metric(value=accuracy, unit="share", better="higher")
        metrics["validation_accuracy"] = Metric(value=accuracy, unit="share", better="higher")
    curve = tuple(
        CurvePoint(
            step=step,
            seconds=step / 26.5,
            train_loss=0.7,
            validation_loss=0.7,
            validation_accuracy=(accuracy or 0.5) * (0.6 + 0.4 * step / 300),
            learning_rate=2e-3,
        )
        for step in (100, 200, 300)
    )
    return make_record(
        cell, "ok", started, metrics=metrics, curve=curve, parameters=parameters, best_step=300
    )


def baseline(
    task: str,
    *,
    majority: float = 0.5,
    bag: float = 0.52,
    scale: str = "mini",
    machine: Machine = HERE,
    data_spec: DataSpec | None = None,
    **rules: float,
) -> Record:
    given = data_spec or data(task)
    cell = BaselineCell(
        scale=scale,
        machine=machine,
        torch="2.13.0",
        threads=1,
        versions={"baseline": "b1", f"data/{given.task}": 1},
        data=given,
    )
    shares = {"majority": majority, "bag_of_tokens": bag}
    shares |= {name.replace("_", " "): value for name, value in rules.items()}
    metrics = {n: Metric(value=v, unit="share", better="higher") for n, v in shares.items()}
    return make_record(cell, "ok", "2026-11-20T09:00:00Z", metrics=metrics)
