"""Repeatability of times: their ratio to the control over processes, the figure that is comparable
between machines."""

from __future__ import annotations

import math

import msgspec
import pandas as pd

from lra.report.analysis import Analysis
from lra.report.cost_titles import short_titles
from lra.report.costs import Costs
from lra.report.load.settings import CostSetting
from lra.report.model import Section, Table, Value
from lra.report.rows import Key, missing, reference_notes, row_keys
from lra.report.sections.cost_table import CALLS
from lra.report.sweeps import MODES
from lra.report.words import count, figures, percent, span
from lra.verdict.ratio import Ratio
from lra.verdict.repeatability import LONG, ControlledCost, control_ratio, median_width

TOPIC = "Repeatability"
_HOW = (
    "Time over that of a plain matrix product in the same process: geometric mean over processes, "
    "with half the width of its 95 % interval. This is the figure to repeat."
)
_TIMES = ("latency", "control_before", "control_after")


class Repeated(msgspec.Struct, frozen=True):
    """Repeated timings of one mechanism at one length."""

    processes: dict[int, ControlledCost] = {}
    endings: tuple[tuple[str, str, str], ...] = ()
    disturbed: int = 0
    """Number of processes during which the machine was busy."""

    @property
    def ratio(self) -> Ratio | None:
        """Ratio to the control, with an interval where there are several processes."""
        return control_ratio(self.processes)


class Mode(msgspec.Struct, frozen=True):
    """Repeated timings of one mode of one setting."""

    mode: str
    keys: tuple[Key, ...]
    places: dict[tuple[Key, int], Repeated]
    several: tuple[tuple[Key, int], ...]
    """Places whose ratio has an interval."""
    figures: pd.DataFrame


class Repeatability(msgspec.Struct, frozen=True):
    """Repeated timings of one setting."""

    number: int
    setting: CostSetting
    modes: tuple[Mode, ...]


def analyse(costs: Costs) -> list[Repeatability]:
    """Return for each setting of the run the modes in which some cell has several processes."""
    found = []
    for number, setting in enumerate(costs.settings, start=1):
        own = costs.figures[costs.figures["setting"] == setting.id]
        own = own[own["metric"].isin(_TIMES)]
        modes = [_mode(mode, own[own["mode"] == mode]) for mode in MODES]
        repeated = tuple(one for one in modes if one.several)
        if repeated and setting.id in costs.own:
            found.append(Repeatability(number, setting, repeated))
    return found


def _mode(mode: str, own: pd.DataFrame) -> Mode:
    timed = own[own["metric"] == "latency"]
    keys = tuple(row_keys(timed))
    values = own.pivot_table("value", ["origin", "record"], "metric", aggfunc="first")
    controls = values.reindex(columns=list(_TIMES)).fillna(0.0).T.to_dict("list")
    by_id = {(str(key.origin), key.variant): key for key in keys}
    places: dict[tuple[Key, int], Repeated] = {}
    names = [
        "origin", "variant", "length", "record", "replicate", "value", "disturbed", "status",
        "failure", "reason",
    ]  # fmt: skip
    for origin, variant, length, record, replicate, value, disturbed, *ending in timed[
        names
    ].itertuples(index=False, name=None):
        if (origin, variant) not in by_id:
            continue
        place = (by_id[origin, variant], int(length))
        known = places.get(place, Repeated())
        places[place] = (
            msgspec.structs.replace(known, endings=(*known.endings, tuple(ending)))
            if math.isnan(value)
            else Repeated(
                {**known.processes, int(replicate): ControlledCost(*controls[origin, record])},
                known.endings,
                known.disturbed + disturbed,
            )
        )
    several = tuple(
        place for place, own in places.items() if (ratio := own.ratio) and ratio.pairs > 1
    )
    return Mode(mode, keys, places, several, timed)


def sections(analysis: Analysis) -> list[Section]:
    """Return a section for each setting with several processes."""
    named = short_titles(analysis.costs.settings)
    found = analyse(analysis.costs)
    return [present(one, named[one.setting.id], first=one is found[0]) for one in found]


def present(one: Repeatability, title: str, *, first: bool) -> Section:
    """Return the section of a setting. After the first, modes timed at one length have a sentence
    alone."""
    shown = [mode for mode in one.modes if first or len({n for _, n in mode.places}) > 1]
    return Section(
        topic=TOPIC,
        level="appendix",
        setting=title,
        text=tuple(text for mode in one.modes if (text := sentence(mode))),
        tables=tuple(_table(mode, one.number) for mode in shown),
    )


def _table(one: Mode, number: int) -> Table:
    every = sorted({n for _, n in one.places})
    # Intervals are summarised from this length on.
    long = [n for n in every if n >= LONG] or every
    # All lengths are in report.csv, with the control's times.
    lengths = sorted({long[0], long[-1]})
    return Table(
        id=f"repeatability-{one.mode}-{number}",
        title=f"Ratio of a {CALLS[one.mode]} to the control",
        caption="",
        corner="mechanism",
        columns=tuple(map(str, lengths)),
        rows=tuple(
            key.row([_value(one.places.get((key, n))) for n in lengths]) for key in one.keys
        ),
        notes=tuple(reference_notes(one.figures, one.keys)),
        legend=(_HOW,),
    )


def _value(place: Repeated | None) -> Value:
    """Return the printed form of a place: `12.3`, below it `±2.5%`; empty where it was not asked
    for."""
    if place is None:
        return Value("")
    ratio, disturbed = place.ratio, place.disturbed > 0
    if ratio is None:
        return Value(missing(sorted(place.endings)).text)
    if ratio.low is None or ratio.high is None:
        return Value(figures(ratio.value), "1 process", ratio.value, disturbed=disturbed)
    text = figures(ratio.value, ratio.high - ratio.low)
    half = 100 * math.sqrt(ratio.high / ratio.low) - 100
    note = f"\N{PLUS-MINUS SIGN}{figures(half, most=2)}%"
    return Value(text, note, ratio.value, disturbed=disturbed)


def sentence(one: Mode) -> str:
    """Return a sentence on the width of the run's intervals; empty where it has none."""
    own = [(n, one.places[key, n]) for key, n in one.several if key.origin == "run"]
    if not own:
        return ""
    ratios = [(n, place.ratio) for n, place in own if place.ratio]
    long = [ratio for n, ratio in ratios if n >= LONG]
    width = median_width(long)
    text = (
        f"no cell has {LONG} positions or more, from where on the width is stated"
        if width is None
        else f"at lengths of {LONG} and more the 95 % intervals of {count(len(long), 'cell')} are "
        f"{percent(width, width)} % wide (median)"
    )
    asked = sum(len(place.processes) + len(place.endings) for _, place in own)
    return (
        f"{CALLS[one.mode].capitalize()}: {text}; {count(len(own), 'cell')} of "
        f"{span([ratio.pairs for _, ratio in ratios])} processes, the machine busy in "
        f"{sum(place.disturbed for _, place in own)} of {asked}."
    )
