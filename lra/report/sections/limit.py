"""Share of the machine's limit: the time that a call's operations or bytes would take at best, over
the call's time.

Operations are those of matrix products, at the rate of a large product; bytes are inputs,
parameters, outputs and gradients once each, at the rate of a large copy. It is an estimate: a call
may need less than is counted, or have in a cache the data that a large copy has not.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pandas as pd

from lra.report.analysis import Analysis
from lra.report.ceilings import Ceiling, Place, ceilings
from lra.report.cost_grid import Grid, grid
from lra.report.cost_titles import short_titles
from lra.report.costs import Costs
from lra.report.load.settings import CostSetting
from lra.report.model import Section, Table, Value, drawn, there
from lra.report.plots.limit import limit_figure
from lra.report.plots.style import Looks
from lra.report.rows import Key, missing
from lra.report.sections.cost_table import CALLS
from lra.report.sections.operations import agreement, declared_operations, declared_table
from lra.report.sweeps import MODES
from lra.report.words import figures

TOPIC = "Share of the machine's limit"
_HOW = (
    "The time that a call's matrix products would take at the machine's best rate, or its bytes "
    "where that is longer (marked so), over the median time. Fourier transforms and a library's "
    "recurrent kernels are not counted; bytes are inputs, parameters, outputs and gradients once."
)
_ABOVE = (
    "Above 100: the machine was slower when its rates were taken, or the call does with less than "
    "is counted, as a causal kernel that skips half of the pairs does."
)


_Counts = dict[tuple[str, str, int], float]
"""Counts by origin, variant and length."""


class Share(msgspec.Struct, frozen=True):
    """Share of one mechanism at the longest length with a time and a count."""

    length: int
    share: float
    by_bytes: bool
    """Whether bytes are the limit."""
    disturbed: bool


class Limit(msgspec.Struct, frozen=True):
    """Shares of one mode."""

    times: Grid
    shares: dict[Key, Share]


class Limits(msgspec.Struct, frozen=True):
    """Shares of one setting of the run."""

    number: int
    setting: CostSetting
    ceiling: Ceiling | None
    """Best rates of the machine; None where unknown, and then there are no shares."""
    modes: tuple[Limit, ...]
    bytes_known: bool
    """Whether the bytes of any call are known."""
    declared: pd.DataFrame

    @property
    def longest(self) -> int:
        """Longest length of any share."""
        return max(share.length for mode in self.modes for share in mode.shares.values())


def analyse(costs: Costs, known: Mapping[Place, Ceiling]) -> list[Limits]:
    """Return the shares and the declared operations of each setting of the run."""
    found = []
    for number, setting in enumerate(costs.settings, start=1):
        if setting.id not in costs.own:
            continue
        where = (setting.machine, setting.threads, setting.torch, setting.dtype, setting.device)
        ceiling, modes, moved = known.get(Place(*where)), [], False
        for mode in MODES if ceiling else ():
            times = grid(costs, setting.id, mode, "latency")
            if ceiling is not None and times is not None:
                size = _values(grid(costs, setting.id, mode, "minimum_bytes"))
                work = _values(grid(costs, setting.id, mode, "operations"))
                modes.append(Limit(times, _shares(times, work, size, ceiling)))
                moved = moved or bool(size)
        shared = tuple(modes) if any(one.shares for one in modes) else ()
        declared = declared_operations(costs, setting.id)
        found.append(Limits(number, setting, ceiling, shared, moved, declared))
    return found


def _shares(times: Grid, work: _Counts, size: _Counts, ceiling: Ceiling) -> dict[Key, Share]:
    shares: dict[Key, Share] = {}
    for (key, n), place in sorted(times.places.items(), key=lambda item: item[0][1]):
        row = (key.origin, key.variant, n)
        # torch sees no product in a library's own recurrent kernel.
        if place.known and work.get(row):
            seconds = work[row] / ceiling.operations
            by_bytes = size.get(row, 0.0) / ceiling.bytes
            share = max(seconds, by_bytes) / place.value
            shares[key] = Share(n, share, by_bytes > seconds, place.disturbed)
    return shares


def _values(grid: Grid | None) -> _Counts:
    if grid is None:
        return {}
    return {
        (key.origin, key.variant, n): place.value
        for (key, n), place in grid.places.items()
        if place.known
    }


def sections(analysis: Analysis) -> list[Section]:
    """Return a section for each setting of the run with shares or declared operations."""
    costs = analysis.costs
    found = analyse(costs, ceilings(analysis.evidence.ceilings))
    shown = [one for one in found if one.modes or not one.declared.empty]
    named = short_titles(costs.settings)
    before: Ceiling | None = None
    made = []
    for one in shown:
        made.append(present(one, analysis.looks, named[one.setting.id], before))
        before = one.ceiling or before
    return made


def present(one: Limits, looks: Looks, title: str, before: Ceiling | None) -> Section:
    """Return the section of a setting, after one with the rates `before`. The method is only in the
    first, and so is a picture, since a table has the same figures; rates are given anew where they
    differ."""
    text, figures = [], []
    first = before is None
    if one.modes and one.ceiling:
        text += [_HOW] if first else []
        text += [_rates(one.ceiling)] if one.ceiling != before else []
        text += [] if one.bytes_known else ["The bytes of these calls are not known."]
        at_longest = {
            CALLS[mode.times.mode]: {
                key: share.share
                for key, share in mode.shares.items()
                if share.length == one.longest
            }
            for mode in one.modes
        }
        dots = (one.longest, at_longest)
        figures = [limit_figure(f"limit-{one.number}", dots, looks)] if first else []
    # Settings timed at one length are those of comparisons: the first has their mechanisms.
    is_whole = first or any(len(mode.times.lengths) > 1 for mode in one.modes)
    shares = _table(one) if one.modes and is_whole else None
    tables = [shares, declared_table(one.declared, one.number)]
    return Section(
        topic=TOPIC,
        level="appendix",
        setting=title,
        text=(*text, *agreement(one.declared)),
        tables=there(tables),
        figures=drawn(figures),
    )


def _rates(ceiling: Ceiling) -> str:
    return (
        f"The machine's best: {ceiling.operations / 1e9:,.0f} billion operations a second in a "
        f"large matrix product, {ceiling.bytes / 1e9:,.0f} GB a second read and written in a copy."
    )


def _table(one: Limits) -> Table:
    keys = list(dict.fromkeys(key for mode in one.modes for key in mode.times.keys))
    above = any(share.share > 1.0 for mode in one.modes for share in mode.shares.values())
    return Table(
        id=f"limit-{one.number}",
        title="Share of the machine's limit, in percent",
        caption=f"At length {one.longest}, or the longest that has a figure.",
        corner="mechanism",
        columns=tuple(CALLS[mode.times.mode] for mode in one.modes),
        rows=tuple(key.row([_value(one, mode, key) for mode in one.modes]) for key in keys),
        legend=(_ABOVE,) if above else (),
    )


def _value(one: Limits, mode: Limit, key: Key) -> Value:
    share = mode.shares.get(key)
    if share is None:
        own = [place for (other, _), place in mode.times.places.items() if other == key]
        if any(place.known for place in own):
            return Value("not counted")
        endings = [ending for place in own for ending in place.endings]
        return Value(missing(endings).text if own else "")
    notes = [f"at {share.length}"] if share.length != one.longest else []
    notes += ["bytes"] if share.by_bytes else []
    text = figures(100 * share.share, most=2)
    return Value(text, ", ".join(notes), share.share, disturbed=share.disturbed)
