"""The columns of tables that are made of a cost over all its lengths."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from lra.report.entries import Busy, Entry
from lra.report.words import NOT_RUN, listing
from lra.verdict.growth import LEAST

_IN_ORDER = ("forward", "train", "decode")
_GREATEST = ("train", "forward")
"""Modes in the order of what they hold in memory."""


class Column(msgspec.Struct, frozen=True):
    """One cost of one mode."""

    kind: Literal["time", "memory", "state"]
    metric: str
    mode: str

    @property
    def title(self) -> str:
        """What stands above the column."""
        return f"{self.kind}, {self.mode}"

    @property
    def timed(self) -> bool:
        """Whether it is a time, which a busy machine makes longer."""
        return self.kind == "time"

    def of(self, entries: Iterable[Entry]) -> list[Entry]:
        """Return those of the entries that belong to the column."""
        return [e for e in entries if (e.metric, e.mode) == (self.metric, self.mode)]


def derived_columns(group: Sequence[Entry], memory: str) -> list[Column]:
    """Return the time of each mode, the memory of the mode that needs most, and of decoding the
    state: a step by itself takes next to nothing.

    Only of modes that were tried at three lengths or more; `memory` names the metric.
    """
    tried = {mode: {e.length for e in group if e.mode == mode} for mode in _IN_ORDER}
    long = [mode for mode in _IN_ORDER if len(tried[mode]) >= LEAST]
    times = [Column("time", "latency", mode) for mode in long]
    greatest = [mode for mode in _GREATEST if mode in long][:1]
    sizes = [Column("memory", memory, mode) for mode in greatest]
    if "decode" in long:
        sizes.append(Column("state", "state_bytes", "decode"))
    return times + sizes


def of_most_lengths(own: Sequence[Entry]) -> list[Entry]:
    """Return the entries of replicates that were tried at half as many lengths as any, or more.

    Otherwise replicates that another suite added at a few lengths would leave only those lengths in
    common.
    """
    tried: dict[int | None, set[int]] = defaultdict(set)
    for entry in own:
        tried[entry.replicate].add(entry.length)
    most = max(map(len, tried.values()), default=0)
    return [entry for entry in own if 2 * len(tried[entry.replicate]) >= most]


def is_busy(own: Iterable[Entry], column: Column, busy: Busy) -> bool:
    """Whether the machine was busy during any of these; that does not make a call larger."""
    return column.timed and any((entry.origin, entry.record) in busy for entry in own)


def why_none(own: Sequence[Entry]) -> str:
    """Return how entries without a figure ended, in words."""
    return listing(sorted({entry.word for entry in own if entry.word})) or NOT_RUN
