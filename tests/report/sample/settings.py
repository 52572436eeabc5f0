"""Settings of sample cells: machines, data, model, training and mechanisms with their versions."""

from __future__ import annotations

from typing import Any

from lra.core.protocol import DataSpec, Machine, Mechanism, ModelSpec, Rows, TrainSpec
from lra.core.versions import Versions

HERE = Machine(processor="Example CPU 9000", cores=2)
THERE = Machine(processor="Other CPU 1", cores=8)
GPU = Machine(processor="Example GPU 80GB", cores=16, driver="580")

MODEL = ModelSpec(layers=2, width=64, qkv_width=64, heads=4, mlp_width=128)
TRAINING = TrainSpec(steps=300, batch=32, learning_rate=2e-3, warmup=100, evaluate_every=100)
LENGTHS = {"listops": 32, "text": 160, "retrieval": 128, "image": 144, "pathfinder": 64}


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
