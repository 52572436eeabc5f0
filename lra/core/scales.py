"""Scales and suites: protocols and selections of cells, read from TOML without a line of code.

A scale (`lra/scales/*.toml`) says how each task is trained; a suite (`lra/suites/*.toml`) says
which cells a run consists of, each block naming a scale. Either may be a user's own file.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from lra.core.catalogue import EXACT, NO_MIXING
from lra.core.cells import Device, Direction, Dtype, Execution, Level, Mode
from lra.core.errors import UsageError, ensure_readable, unknown_name
from lra.core.paths import path_kind
from lra.core.protocol import (
    Above0,
    Frozen,
    ModelSpec,
    Order,
    Positive,
    Repeats,
    Rows,
    Rules,
    SlotName,
    TrainSpec,
)
from lra.core.validation import toml_path, unknown_key, why_invalid

_FOLDER = Path(__file__).resolve().parents[1]
_DEEPEST = 20
"""Bound of the depth of nested tables: more than any scale or suite has."""
_LARGEST = 10**100
"""Bound of whole numbers: prints those below, so that an error can name them."""
_Value = TypeVar("_Value", bound=msgspec.Struct)
_Item = TypeVar("_Item")
_Block = TypeVar("_Block", "QualityBlock", "EfficiencyBlock", "ErrorBlock")

Axis = Annotated[tuple[_Item, ...], msgspec.Meta(min_length=1)]
"""Values of an axis that cells differ in: at least one."""


class TaskScale(Frozen, frozen=True, kw_only=True):
    """One task at one scale."""

    length: Positive
    rows: Rows
    parameters: dict[str, Any] = {}
    """Parameters of the task's generator; others take the task's default."""
    model: dict[str, Any] = {}
    """Overrides of the scale's [model]."""
    training: dict[str, Any] = {}
    """Overrides of the scale's [training]."""
    lra2021: dict[str, dict[str, Any]] = {}
    """Overrides of the scale's [lra2021], key by key."""
    preset: str | None = None
    """Published model whose form and positions the network has; None is the arena's own."""
    slots: dict[SlotName, str] = {}
    """Mechanisms of an encoder-decoder by slot; in those that are not named stands the one that is
    measured."""


class Scale(Frozen, frozen=True, kw_only=True):
    """A protocol: model, lengths, rows, steps and schedule of every task it covers."""

    name: str
    title: str
    rules: Rules = "fixed"
    model: dict[str, Any] = {}
    training: dict[str, Any] = {}
    rates: tuple[Above0, ...] = ()
    """Learning rates of the tuned track, as multiples of the task's own."""
    mechanisms: dict[str, dict[str, Any]] = {}
    """Hyper-parameters that fit the scale's lengths, where a paper's default does not: a window of
    512 in a sequence of 64 is no window."""
    lra2021: dict[str, dict[str, Any]] = {}
    """Hyper-parameters under lra2021 rules: each mechanism as in the original's code."""
    tasks: dict[str, TaskScale]
    default: TaskScale | None = None
    """Settings of a task that is not named, such as somebody's own; None refuses it."""

    def task(self, name: str) -> TaskScale:
        """Return the settings of a task; raises an error for a task that the scale does not
        cover."""
        found = self.tasks.get(name, self.default)
        if found is None:
            raise UsageError(
                f"scale '{self.name}' has no settings for the task '{name}'; "
                f"it covers {', '.join(sorted(self.tasks)) or 'none'}"
            )
        return found

    def settings(self, mechanism: str, rules: Rules, task: str) -> dict[str, Any]:
        """Return the hyper-parameters that the scale chooses for a mechanism on a task."""
        chosen = self.mechanisms.get(mechanism, {})
        if rules != "lra2021":
            return chosen
        of_task = self.task(task).lra2021
        return chosen | self.lra2021.get(mechanism, {}) | of_task.get(mechanism, {})

    def model_spec(self, task: str) -> ModelSpec:
        """Return the network for a task, overrides applied."""
        where = f"scale '{self.name}', model of task '{task}'"
        return convert({**self.model, **self.task(task).model}, ModelSpec, where)

    def train_spec(self, task: str) -> TrainSpec:
        """Return the training of a task, overrides applied."""
        where = f"scale '{self.name}', training of task '{task}'"
        return convert({**self.training, **self.task(task).training}, TrainSpec, where)


class QualityBlock(Frozen, frozen=True, kw_only=True):
    """Train and test on tasks of a scale."""

    scale: str
    tasks: tuple[str, ...]
    seeds: Repeats = 1
    threads: Positive = 1
    """CPU threads of each worker; as many workers run side by side as the cores allow."""
    order: Order = "given"
    only: tuple[str, ...] = ()
    """Mechanisms that the block is limited to; () is all."""
    preset: str | None = None
    """Published model whose form replaces that of the scale's tasks; None keeps it."""
    slots: dict[SlotName, str] = {}
    """Slots that replace those of the scale's tasks; {} keeps them."""


class EfficiencyBlock(Frozen, frozen=True, kw_only=True):
    """Measure time and memory: every combination of the axes is a cell."""

    scale: str
    """Scale that names the protocol in the record and defines the model; a layer's sizes stand in
    this block."""
    device: Device | None = None
    """The only device that the block is for; None is any."""
    lengths: Axis[Positive]
    modes: Axis[Mode]
    levels: Axis[Level] = ("layer",)
    directions: Axis[Direction] | None = None
    """Directions; None is bidirectional, but causal for decoding."""
    batches: Axis[Positive] = (1,)
    tokens: Positive | None = None
    """Positions in each call, made up of as many examples as that takes; replaces the batches."""
    heads: Axis[Positive]
    head_widths: Axis[Positive]
    dtypes: Axis[Dtype] = ("float32",)
    executions: Axis[Execution] = ("eager",)
    """Ways of execution; decoding is eager, whatever is asked for."""
    task: str = "text"
    """Task whose model is timed at level `model`, with the sizes that the scale gives it."""
    only: tuple[str, ...] = ()
    """Mechanisms that the block is limited to; () is all."""
    beside: tuple[str, ...] = (NO_MIXING, EXACT)
    """Reference mechanisms measured in the same run: the floor, and exact attention."""
    ceilings: bool = False
    """Whether to measure the machine's best rates, too."""
    replicates: Repeats = 1
    """Processes for each cell, one round over all cells after another."""
    seconds: Above0 = 1.0
    """Time budget of each timing pass."""
    one_process: bool = False
    """Whether one process measures all cells of a mechanism and replicate, in turn, until one
    fails: for a GPU, where a new process takes longer than most cells."""


class Pair(Frozen, frozen=True, kw_only=True):
    """A mechanism of ours and a public implementation of it, set to do the same work."""

    ours: str
    theirs: str
    """Peer, as `peer:NAME`, whose counterpart is ours."""
    settings: dict[str, Any] = {}
    """Settings of ours that replace its defaults."""
    their_settings: dict[str, Any] = {}
    """Settings of theirs that replace those of its file in `lra/peers`."""


class ErrorBlock(Frozen, frozen=True, kw_only=True):
    """Measure errors against softmax attention: every combination of the axes is a cell, for each
    budget of each mechanism that approximates it."""

    scale: str
    """Scale that names the protocol in the record; sizes stand in this block."""
    lengths: Axis[Positive]
    directions: Axis[Direction] = ("bidirectional",)
    batches: Axis[Positive] = (1,)
    heads: Axis[Positive]
    head_widths: Axis[Positive]
    input_scales: Axis[Above0] = (1.0,)
    """Factors by which N(0, 1) queries and keys are multiplied."""
    dtypes: Axis[Dtype] = ("float32",)
    seeds: Repeats = 1
    """Seeds of inputs and draws; a figure of the report is a mean over them."""
    budgets: dict[str, Axis[dict[str, Any]]] = {}
    """Settings by mechanism, each a budget; a mechanism without any has its defaults alone."""
    threads: Positive = 1
    """CPU threads of each worker; as many workers run side by side as the cores allow."""


class Suite(Frozen, frozen=True, kw_only=True):
    """A named selection of cells."""

    name: str
    title: str
    quality: tuple[QualityBlock, ...] = ()
    efficiency: tuple[EfficiencyBlock, ...] = ()
    pairs: tuple[Pair, ...] = ()
    """Pairs that the efficiency blocks measure beside floor and exact attention: those with a
    mechanism that is asked for; () measures mechanisms alone."""
    together: bool = False
    """Whether timings are compared within their round: where one of a round is due, so are those
    that ran too long ago to be compared with it."""
    error: tuple[ErrorBlock, ...] = ()


def names(folder: str) -> list[str]:
    """Return the names of the shipped `scales`, `suites` or `presets`, sorted."""
    return sorted(path.stem for path in (_FOLDER / folder).glob("*.toml"))


def load_scale(reference: str) -> Scale:
    """Read a scale by name or by the path of a TOML file."""
    return _load(reference, "scale", Scale)


def load_suite(reference: str) -> Suite:
    """Read a suite by name or by the path of a TOML file; paths of scales in it begin beside it."""
    suite = _load(reference, "suite", Suite)
    beside = Path(reference).parent
    return msgspec.structs.replace(
        suite,
        quality=tuple(_resolve_scale_path(beside, block) for block in suite.quality),
        efficiency=tuple(_resolve_scale_path(beside, block) for block in suite.efficiency),
        error=tuple(_resolve_scale_path(beside, block) for block in suite.error),
    )


def _resolve_scale_path(folder: Path, block: _Block) -> _Block:
    if not block.scale.endswith(".toml"):
        return block
    return msgspec.structs.replace(block, scale=str(folder / block.scale))


def convert(data: dict[str, Any], kind: type[_Value], where: str) -> _Value:
    """Turn parsed TOML into a value; the error for an unknown key or a wrong type is one line with
    its place."""
    _refuse_beyond_json(data, where)
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        why = unknown_key(error, data, kind)
        why = why or f"{why_invalid(error, data, kind)}; fix the key or its value"
        raise UsageError(f"{where}: {why}") from error


def _refuse_beyond_json(value: Any, where: str, *steps: str | int) -> None:
    """Refuse nan, inf, whole numbers of any size and tables of any depth: TOML has them, the JSON
    of records has not."""
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"{where}: {toml_path(steps)} = {value} must be finite; fix the value")
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise UsageError(f"{where}: {toml_path(steps)} has over 100 digits; fix the value")
    if len(steps) > _DEEPEST:
        raise UsageError(f"{where}: {toml_path(steps[:3])}... is nested too deep; fix the table")
    parts: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict | list):
        parts = value.items() if isinstance(value, dict) else enumerate(value)
    for step, part in parts:
        _refuse_beyond_json(part, where, *steps, step)


def _load(reference: str, noun: str, kind: type[_Value]) -> _Value:
    own = reference.endswith(".toml")
    path = Path(reference) if own else _FOLDER / f"{noun}s" / f"{reference}.toml"
    with ensure_readable(f"{noun} file '{reference}'"):
        content = path.read_bytes() if path_kind(path) == "file" else None
        if content is None:
            raise _not_found(reference, noun)
    where = f"{noun} file '{path.name}'"
    return convert({"name": path.stem, **read_toml(content, where)}, kind, where)


def _not_found(reference: str, noun: str) -> UsageError:
    """Words for why there is no such scale or suite, and the remedy."""
    given = Path(reference)
    if path_kind(given) == "folder":
        return UsageError(f"{noun} '{reference}' is a folder; name a TOML file in it")
    if reference.endswith(".toml"):
        return UsageError(f"no {noun} file '{reference}'; check the path")
    if path_kind(given) == "file":
        return UsageError(
            f"{noun} file '{reference}' does not end in .toml; rename it to '{given.name}.toml'"
        )
    if path_kind(f"{reference}.toml") == "file":
        return UsageError(f"unknown {noun} '{reference}'; did you mean '{reference}.toml'?")
    return unknown_name(noun, reference, names(f"{noun}s"))


def read_toml(content: bytes, where: str) -> dict[str, Any]:
    """Return the content of a TOML file.

    Raises `UsageError`, beginning with `where`, for invalid TOML.
    """
    try:
        return tomllib.loads(content.decode())
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{where} is not UTF-8 (at line {line}); save it as UTF-8") from error
    except (ValueError, RecursionError) as error:
        # For lists nested without end, or thousands of digits, TOML has no error of its own.
        raise UsageError(f"{where} is not valid TOML: {error}; mend it there") from error
