"""Sweeps over length: one cost of one mechanism at all its lengths, by replicate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
import pandas as pd

from lra.report.load.frame import PEAK_MEMORY
from lra.report.load.settings import CostSetting
from lra.verdict.growth import LEAST

Kind = Literal["time", "memory", "state"]
MODES = ("train", "forward", "decode")
"""Modes in the order of tables."""


class Quantity(NamedTuple):
    """One cost of one mode."""

    kind: Kind
    mode: str
    metric: str


class Point(NamedTuple):
    """One process at one length; `value` is NaN where there is none."""

    replicate: float
    length: int
    value: float
    q1: float
    q3: float
    disturbed: bool
    status: str
    failure: str
    reason: str
    declared: str

    @property
    def known(self) -> bool:
        """Whether there is a value."""
        return self.value == self.value

    @property
    def ending(self) -> tuple[str, str, str]:
        """Its ending, as `rows.missing` takes it."""
        return self.status, self.failure, self.reason


class Sweep(msgspec.Struct, frozen=True):
    """One quantity of one mechanism."""

    origin: str
    variant: str
    mechanism: str
    label: str
    quantity: Quantity
    points: tuple[Point, ...]

    @property
    def disturbed(self) -> bool:
        """Whether the machine was busy during any of these, for times; it makes no call larger."""
        return self.quantity.kind == "time" and any(p.disturbed for p in self.points if p.known)

    @property
    def by_replicate(self) -> dict[int, dict[int, Point]]:
        """Points with a value, by number of the replicate and length."""
        found: dict[int, dict[int, Point]] = defaultdict(dict)
        for point in self.points:
            if point.known:
                found[int(point.replicate)][point.length] = point
        return dict(sorted(found.items()))

    @property
    def lost(self) -> dict[int, tuple[tuple[str, str, str], ...]]:
        """Distinct endings of points without a value, by length."""
        found: dict[int, set[tuple[str, str, str]]] = defaultdict(set)
        for point in self.points:
            if not point.known:
                found[point.length].add(point.ending)
        return {length: tuple(sorted(own)) for length, own in sorted(found.items())}


def quantities(figures: pd.DataFrame, setting: CostSetting) -> list[Quantity]:
    """Return the costs of a setting that were tried at three lengths or more: the time of each
    mode, the memory of training and of forward passes, and the state of decoding, since one step
    needs next to no memory."""
    tried = figures.groupby("mode")["length"].nunique()
    long = [mode for mode in MODES if tried.get(mode, 0) >= LEAST]
    times = [Quantity("time", mode, "latency") for mode in long]
    sizes = [
        Quantity("state", mode, "state_bytes")
        if mode == "decode"
        else Quantity("memory", mode, PEAK_MEMORY[setting.device])
        for mode in long
    ]
    return times + sizes


def sweeps(figures: pd.DataFrame, wanted: Iterable[Quantity]) -> list[Sweep]:
    """Return the sweeps of each quantity among the figures of one setting, by id."""
    by_metric = {(one.metric, one.mode): one for one in wanted}
    own = figures[figures["metric"].isin({metric for metric, _ in by_metric})]
    keys = ["origin", "variant", "mechanism", "label"]
    found: dict[tuple[tuple[str, ...], Quantity], list[Point]] = defaultdict(list)
    for *key, metric, mode, point in zip(
        *(own[name] for name in (*keys, "metric", "mode")),
        own[list(Point._fields)].itertuples(index=False, name=None),
        strict=True,
    ):
        if (metric, mode) in by_metric:
            found[tuple(key), by_metric[metric, mode]].append(Point(*point))
    return [
        Sweep(
            key[0], key[1], key[2], key[3], quantity, tuple(_of_most_lengths(found[key, quantity]))
        )
        for key, quantity in sorted(found)
    ]


def _of_most_lengths(points: Sequence[Point]) -> list[Point]:
    """Return the points of replicates tried at half as many lengths as any, or more.

    Replicates that another suite added at a few lengths would leave only those lengths in common.
    """
    tried: dict[float, set[int]] = defaultdict(set)
    for point in points:
        tried[point.replicate].add(point.length)
    most = max(map(len, tried.values()))
    kept = [point for point in points if 2 * len(tried[point.replicate]) >= most]
    return sorted(kept, key=lambda point: (point.replicate, point.length))


def by_row(rows: pd.DataFrame, kind: str, mode: str) -> dict[tuple[str, str], Any]:
    """Return values derived from sweeps of one kind and mode, by origin and variant."""
    own = rows[(rows["kind"] == kind) & (rows["mode"] == mode)]
    return {(str(row.origin), str(row.variant)): row for row in own.itertuples(index=False)}
