"""Jobs of the toy mechanisms, small enough to run in a blink."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from lra.core.cells import BaselineCell, EfficiencyCell, QualityCell
from lra.core.protocol import DataSpec, Machine, Mechanism, ModelSpec, Rows, TrainSpec
from lra.core.records import Record
from lra.engine.jobs import Job
from lra.engine.process.pool import Pool

TOYS = Path(__file__).with_name("toys.py")
SMALL = """
[model]
layers = 1
width = 16
qkv_width = 16
heads = 2
mlp_width = 16
[training]
steps = 5
batch = 4
learning_rate = 1e-3
evaluate_every = 5
"""
"""Model and training of a scale for plans."""
MakePool = Callable[..., Pool]
"""A pool of one slot over a test's store, unless its terms say otherwise."""
Run = Callable[..., list[Record]]
"""The records of jobs in such a pool."""

_COMMON: dict[str, Any] = {
    "scale": "toy",
    "machine": Machine(processor="toy", cores=1),
    "torch": "0",
    "threads": 1,
    "versions": {},
}


def timing(toy: str, cache: Path, *, length: int = 32, mode: Any = "forward", **config: Any) -> Job:
    """An efficiency job of a toy."""
    cell = EfficiencyCell(
        **_COMMON,
        mechanism=Mechanism(name=toy, config=config),
        length=length,
        mode=mode,
        heads=2,
        head_width=8,
        seconds=0.02,
    )
    return Job(cell=cell, mechanism=f"{TOYS}:{toy}", cache=str(cache))


def training(toy: str, cache: Path, *, steps: int = 20, seed: int = 0, **changes: Any) -> Job:
    """A quality job of a toy on a little ListOps."""
    cell = QualityCell(
        **_COMMON,
        mechanism=Mechanism(name=toy),
        data=_listops(),
        model=ModelSpec(layers=1, width=16, qkv_width=16, heads=2, mlp_width=16),
        training=TrainSpec(
            **{
                "steps": steps,
                "batch": 8,
                "learning_rate": 1e-2,
                "evaluate_every": steps,
                **changes,
            }
        ),
        seed=seed,
    )
    return Job(cell=cell, mechanism=f"{TOYS}:{toy}", cache=str(cache))


def shared(
    toy: str, cache: Path, *, note: Path | None = None, patience: float = 60.0, **changes: Any
) -> Job:
    """The same training by two processes; `note` is where its mechanism leaves notes."""
    job = training(toy, cache, **changes)
    config = {} if note is None else {"note": str(note)}
    cell = msgspec.structs.replace(job.cell, mechanism=Mechanism(name=toy, config=config))
    return msgspec.structs.replace(job, cell=cell, devices=2, patience=patience)


def recalling(mechanism: str, cache: Path, **config: Any) -> Job:
    """A quality job of a shipped mechanism on a little Recall, which asks for tokens."""
    job = training("Toy", cache, steps=2)
    cell = msgspec.structs.replace(
        job.cell,
        mechanism=Mechanism(name=mechanism, config=config),
        data=DataSpec(
            task="recall",
            length=24,
            rows=Rows(train=64, validation=16, test=16),
            parameters={"pairs": 4},
        ),
        model=job.cell.model.by_token(),
    )
    return msgspec.structs.replace(job, cell=cell, mechanism="")


def baselines(cache: Path, source: Path | None = None) -> Job:
    """A baseline job on the data of `training`, or on ListOps from files."""
    data = _listops()
    if source is not None:
        data = msgspec.structs.replace(data, source="file", hash="toy-files")
    given = None if source is None else str(source)
    return Job(cell=BaselineCell(**_COMMON, data=data), source=given, cache=str(cache))


def _listops() -> DataSpec:
    return DataSpec(
        task="listops",
        length=32,
        rows=Rows(train=64, validation=16, test=16),
        parameters={"max_depth": 3, "max_args": 3, "min_length": 6, "max_length": 30},
    )
