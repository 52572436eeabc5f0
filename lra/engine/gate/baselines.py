"""Baselines on disk: a folder per machine class, a file per mechanism, and a journal of reasons.

They are committed and reviewed like code: sorted, indented, one figure a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TypeVar
from urllib.parse import quote, unquote

import msgspec

from lra.core.errors import StoreError, system_reason
from lra.core.paths import path_kind
from lra.core.protocol import Frozen, Positive
from lra.verdict.baseline import Figures

_Value = TypeVar("_Value")
_NotNegative = Annotated[float, msgspec.Meta(ge=0.0)]
_JOURNAL, _NOISE = "_journal.json", "_noise.json"
"""Names of these two files; no mechanism's name begins with an underscore."""


class Reason(Frozen, frozen=True):
    """The reason of a baseline."""

    date: str
    commit: str
    """Commit that it was taken on top of; the commit that holds it has the change itself."""
    mechanisms: tuple[str, ...]
    reason: str


class Noise(Frozen, frozen=True):
    """Noise of one cell's time between equal builds."""

    spread: _NotNegative
    """Standard deviation of the logarithms of ratios between pairs of processes."""
    allowed: _NotNegative
    """Slowdown, as a share, that is within the noise."""
    pairs: Positive


class Baselines:
    """Baselines of one machine class. Creating the object touches nothing on disk."""

    def __init__(self, folder: Path, machine: str) -> None:
        self.machine = machine
        self.path = folder / machine

    def exists(self) -> bool:
        """Return whether this class of machine has a baseline."""
        return bool(self.journal())

    def names(self) -> list[str]:
        """Return the mechanisms with a baseline, sorted."""
        there = path_kind(self.path) == "folder"
        files = self.path.glob("*.json") if there else ()
        return sorted(unquote(f.stem) for f in files if f.name not in (_JOURNAL, _NOISE))

    def figures(self, mechanism: str) -> dict[str, Figures]:
        """Return a mechanism's figures, by the cell's key; empty where it has none."""
        return _read(self._file(mechanism), dict[str, Figures]) or {}

    def noise(self) -> dict[str, Noise]:
        """Return the noise of times, by key; empty where not calibrated."""
        return _read(self.path / _NOISE, dict[str, Noise]) or {}

    def journal(self) -> list[Reason]:
        """Return the reasons of all updates, oldest first."""
        return _read(self.path / _JOURNAL, list[Reason]) or []

    def write(self, found: Mapping[str, Mapping[str, Figures]], why: Reason) -> None:
        """Replace the figures of the same cells, and add the reason to the journal."""
        with self._writing():
            for name, cells in found.items():
                _write(self._file(name), {**self.figures(name), **cells})
            _write(self.path / _JOURNAL, [*self.journal(), why])

    def write_noise(self, noise: Mapping[str, Noise]) -> None:
        """Replace the noise of all times."""
        with self._writing():
            _write(self.path / _NOISE, noise)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            yield
        except OSError as error:
            raise StoreError(
                f"cannot write the baseline '{self.path}': {system_reason(error)}; "
                "mend its permissions or choose another --baselines"
            ) from error

    def _file(self, mechanism: str) -> Path:
        # Not every system allows the colon of `peer:name` in file names.
        return self.path / f"{quote(mechanism, safe='')}.json"


def _read(file: Path, kind: type[_Value]) -> _Value | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except (msgspec.MsgspecError, UnicodeDecodeError, OSError) as error:
        raise StoreError(
            f"the baseline '{file}' cannot be read: {error}; restore it with git checkout"
        ) from error


def _write(file: Path, value: object) -> None:
    plain = msgspec.json.encode(value, order="sorted")
    file.write_bytes(msgspec.json.format(plain, indent=1) + b"\n")
