"""Measurements: one metric of one cell in one store, by replicate or seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pandas as pd

from lra.core.records import FAILED, Status
from lra.report.load.select import Evidence
from lra.report.load.versions import measuring
from lra.verdict.change import (
    ACCURACY_MARGIN,
    COUNT_MARGIN,
    LOSS_MARGIN,
    TIME_MARGIN,
    Change,
    compare_accuracies,
    compare_counts,
    compare_losses,
    compare_times,
)

Key = tuple[Any, ...]
ASKED = (
    "kind", "scale", "rules", "track", "task", "order", "length", "mode", "level", "direction",
    "batch", "heads", "head_width", "dtype", "execution", "input_scale", "device", "metric",
)  # fmt: skip
"""Columns of the question: equal on both sides for one cell."""
CONDITIONS = {
    "variant": "another configuration",
    "machine": "another machine",
    "threads": "another number of threads",
    "source": "another source of data",
    "data_hash": "other data",
    "protocol": "another protocol of training",
    "model": "another model",
    "torch": "another version of torch",
    "measuring": "measured by another version of the code",
}
"""Columns that must also be equal for two figures to be compared, with the words for a
difference."""
POOLED = {"quality": ("machine", "threads", "torch"), "error": ("machine", "threads")}
"""Conditions, by kind of cell, whose change alters rounding alone."""


class Quantity(msgspec.Struct, frozen=True):
    """A metric that is compared."""

    name: str
    judge: Callable[[Mapping[int, float], Mapping[int, float]], Change | None]
    worse: str
    better: str
    margin: float
    """Share, or difference of accuracies, below which a change does not matter."""
    controlled: bool = False
    """Whether it is a time: compared as its ratio to the control of its process, since a slow spell
    of the machine changes both."""
    by_seed: bool = False
    """Whether trainings give it: their seeds are paired."""

    @property
    def is_share(self) -> bool:
        """Whether it is an accuracy: a share of 1, where more is better."""
        return self.judge is compare_accuracies

    def scaled(self, value: float) -> float:
        """Return a figure on the scale of its steps: the logarithm, but of a share the figure
        itself."""
        # A count of zero, as the state's of a mechanism without state, is taken as one.
        least = 1.0 if self.judge is compare_counts else 0.0
        return value if self.is_share else math.log(max(value, least))


def _time(name: str) -> Quantity:
    return Quantity(name, compare_times, "slower", "faster", TIME_MARGIN, controlled=True)


def _count(name: str, worse: str = "larger", better: str = "smaller") -> Quantity:
    return Quantity(name, compare_counts, worse, better, COUNT_MARGIN)


QUANTITIES: dict[str, Quantity] = {
    "latency": _time("time"),
    "prefill": _time("prefill"),
    "peak_tensor_bytes": _count("bytes of tensors"),
    "peak_allocated_bytes": _count("allocated bytes"),
    "state_bytes": _count("state"),
    "operations": _count("operations", "more", "fewer"),
    "test_accuracy": Quantity(
        "accuracy", compare_accuracies, "less accurate", "more accurate", ACCURACY_MARGIN,
        by_seed=True,
    ),
    "bits_per_byte": Quantity(
        "bits per byte", compare_losses, "worse", "better", LOSS_MARGIN, by_seed=True
    ),
    "nat": Quantity("loss", compare_losses, "worse", "better", LOSS_MARGIN, by_seed=True),
    "output_error": Quantity("error", compare_times, "further off", "nearer", TIME_MARGIN),
}  # fmt: skip
"""Compared quantities, by metric. Resident size is left out: it is not the same twice."""


class Ending(NamedTuple):
    """How a replicate or seed without a figure ended, and why it has none where it is ok."""

    status: Status
    failure: str
    reason: str

    @property
    def failed(self) -> bool:
        """Whether it failed, or was skipped because a shorter length failed."""
        pruned = self.status == "skipped" and self.failure == "Pruned"
        return pruned or self.status in FAILED


class Measurement(msgspec.Struct, frozen=True):
    """One metric of one cell under the same conditions."""

    row: Any
    """Its first row of the frame, with the column `measuring`; None where a column does not apply,
    and for conditions of no account."""
    values: dict[int, float]
    """Figures by replicate or seed, without those of a busy machine."""
    controlled: dict[int, float]
    """Ratios of figures to their controls, by replicate or seed; those without a control are left
    out."""
    endings: dict[int, Ending]
    busy: frozenset[str]
    """Ids of records with a figure that was left out, as the machine was busy."""

    def key(self, names: Iterable[str]) -> Key:
        """Return the values of some columns."""
        return tuple(getattr(self.row, name) for name in names)

    @property
    def quantity(self) -> Quantity:
        """The metric as it is compared."""
        return QUANTITIES[self.row.metric]

    @property
    def is_known(self) -> bool:
        """Whether it has a figure, or an ending that is not ok."""
        return bool(self.values) or any(one.status != "ok" for one in self.endings.values())

    @property
    def is_unsupported(self) -> bool:
        """Whether the mechanism declares that it does not support it."""
        return {one.status for one in self.endings.values()} == {"unsupported"} and not self.values

    @property
    def failures(self) -> dict[int, Ending]:
        """Endings of failed replicates or seeds."""
        return {number: one for number, one in self.endings.items() if one.failed}

    @property
    def place(self) -> Key:
        """Sort key of the cell."""
        return self.key(("kind", "scale", "task", "level", "mode", "length"))


def measurements(
    evidence: Evidence, pooled: Mapping[str, tuple[str, ...]] = POOLED
) -> list[Measurement]:
    """Return a store's measurements of the compared quantities, sorted by cell."""
    own = _prepared(evidence)
    for kind, names in pooled.items():
        own.loc[own["kind"] == kind, list(names)] = None
    groups: dict[Key, list[Any]] = {}
    for row in own.itertuples(index=False):
        groups.setdefault(tuple(getattr(row, n) for n in (*ASKED, *CONDITIONS)), []).append(row)
    found = [_measurement(rows) for rows in groups.values()]
    return sorted(
        found,
        key=lambda one: (one.place, one.row.label, repr(one.key(ASKED)), repr(one.key(CONDITIONS))),
    )


def _measurement(rows: list[Any]) -> Measurement:
    controlled = QUANTITIES[rows[0].metric].controlled
    quiet = [row for row in rows if not (controlled and row.disturbed)]
    known = [row for row in quiet if row.value is not None]
    return Measurement(
        row=rows[0],
        values={row.number: row.value for row in known},
        controlled={r.number: r.value / r.control for r in known if controlled and r.control},
        endings={
            row.number: Ending(row.status, row.failure, row.reason)
            for row in quiet
            if row.value is None
        },
        busy=frozenset(row.record for row in rows) - {row.record for row in quiet},
    )


def _prepared(evidence: Evidence) -> pd.DataFrame:
    """Compared figures, each with its control; None where a column does not apply."""
    table = evidence.figures
    versions = {one.record.id: measuring(one.cell) for one in evidence.measurements}
    sides = table[table["metric"].isin(["control_before", "control_after"]) & (table["value"] > 0)]
    controls = sides.groupby("record")["value"].agg(["prod", "size"])
    control = np.sqrt(controls["prod"][controls["size"] == 2])
    own = table[table["metric"].isin(QUANTITIES)].assign(
        number=lambda own: own["replicate"].fillna(own["seed"]).fillna(0).astype(int),
        control=lambda own: own["record"].map(control),
        measuring=lambda own: own["record"].map(versions),
    )
    names = ["mechanism", "label", "unit", "record", "mechanism_version", "number", "value"]
    names += ["control", "disturbed", "status", "failure", "reason", *ASKED, *CONDITIONS]
    own = own[names].astype(object)
    return own.where(own.notna(), None)
