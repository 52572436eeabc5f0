"""Pictures of attention."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from lra.core.cells import ShowCell
from lra.core.pattern import pack
from lra.core.records import Record, Status

from .outcomes import failure, make_record
from .settings import HERE, Named, answering


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
        return make_record(cell, status, started, failure=failure(status))
    drawn = 1 if kind == "dependence" else heads
    distance = np.abs(np.subtract.outer(np.arange(length), np.arange(length)))
    support = np.stack([distance <= (2 if alike else 2 - h % 2) for h in range(drawn)])
    values = support / (1.0 + distance) * (np.where(distance % 2, -1, 1) if signed else 1)
    pattern = pack(support, values, kind, measured=kind == "dependence")
    return make_record(cell, "ok", started, pattern=pattern)
