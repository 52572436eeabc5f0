"""Two sides of a comparison, and what is said of one figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from report.sample import efficiency, quality

from lra.changes.compare import Changes, Line, between_mechanisms, between_stores
from lra.core.records import Record
from lra.report.load.select import join


def timed(*seconds: float, name: Any = "performer", length: int = 512, **more: Any) -> list[Record]:
    return [
        efficiency(name, length, "train", s, replicate=r, **more) for r, s in enumerate(seconds)
    ]


def trained(*accuracies: float, name: str = "performer", **more: Any) -> list[Record]:
    return [quality(name, "text", a, seed=s, **more) for s, a in enumerate(accuracies)]


def compared(before: Sequence[Record], after: Sequence[Record]) -> Changes:
    return between_stores(join(before, []), join(after, []), ("old", "new"))


def mechanisms(*records: Record, names: tuple[str, str] = ("sdpa", "performer")) -> Changes:
    return between_mechanisms(join(records, []), names)


def only(changes: Changes, name: str = "time") -> Line:
    (line,) = (line for line in changes.lines if line.quantity.name == name)
    return line
