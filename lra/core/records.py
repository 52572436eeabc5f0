"""Records: the outcome of a cell, one JSON file each; tables and plots need nothing else."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from lra.core.cells import Cell
from lra.core.findings import Finding
from lra.core.migrate import from_schema_1
from lra.core.pattern import Pattern
from lra.core.protocol import Fraction, Rows
from lra.core.trained_attention import TrainedAttention

SCHEMA = 2

Status = Literal["ok", "oom", "timeout", "crash", "diverged", "error", "unsupported", "skipped"]
FAILED: frozenset[Status] = frozenset({"oom", "timeout", "crash", "diverged", "error"})
"""Outcomes that make a run exit with 4; unsupported and skipped do not."""

_Natural = Annotated[int, msgspec.Meta(ge=0)]
_NotNegative = Annotated[float, msgspec.Meta(ge=0.0)]


class _Value(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Part of a record. Unknown fields are allowed, so that records of a later version of the same
    schema still load. Records have no reference cycles, so the garbage collector need not track
    them: it would walk them again and again while a store is read."""


class Metric(_Value, frozen=True, kw_only=True):
    """One measured quantity: seconds, bytes, joules, or a share of 1."""

    value: float | None
    """Figure to quote: the median where there are samples; None where it was not measured."""
    unit: Literal["s", "B", "J", "W", "share", "nat", "bit", "count", "1/s", "B/s", "ratio"]
    better: Literal["lower", "higher", "neither"] = "lower"
    why_null: str | None = None
    samples: tuple[_NotNegative, ...] = ()
    """Every raw sample, in the order taken."""
    q1: _NotNegative | None = None
    q3: _NotNegative | None = None
    minimum: _NotNegative | None = None

    @classmethod
    def share(cls, value: float) -> Metric:
        """Return a share of 1; more is better."""
        return cls(value=value, unit="share", better="higher")


class CurvePoint(_Value, frozen=True, kw_only=True):
    """One validation during training."""

    step: _Natural
    seconds: _NotNegative
    """Training time so far, validation left out."""
    train_loss: float
    """Mean over the steps since the last point, in nat."""
    validation_loss: float
    validation_accuracy: Fraction
    learning_rate: _NotNegative


class Failure(_Value, frozen=True, kw_only=True):
    """Reason why a cell is not ok."""

    type: str
    """Exception class, signal name, or the reason in a word."""
    message: str
    """One line for a person."""
    phase: str = ""
    tail: str = ""
    """End of the worker's standard error, stripped of paths."""


class Provenance(_Value, frozen=True, kw_only=True):
    """Code and machine of a record."""

    git_commit: str | None = None
    git_dirty: bool | None = None
    version: str = ""
    libraries: dict[str, str] = {}
    host: dict[str, Any] = {}
    """Processor, cores allowed, memory, GPU, driver. Never a host name, path or user."""
    was: dict[str, str] = {}
    """Former identity of a record from an earlier schema: its id, and the hashes in its cell."""


class Record(_Value, frozen=True, kw_only=True, omit_defaults=False):
    """Outcome of a finished cell."""

    schema: int = SCHEMA
    id: str
    """The cell's hash."""
    cell: Cell
    status: Status
    started_at: str
    """Start in UTC, ISO 8601, to the second."""
    seconds: _NotNegative
    """Wall time of the cell, process start included."""
    metrics: dict[str, Metric] = {}
    curve: tuple[CurvePoint, ...] = ()
    parameters: _Natural | None = None
    """Trainable parameters of the model or layer."""
    best_step: _Natural | None = None
    rows: Rows | None = None
    """Examples that each split really had, at most as many as the cell asks for."""
    findings: tuple[Finding, ...] = ()
    """Findings of a conformance check, one for each law."""
    pattern: Pattern | None = None
    """Pattern of a picture; None for other cells."""
    attended: TrainedAttention | None = None
    """Attention of a trained model; None where it was not measured."""
    failure: Failure | None = None
    method: dict[str, Any] = {}
    """Method of measurement: timer, warm-up, repetitions, timed region, threads."""
    provenance: Provenance = Provenance()


_RECORD = msgspec.json.Decoder(Record)


def encode(record: Record) -> bytes:
    """Return the record as indented JSON with sorted keys and a final newline."""
    compact = msgspec.json.encode(record, order="sorted")
    return msgspec.json.format(compact, indent=1) + b"\n"


def decode(data: bytes) -> Record:
    """Read a record back, one of schema 1 too; raises `msgspec.ValidationError` where it does not
    fit its schema."""
    try:
        return _RECORD.decode(data)
    except msgspec.ValidationError:
        plain = msgspec.json.decode(data)
        if not isinstance(plain, dict) or plain.get("schema") != 1:
            raise
    try:
        upgraded = from_schema_1(plain)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise msgspec.ValidationError(f"it lacks a field of schema 1: {error}") from error
    return msgspec.convert(upgraded, Record)
