"""Records built in code: small, fixed, and with every kind of ending."""

from __future__ import annotations

import math
from typing import Any, Literal

import msgspec
import numpy as np

from lra.core.cells import (
    BaselineCell,
    CeilingCell,
    EfficiencyCell,
    ErrorCell,
    ProfileCell,
    QualityCell,
    ShowCell,
)
from lra.core.metric_kinds import MetricKind, metric_kinds
from lra.core.pattern import pack
from lra.core.profile_metrics import PARTS, part_metric
from lra.core.protocol import DataSpec, Machine, Mechanism, ModelSpec, Rows, TrainSpec
from lra.core.records import CurvePoint, Failure, Metric, Provenance, Record, Status
from lra.core.versions import Versions

HERE = Machine(processor="Example CPU 9000", cores=2)
THERE = Machine(processor="Other CPU 1", cores=8)
GPU = Machine(processor="Example GPU 80GB", cores=16, driver="580")

MODEL = ModelSpec(layers=2, width=64, qkv_width=64, heads=4, mlp_width=128)
TRAINING = TrainSpec(steps=300, batch=32, learning_rate=2e-3, warmup=100, evaluate_every=100)
LENGTHS = {"listops": 32, "text": 160, "retrieval": 128, "image": 144, "pathfinder": 64}
PROVENANCE = Provenance(
    git_commit="0123456789abcdef0123",
    git_dirty=False,
    version="0.1.0",
    libraries={"numpy": "2.4.6"},
)


def data(task: str, **changes: Any) -> DataSpec:
    fields = {
        "task": task,
        "length": LENGTHS.get(task, 64),
        "rows": Rows(train=20000, validation=1000, test=2000),
    }
    return DataSpec(**{**fields, **changes})


def mechanism(name: str, **config: Any) -> Mechanism:
    return Mechanism(name=name, config=config)


Named = str | Mechanism | tuple[Mechanism, int]
"""A mechanism, by its name or whole; with its version where that is not 1."""


def edited(name: str, version: int = 2, **config: Any) -> tuple[Mechanism, int]:
    """A mechanism of another version."""
    return mechanism(name, **config), version


def answering(name: Named, *parts: str) -> tuple[Mechanism, Versions]:
    """The mechanism, and the versions of it and of parts of it."""
    own, version = name if isinstance(name, tuple) else (name, 1)
    own = mechanism(own) if isinstance(own, str) else own
    feature = f"mechanism/{own.name}"
    return own, dict.fromkeys((feature, *(f"{feature}/{part}" for part in parts)), version)


def _record(cell: Any, status: Status, started: str, **fields: Any) -> Record:
    return Record(
        id=cell.id,
        cell=cell,
        status=status,
        started_at=started,
        seconds=12.5,
        provenance=PROVENANCE,
        **fields,
    )


def failure(status: Status) -> Failure | None:
    reasons: dict[Status, Failure] = {
        "oom": Failure(
            type="MemoryError", message="asked for 4.3 GB, 2 GB allowed", phase="timing"
        ),
        "timeout": Failure(type="timeout", message="no end after 60 s", phase="training"),
        "crash": Failure(type="SIGSEGV", message="the worker died", phase="training"),
        "diverged": Failure(type="diverged", message="loss is nan at step 120", phase="training"),
        "error": Failure(type="ValueError", message="bad | value", phase="set-up"),
        "unsupported": Failure(type="UnsupportedError", message="longer than its maximum length"),
        "skipped": Failure(type="Pruned", message="oom at 1024"),
    }
    return reasons.get(status)


def sampled(q1: float, value: float, q3: float, **other: Any) -> Metric:
    """A metric with samples of these quartiles."""
    samples = (2 * q1 - value, value, 2 * q3 - value)
    spread = {"samples": samples, "q1": q1, "q3": q3, "minimum": samples[0]}
    return Metric(value=value, **{"unit": "s", **spread, **other})


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
        return _record(cell, status, started, failure=failure(status), parameters=parameters)
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
    return _record(
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
    return _record(cell, "ok", "2026-11-20T09:00:00Z", metrics=metrics)


def efficiency(
    name: Named,
    length: int,
    mode: str = "forward",
    seconds: float | None = 0.01,
    memory: float | None = 50e6,
    *,
    status: Status = "ok",
    machine: Machine = HERE,
    replicate: int = 0,
    width: float = 0.02,
    started: str = "2026-11-20T11:00:00Z",
    measure: int = 1,
    declared: tuple[str, str] | None = None,
    **fields: Any,
) -> Record:
    """`declared` are growths of time and memory, where the record says them."""
    own, versions = answering(name, "cost")
    timing = {"time": measure, **({} if mode == "forward" else {f"time/{mode}": 1})}
    cell = EfficiencyCell(
        machine=machine,
        versions={**timing, **versions},
        mechanism=own,
        length=length,
        mode=mode,
        replicate=replicate,
        **{
            "torch": "2.13.0",
            "threads": 2,
            "scale": "mini",
            "heads": 4,
            "head_width": 64,
            "device": "cuda" if machine.driver else "cpu",
            **fields,
        },
    )
    if status != "ok":
        return _record(cell, status, started, failure=failure(status))
    gpu = cell.device == "cuda"
    peak, other = "peak_allocated_bytes", "peak_resident_bytes"
    metrics = {
        "control_before": sampled(1.0e-3, 1.0e-3, 1.0e-3),
        "control_after": sampled(1.04e-3, 1.04e-3, 1.04e-3),
        peak if gpu else other: Metric(
            value=memory, unit="B", why_null=None if memory else "no counter"
        ),
        other if gpu else peak: Metric(
            value=None, unit="B", why_null="no CPU" if gpu else "no GPU"
        ),
    }
    if seconds is not None:
        low, high = seconds * (1 - width / 2), seconds * (1 + width / 2)
        metrics["latency"] = sampled(low, seconds, high)
    method: dict[str, Any] = {"timer": "perf_counter_ns", "warm_up": 3}
    if declared is not None:
        method["declared_time"], method["declared_memory"] = declared
    return _record(cell, "ok", started, metrics=metrics, method=method)


def profile(
    name: Named,
    task: str,
    *,
    seconds: float = 0.02,
    status: Status = "ok",
    kernels: float | None = None,
    started: str = "2026-11-20T11:15:00Z",
    measure: int = 1,
    **fields: Any,
) -> Record:
    """Profile of a step of a billion operations; its backward pass takes half of its parts."""
    own, versions = answering(name, "cost")
    cell = ProfileCell(
        **{
            "scale": "mini",
            "machine": HERE,
            "torch": "2.13.0",
            "threads": 2,
            "versions": {"train": 1, "profile": measure, f"data/{task}": 1, **versions},
            "mechanism": own,
            "data": data(task),
            "model": MODEL,
            "training": TRAINING,
            **fields,
        }
    )
    if status != "ok":
        return _record(cell, status, started, failure=failure(status))
    shares = (0.01, 0.02, 0.07, 0.25, 0.5, 0.02, 0.12, 0.01)
    metrics = {
        "step_seconds": sampled(seconds, seconds, seconds),
        "steps_per_second": sampled(
            0.98 / seconds, 1 / seconds, 1.02 / seconds, unit="1/s", better="higher"
        ),
        "row_seconds": Metric(value=1e-3, unit="s"),
        "operations": Metric(value=1e9, unit="count"),
        "padding": Metric(value=0.034, unit="share"),
        "operators_seconds": Metric(value=0.016, unit="s"),
        "operator addmm": Metric(value=0.008, unit="s"),
        "operator softmax": Metric(value=0.004, unit="s"),
    }
    parts = zip(PARTS, shares, strict=True)
    metrics |= {part_metric(part): Metric(value=x * seconds, unit="s") for part, x in parts}
    if kernels is not None:
        metrics["kernels"] = Metric(value=kernels, unit="count")
    return _record(cell, "ok", started, metrics=metrics)


def ceiling(
    product: float = 1e11,
    copy: float = 1e10,
    *,
    machine: Machine = HERE,
    started: str = "2026-11-20T11:00:00Z",
    **fields: Any,
) -> Record:
    cell = CeilingCell(
        machine=machine, torch="2.13.0", threads=2, versions={"ceiling": "c1"}, **fields
    )
    metrics = {
        "product_rate": Metric(value=product, unit="1/s", better="higher"),
        "copy_rate": Metric(value=copy, unit="B/s", better="higher"),
    }
    return _record(cell, "ok", started, metrics=metrics)


def with_metrics(record: Record, **values: float) -> Record:
    """The record with further or other figures, as its kind of cell makes them."""
    more = {}
    for name, value in values.items():
        known = metric_kinds(record.cell).get(name, MetricKind("count"))
        sampled = {"samples": (value,), "minimum": value, "q1": value, "q3": value}
        how = sampled if known.sampled and not math.isnan(value) else {}
        more[name] = Metric(value=value, unit=known.unit, better=known.better, **how)  # type: ignore[arg-type]
    return msgspec.structs.replace(record, metrics={**record.metrics, **more})


def error(
    name: Named,
    length: int,
    output: float | None = 0.1,
    *,
    status: Status = "ok",
    rate: float | None = None,
    own_keys: bool = False,
    machine: Machine = HERE,
    torch: str = "2.13.0",
    started: str = "2026-11-20T11:30:00Z",
    measure: str = "x1",
    **fields: Any,
) -> Record:
    """Errors whose gradients are off twice, three and four times as much as the output."""
    own, versions = answering(name)
    cell = ErrorCell(
        scale="mini",
        machine=machine,
        torch=torch,
        threads=1,
        versions={"error": measure, **versions},
        mechanism=own,
        length=length,
        **{"heads": 2, "head_width": 32, **fields},
    )
    if status != "ok":
        return _record(cell, status, started, failure=failure(status))
    names = ("output_error", "gradient_error_q", "gradient_error_k", "gradient_error_v")
    metrics = {
        metric: Metric(
            value=None if output is None else times * output,
            unit="ratio",
            why_null="it is nan" if output is None else None,
        )
        for times, metric in enumerate(names, start=1)
    }
    method: dict[str, Any] = {"exact_keys": "of its own" if own_keys else "as given"}
    if rate is not None:
        method |= {"predicted_rate": rate, "predicted_budget": ["features"]}
    return _record(cell, "ok", started, metrics=metrics, method=method)


def shown(
    name: Named,
    length: int = 16,
    *,
    kind: Literal["weights", "dependence"] = "weights",
    signed: bool = False,
    heads: int = 2,
    alike: bool = True,
    status: Status = "ok",
    started: str = "2026-11-20T12:00:00Z",
    measure: str = "p1",
    **fields: Any,
) -> Record:
    """A picture of a band, of which the second head reads less where heads are not alike."""
    own, versions = answering(name)
    cell = ShowCell(
        machine=HERE,
        torch="2.13.0",
        threads=1,
        versions={"show": measure, **versions},
        mechanism=own,
        length=length,
        width=8 * heads,
        heads=heads,
        head_width=8,
        **fields,
    )
    if status != "ok":
        return _record(cell, status, started, failure=failure(status))
    drawn = 1 if kind == "dependence" else heads
    distance = np.abs(np.subtract.outer(np.arange(length), np.arange(length)))
    support = np.stack([distance <= (2 if alike else 2 - h % 2) for h in range(drawn)])
    values = support / (1.0 + distance) * (np.where(distance % 2, -1, 1) if signed else 1)
    pattern = pack(support, values, kind, measured=kind == "dependence")
    return _record(cell, "ok", started, pattern=pattern)


def store() -> tuple[list[Record], list[Record]]:
    """A run and its reference, with every kind of row and ending that a report must show."""
    shares = {"listops": 0.44, "text": 0.783, "retrieval": 0.93, "image": 0.86}
    run = [quality("performer", task, share) for task, share in shares.items()]
    run.append(quality("performer", "pathfinder", status="timeout"))
    run += [quality("identity", task, 0.2) for task in LENGTHS]
    seconds = {"performer": 3e-3, "sdpa": 2e-3, "identity": 4e-4}
    growths = {"performer": ("O((n + m) r d)", "O(n + m + r d)"), "sdpa": ("O(n m d)", "O(n)")}
    for length in (512, 1024, 2048):
        for name, second in seconds.items():
            power = 2 if name == "sdpa" else 1
            time, room = second * (length / 512) ** power, 14e6 * length / 512
            said = growths.get(name)
            run.append(efficiency(name, length, "forward", time, room, declared=said))
            gone = name == "sdpa" and length == 2048
            status: Status = "oom" if gone else "ok"
            run.append(
                efficiency(name, length, "train", 3 * time, 3 * room, status=status, declared=said)
            )
    run.append(shown("performer"))
    reference = [baseline(t, machine=THERE) for t in LENGTHS if t != "pathfinder"]
    reference.append(baseline("pathfinder", machine=THERE, marker_distance=0.685))
    for name, gain in (("sdpa", 0.05), ("linear", -0.1)):
        whole = {**shares, "pathfinder": 0.8}
        reference += [quality(name, t, s + gain, machine=THERE) for t, s in whole.items()]
    for name, second in {**seconds, "linear": 1e-3}.items():
        reference += [
            efficiency(name, length, "train", second, 1e7, machine=THERE) for length in (512, 1024)
        ]
    return run, reference
