"""Cells: one measurement each, fully resolved. A cell's hash is its record's name."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from lra.core.cards import TaskMetric
from lra.core.findings import Case
from lra.core.hashing import value_hash
from lra.core.protocol import (
    Above0,
    DataSpec,
    Frozen,
    Machine,
    Mechanism,
    ModelSpec,
    Positive,
    Track,
    TrainSpec,
)
from lra.core.versions import Versions

Mode = Literal["forward", "train", "decode"]
Level = Literal["attention", "layer", "model"]
Direction = Literal["bidirectional", "causal"]
Dtype = Literal["float32", "bfloat16", "float16"]
Execution = Literal["eager", "compiled"]
Device = Literal["cpu", "cuda"]


class _Cell(Frozen, frozen=True, dict=True, kw_only=True):
    machine: Machine
    torch: str
    """Version of torch."""
    threads: Positive
    """CPU threads the worker computes with."""
    versions: Versions
    """Versions of the features of our code that the cell uses, and hashes of sources without
    versions."""

    @cached_property
    def id(self) -> str:
        """Hash of the cell's canonical form."""
        return value_hash(self)


class _Measured(_Cell, frozen=True, kw_only=True):
    scale: str


class QualityCell(_Measured, frozen=True, tag="quality", kw_only=True):
    """Train a model around a mechanism on a task, choose by validation, test once."""

    mechanism: Mechanism
    data: DataSpec
    model: ModelSpec
    training: TrainSpec
    metric: TaskMetric = "accuracy"
    """Metric that the task is quoted by, and its best checkpoint chosen."""
    track: Track = "matched"
    seed: int = 0
    device: Device = "cpu"


class BaselineCell(_Measured, frozen=True, tag="baseline", kw_only=True):
    """Majority class, bag of tokens and the task's own rules of thumb: no model of ours."""

    data: DataSpec


class EfficiencyCell(_Measured, frozen=True, tag="efficiency", kw_only=True):
    """The cost of one call of a mechanism at one length."""

    mechanism: Mechanism
    length: Positive
    mode: Mode
    level: Level = "layer"
    batch: Positive = 1
    heads: Positive
    head_width: Positive
    dtype: Dtype = "float32"
    direction: Direction = "bidirectional"
    execution: Execution = "eager"
    """compiled: by torch.compile, with its defaults."""
    device: Device = "cpu"
    task: str = ""
    """Task whose model is timed at level `model`; empty at others."""
    model: ModelSpec | None = None
    replicate: int = 0
    seconds: float = 1.0
    """Time budget of the timing pass."""


class CeilingCell(_Cell, frozen=True, tag="ceiling", kw_only=True):
    """The best rates that the machine reaches: of a large matrix product and a large copy."""

    dtype: Dtype = "float32"
    device: Device = "cpu"


class ProfileCell(_Measured, frozen=True, tag="profile", kw_only=True):
    """The time of one training step by part, and the expected time of a whole training."""

    mechanism: Mechanism
    data: DataSpec
    model: ModelSpec
    training: TrainSpec
    device: Device = "cpu"
    seconds: float = 5.0
    """Time budget of the whole steps, ten at least; warm-up, parts and operators take some thirty
    more."""


class ErrorCell(_Measured, frozen=True, tag="error", kw_only=True):
    """The error of an approximation of softmax attention, on one input."""

    mechanism: Mechanism
    length: Positive
    heads: Positive
    head_width: Positive
    batch: Positive = 1
    direction: Direction = "bidirectional"
    input_scale: Above0 = 1.0
    """Queries and keys are N(0, 1) times this; values are N(0, 1)."""
    dtype: Dtype = "float32"
    device: Device = "cpu"
    seed: int = 0
    """Seed of the inputs, and of the mechanism's draws and parameters."""


class VerifyCell(_Cell, frozen=True, tag="verify", kw_only=True):
    """The claims of one mechanism, tried law by law."""

    mechanism: Mechanism
    form: Literal["short", "full"] = "short"
    laws: tuple[str, ...] = ()
    """Laws to try; () is all of the form."""
    case: Case | None = None
    """The only input to try, where one failure is looked at."""
    device: Device = "cpu"


class ShowCell(_Cell, frozen=True, tag="show", kw_only=True):
    """The positions that an untrained layer of one mechanism attends to, on one input."""

    mechanism: Mechanism
    length: Positive
    width: Positive
    """Width of the input."""
    heads: Positive
    head_width: Positive
    direction: Direction = "bidirectional"
    input: str = ""
    """Hash of the input's file; empty for seeded normal numbers."""


MeasuredCell = QualityCell | BaselineCell | EfficiencyCell | ErrorCell
Cell = MeasuredCell | ProfileCell | CeilingCell | VerifyCell | ShowCell
