"""Repeatability of times: their ratio to the control over processes, the figure that travels."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec
import pandas as pd

from lra.report.analysis import Analysis
from lra.report.cost_titles import short_titles
from lra.report.costs import Costs
from lra.report.load.settings import CostSetting
from lra.report.model import Section, Table, Value
from lra.report.rows import Key, missing, reference_notes, shown
from lra.report.sections.cost_table import CALLS
from lra.report.sweeps import MODES
from lra.report.words import count, figures, percent, span
from lra.verdict.ratio import Ratio
from lra.verdict.repeatability import LONG, Process, median_width, to_control

TOPIC = "Repeatability"
_TIMES = ("latency", "control_before", "control_after")


class Repeated(msgspec.Struct, frozen=True):
    """One mechanism at one length."""

    ratio: Ratio | None
    endings: tuple[tuple[str, str, str], ...]
    asked: int
    disturbed: int
    """Processes during which the machine was busy."""

    @property
    def several(self) -> bool:
        """Whether there is an interval."""
        return self.ratio is not None and self.ratio.pairs > 1


class Mode(msgspec.Struct, frozen=True):
    """One mode of one setting."""

    mode: str
    keys: tuple[Key, ...]
    lengths: tuple[int, ...]
    places: dict[tuple[Key, int], Repeated]
    figures: pd.DataFrame


class Repeatability(msgspec.Struct, frozen=True):
    """One setting."""

    number: int
    setting: CostSetting
    modes: tuple[Mode, ...]


def analyse(costs: Costs) -> list[Repeatability]:
    """Return of each setting of the run the modes in which some cell has several processes."""
    found = []
    for number, setting in enumerate(costs.settings, start=1):
        own = costs.figures[costs.figures["setting"] == setting.id]
        own = own[own["metric"].isin(_TIMES)]
        modes = [_mode(str(mode), own[own["mode"] == mode]) for mode in MODES]
        several = tuple(one for one in modes if any(p.several for p in one.places.values()))
        if several and setting.id in costs.own:
            found.append(Repeatability(number, setting, several))
    return found


def _mode(mode: str, own: pd.DataFrame) -> Mode:
    timed = own[own["metric"] == "latency"]
    keys = shown(timed)
    values = own.pivot_table("value", ["origin", "record"], "metric", aggfunc="first")
    controls = values.reindex(columns=list(_TIMES)).fillna(0.0)
    by_id: Mapping[tuple[str, str], Key] = {(key.origin, key.variant): key for key in keys}
    places = {}
    for (origin, variant, length), group in timed.groupby(["origin", "variant", "length"]):
        key = by_id.get((str(origin), str(variant)))
        if key is not None:
            places[key, int(str(length))] = _repeated(group, controls)
    return Mode(mode, tuple(keys), tuple(sorted({n for _, n in places})), places, timed)


def _repeated(group: pd.DataFrame, controls: pd.DataFrame) -> Repeated:
    known = group[group["value"].notna()]
    processes = {}
    for origin, record, replicate in zip(
        known["origin"], known["record"], known["replicate"], strict=True
    ):
        cost, before, after = controls.loc[(origin, record)]
        processes[int(replicate)] = Process(float(cost), float(before), float(after))
    lost = group[group["value"].isna()]
    return Repeated(
        ratio=to_control(processes),
        endings=tuple(sorted(zip(lost["status"], lost["failure"], lost["reason"], strict=True))),
        asked=len(group),
        disturbed=int(group["disturbed"].sum()),
    )


def sections(analysis: Analysis) -> list[Section]:
    """Return a section for each setting with several processes."""
    named = short_titles(analysis.costs.settings)
    return [present(one, named[one.setting.id]) for one in analyse(analysis.costs)]


def present(one: Repeatability, title: str) -> Section:
    """Return the section of a setting."""
    return Section(
        topic=TOPIC,
        level="appendix",
        setting=title,
        text=tuple(text for mode in one.modes if (text := sentence(mode))),
        tables=tuple(_table(mode, one.number) for mode in one.modes),
    )


def _table(one: Mode, number: int) -> Table:
    return Table(
        id=f"repeatability-{one.mode}-{number}",
        title=f"Ratio of a {CALLS[one.mode]} to the control",
        caption="Time over that of a plain matrix product in the same process: geometric mean over "
        "processes, with half the width of its 95 % interval. This is the figure to repeat.",
        corner="mechanism",
        columns=tuple(map(str, one.lengths)),
        rows=tuple(
            key.row([_value(one.places.get((key, n))) for n in one.lengths]) for key in one.keys
        ),
        notes=tuple(reference_notes(one.figures, one.keys)),
    )


def _value(place: Repeated | None) -> Value:
    """Return a place as it is printed: `12.3`, below it `±2.5%`; nothing where none was asked."""
    if place is None:
        return Value("")
    if place.ratio is None:
        return Value(missing(place.endings).text)
    ratio, disturbed = place.ratio, place.disturbed > 0
    if ratio.low is None or ratio.high is None:
        return Value(figures(ratio.value), "1 process", ratio.value, disturbed=disturbed)
    text = figures(ratio.value, ratio.high - ratio.low)
    half = 100 * math.sqrt(ratio.high / ratio.low) - 100
    note = f"\N{PLUS-MINUS SIGN}{figures(half, most=2)}%"
    return Value(text, note, ratio.value, disturbed=disturbed)


def sentence(one: Mode) -> str:
    """Return how wide the run's intervals are; empty where it has none."""
    several = [(n, p) for (key, n), p in one.places.items() if key.origin == "run" and p.several]
    if not several:
        return ""
    processes = span([place.ratio.pairs for _, place in several if place.ratio])
    width = median_width([place.ratio for n, place in several if n >= LONG and place.ratio])
    long = sum(n >= LONG for n, _ in several)
    text = (
        f"no cell has {LONG} positions or more, from where on the width is stated"
        if width is None
        else f"at lengths of {LONG} and more the 95 % intervals of {count(long, 'cell')} are "
        f"{percent(width, width)} % wide (median)"
    )
    busy, asked = sum(p.disturbed for _, p in several), sum(p.asked for _, p in several)
    return (
        f"{CALLS[one.mode].capitalize()}: {text}; {count(len(several), 'cell')} of {processes} "
        f"processes, the machine busy in {busy} of {asked}."
    )
