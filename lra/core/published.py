"""Figures from papers, read from TOML (`lra/published/*.toml`): never a measurement of ours."""

from __future__ import annotations

import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import msgspec

from lra.core.errors import LraError
from lra.core.protocol import ModelSpec, Positive, TrainSpec

_FOLDER = Path(__file__).resolve().parents[1] / "published"
_Table = TypeVar("_Table")

Figure = Literal["steps", "gigabytes"]
Percent = Annotated[float, msgspec.Meta(ge=0.0, le=100.0)]
Setting = bool | int | float | str
Tested = Literal["best", "last", "best, late", "best, validated on test", "last, validated on test"]
"""Tested checkpoint: best and last as in our own protocol. late: the first ones do not count."""
OFF = "none"
"""Stated value of a part that is off."""


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One mechanism's published figures, one for each length."""

    steps: tuple[float, ...]
    """Training steps a second."""
    ratios: tuple[float, ...]
    """Steps a second relative to the Transformer's, as printed."""
    gigabytes: tuple[float, ...]
    """Peak memory of one device."""


class DoubtfulFigure(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A published figure that may be a misprint."""

    row: str
    length: int
    figure: Figure
    why: str


class Efficiency(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A published table of speed and memory."""

    source: str
    protocol: str
    lengths: tuple[int, ...]
    exact: str
    """Our mechanism in the place of its Transformer."""
    rows: dict[str, Row]
    """Rows by our name of the mechanism."""
    suspects: tuple[DoubtfulFigure, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a row that lacks a figure, and a doubt about no figure."""
        for name, row in self.rows.items():
            for figures in (row.steps, row.ratios, row.gigabytes):
                if len(figures) != len(self.lengths):
                    raise ValueError(f"row '{name}' needs {len(self.lengths)} of each figure")
        for name in (self.exact, *(one.row for one in self.suspects)):
            if name not in self.rows:
                raise ValueError(f"there is no row '{name}'")
        for one in self.suspects:
            if one.length not in self.lengths:
                raise ValueError(f"there is no length {one.length}")

    def suspect(self, row: str, length: int, figure: Figure) -> DoubtfulFigure | None:
        """Return the doubt about a figure, if there is any."""
        asked = (row, length, figure)
        return next((s for s in self.suspects if (s.row, s.length, s.figure) == asked), None)


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A publication's stated settings for training on a task, by our names; the rest is unknown."""

    data: str = ""
    length: Positive | None = None
    model: dict[str, Setting] = {}
    """Fields of `ModelSpec`."""
    training: dict[str, Setting] = {}
    """Fields of `TrainSpec`; the rate of `rsqrt` is the factor over the root of the step. A part
    stated to be off is `OFF`."""
    tested: Tested | None = None

    def __post_init__(self) -> None:
        """Refuse settings that are no fields of our protocol."""
        for own, spec in ((self.model, ModelSpec), (self.training, TrainSpec)):
            if unknown := sorted(own.keys() - set(spec.__struct_fields__)):
                raise ValueError(f"a {spec.__name__} has no field '{unknown[0]}'")

    def within(self, shared: Settings) -> Settings:
        """Return these settings, completed by those shared by all tasks."""
        return Settings(
            data=self.data or shared.data,
            length=self.length or shared.length,
            model={**shared.model, **self.model},
            training={**shared.training, **self.training},
            tested=self.tested or shared.tested,
        )


class Accuracies(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One model's published accuracies, in percent."""

    model: str
    """Name of the model in the publication."""
    mechanism: str = ""
    """Our mechanism that it corresponds to; empty where there is none."""
    accuracy: dict[str, Decimal]
    """Accuracies by task, with the printed digits."""
    average: Percent | None = None
    """Average as printed, over the tasks of `accuracy`: it checks their transcription, and is not
    shown."""
    failed: tuple[str, ...] = ()
    """Tasks on which it is reported to learn nothing; in no average."""
    differs: str = ""
    """Differences of its code or settings from the mechanism's."""

    def __post_init__(self) -> None:
        """Refuse values that are no percent."""
        for task, printed in self.accuracy.items():
            if not (printed.is_finite() and 0 <= printed <= 100):
                raise ValueError(f"row '{self.model}': {task} = {printed} is no percent")


class Quality(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A published table of accuracies, and the protocol behind it."""

    name: str
    """Short name, for a row."""
    source: str
    seeds: Positive
    """Number of seeds that each figure is the mean over."""
    note: str = ""
    """A sentence on its settings, for readers who compare them."""
    shared: Settings = Settings()
    tasks: dict[str, Settings]
    rows: tuple[Accuracies, ...]

    def __post_init__(self) -> None:
        """Refuse figures of a task without settings, even empty ones."""
        for row in self.rows:
            if unknown := sorted({*row.accuracy, *row.failed} - self.tasks.keys()):
                raise ValueError(f"row '{row.model}': there is no [tasks.{unknown[0]}]")

    def settings(self, task: str) -> Settings:
        """Return the settings stated for a task."""
        return self.tasks[task].within(self.shared)

    def of(self, mechanism: str) -> tuple[Accuracies, ...]:
        """Return the rows that correspond to a mechanism of ours."""
        return tuple(row for row in self.rows if row.mechanism == mechanism)


class Spans(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Published mean attention distances."""

    source: str
    note: str
    tasks: dict[str, Positive]
    """Mean distances in tokens, by task."""
    lengths: dict[str, Positive]
    """Lengths of the measured inputs, by task."""

    def __post_init__(self) -> None:
        """Refuse a distance for a task without a length."""
        if unknown := sorted(self.tasks.keys() ^ self.lengths.keys()):
            raise ValueError(f"there is a distance or a length of '{unknown[0]}', not both")


def spans(name: str) -> Spans:
    """Return published attention distances; raises `LraError` for an invalid file."""
    return _read(_FOLDER / f"{name}.toml", Spans)


def efficiency(name: str) -> Efficiency:
    """Return a published table of speed and memory; raises `LraError` for an invalid file."""
    return _read(_FOLDER / f"{name}.toml", Efficiency)


def qualities() -> tuple[Quality, ...]:
    """Return all published tables of accuracies, by the names of their files; raises `LraError` for
    an invalid file."""
    return tuple(_read(file, Quality) for file in sorted((_FOLDER / "accuracy").glob("*.toml")))


def _read(file: Path, kind: type[_Table]) -> _Table:
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"), parse_float=Decimal)
        return msgspec.convert(found, kind)
    except (msgspec.MsgspecError, ValueError) as error:
        raise LraError(f"{file.name}: {error}; fix the file") from error
