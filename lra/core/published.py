"""Figures from papers, read from TOML (`lra/published/*.toml`): never a measurement of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from lra.core.errors import LraError

_FOLDER = Path(__file__).resolve().parents[1] / "published"

Figure = Literal["steps", "gigabytes"]


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is published of one mechanism, a figure for each length."""

    steps: tuple[float, ...]
    """Training steps a second."""
    ratios: tuple[float, ...]
    """Of steps a second to the Transformer's, as printed."""
    gigabytes: tuple[float, ...]
    """Peak memory of one device."""


class Suspect(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A published figure that may be a slip."""

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
    """The mechanism of ours that stands for its Transformer."""
    rows: dict[str, Row]
    """By our name of the mechanism."""
    suspects: tuple[Suspect, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a row that lacks a figure, and what is said of none."""
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

    def suspect(self, row: str, length: int, figure: Figure) -> Suspect | None:
        """Return what is said against a figure, if anything is."""
        asked = (row, length, figure)
        return next((s for s in self.suspects if (s.row, s.length, s.figure) == asked), None)


def efficiency(name: str) -> Efficiency:
    """Return a published table of speed and memory; raises `LraError` for a file that is none."""
    file = _FOLDER / f"{name}.toml"
    try:
        return msgspec.toml.decode(file.read_bytes(), type=Efficiency)
    except msgspec.MsgspecError as error:
        raise LraError(f"{file.name}: {error}; fix the file") from error
