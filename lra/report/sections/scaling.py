"""Time, memory and energy by length, with their growth and the crossover with exact attention."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

import msgspec
import pandas as pd

from lra.core.catalogue import EXACT, NO_MIXING
from lra.report.analysis import Analysis
from lra.report.cost_grid import Grid, grid
from lra.report.cost_titles import short_titles, titles
from lra.report.costs import Costs
from lra.report.crossover import crossovers
from lra.report.growth import growths, is_unfused
from lra.report.load.disturbed import SIGNS
from lra.report.load.frame import PEAK_MEMORY
from lra.report.load.settings import CostSetting
from lra.report.model import Section, Table, drawn
from lra.report.plots.cost import cost_figure
from lra.report.plots.crossover import crossover_figure
from lra.report.plots.style import Looks
from lra.report.rows import ALL_ROWS, of_the_run
from lra.report.sections.cost_table import CALLS, cost_table, is_loose
from lra.report.sections.energy import energy_tables, no_estimate, why_no_energy
from lra.report.sections.peers import compared
from lra.report.sweeps import by_row
from lra.report.words import percent, quantity, span

TOPIC = "Scaling"
MODES = ("train", "forward")
_PEAK = {
    "cpu": "Peak resident memory above its level before the call",
    "cuda": "Peak memory in live tensors above its level before the call",
}
_HOW = (
    f"Small figures: the multiple of {EXACT} on the same machine. Bold: the fastest but for "
    f"{NO_MIXING}, where processes tell it apart. Growth: the exponent of length fitted to all "
    "figures; below, to the last two doublings. Declared: the exponent on the mechanism's card, "
    "and whether the cost surely grows faster, or faster than linearly where less is declared: "
    "inputs and outputs alone are linear. Pays from: the length from which it stays below "
    f"{EXACT}; below, the range over processes, or over the quartiles of one process."
)


class Scaling(msgspec.Struct, frozen=True):
    """Costs of one mode and setting."""

    number: int
    """Number of the setting among those of the report."""
    setting: CostSetting
    mode: str
    time: Grid
    size: Grid | None
    growth: pd.DataFrame
    crossing: pd.DataFrame
    figures: pd.DataFrame
    """Figures of the mode, one row for each process."""
    own: bool
    """Whether the run has figures here."""


def analyse(costs: Costs) -> list[Scaling]:
    """Return the costs of each setting and mode in which a whole call was timed, the run's main
    setting first, and training before forward passes. Public packages that another section
    compares with ours are left out."""
    found, elsewhere = [], compared(costs)
    for number, setting in enumerate(costs.settings, start=1):
        own = costs.figures[costs.figures["setting"] == setting.id]
        growth, crossing = growths(costs, setting.id), crossovers(costs, setting.id)
        for mode in MODES:
            time = grid(costs, setting.id, mode, "latency")
            if time is not None:
                size = grid(costs, setting.id, mode, PEAK_MEMORY[setting.device])
                others = elsewhere.get((setting.id, mode), frozenset())
                time, size = time.without(others), size and size.without(others)
                here = own[own["mode"] == mode]
                is_own = setting.id in costs.own
                found.append(
                    Scaling(number, setting, mode, time, size, growth, crossing, here, is_own)
                )
    return found


def sections(analysis: Analysis) -> list[Section]:
    """Return the sections of each setting and mode."""
    whole, short = (of(analysis.costs.settings) for of in (titles, short_titles))
    found: list[Section] = []
    told: set[str] = set()
    for one in analyse(analysis.costs):
        lacking = [
            *why_no_energy(one.figures, one.setting),
            *no_estimate(one.figures, one.setting, analysis.assumed),
        ]
        text = [*_text(one, told), *(sentence for sentence in lacking if sentence not in told)]
        told |= {*lacking}
        spent = energy_tables(one.figures, one.mode, one.number, analysis.assumed)
        # Words that settings share stand in the first title alone.
        named = [
            ": ".join(filter(None, (CALLS[one.mode], words[one.setting.id])))
            for words in (short if found else whole, short)
        ]
        found += present(one, analysis.looks, named, text, spent, first=not found)
    return found


def present(
    one: Scaling,
    looks: Looks,
    named: Sequence[str],
    text: Iterable[str],
    spent: Sequence[Table],
    *,
    first: bool,
) -> list[Section]:
    """Return the section, one of the rows and lengths that were tried seldom, and one of all rows
    where the reference has others than the run is read against: the first is named by the first of
    `named`, all others by the last. Plots are only of the `first` setting, since tables have the
    same figures."""
    title, short = named
    split = [grid.split() for grid in (one.time, one.size) if grid is not None]
    whole = [grid for grid, _ in split]
    few = [rest for _, rest in split if rest is not None]
    main = [grid.of_the_run() for grid in whole]
    is_all = all(len(near.keys) == len(grid.keys) for near, grid in zip(main, whole, strict=True))
    place = f"{one.mode}-{one.number}"
    figures, multiples = [], []
    if one.own and first:
        title_of = "Time and peak memory against length"
        figures = [cost_figure(f"scaling-{place}", title_of, main, looks)]
        multiples = [crossover_figure(f"crossover-{place}", whole, one.crossing, looks)]
    found = [
        Section(
            topic=TOPIC,
            setting=title,
            text=tuple(text),
            tables=(*(_table(one, grid) for grid in main), *map(_near, spent)),
            figures=drawn([*figures, *(multiples if is_all else [])]),
        )
    ]
    if few:
        tables = tuple(_table(one, rest, "few") for rest in few)
        found.append(Section(topic=TOPIC, setting=f"{short}: tried seldom", tables=tables))
    if not is_all:
        tables = (
            *(_table(one, grid, "all") for grid in whole),
            *(msgspec.structs.replace(table, id=f"{table.id}-all") for table in spent),
        )
        setting = f"{short}: {ALL_ROWS}"
        found.append(Section(topic=TOPIC, setting=setting, tables=tables, figures=drawn(multiples)))
    return found


def _near(table: Table) -> Table:
    return msgspec.structs.replace(table, rows=of_the_run(table.rows))


def _table(one: Scaling, grid: Grid, part: str = "") -> Table:
    kind, few = "time" if grid.metric == "latency" else "memory", part == "few"
    what = "Median time of a call." if kind == "time" else f"{_PEAK[one.setting.device]}."
    return cost_table(
        grid,
        id=f"{kind}-{grid.mode}-{one.number}{'-' if part else ''}{part}",
        title=f"{'Time' if kind == 'time' else 'Peak memory'} of a {CALLS[grid.mode]}",
        legend=(what, _HOW),
        growth=None if few else by_row(one.growth, kind, grid.mode),
        crossing=None if few else by_row(one.crossing, kind, grid.mode),
    )


def _text(one: Scaling, told: set[str]) -> list[str]:
    """Text on the method, the steadiness of the machine, and the marks; on exact attention where
    that is not among the sentences `told`."""
    if not one.own:
        return ["Reference rows of another machine or build: compare multiples, never times."]
    places = [place for place in one.time.places.values() if place.known]
    parts = []
    if places:
        processes = span([place.processes for place in places])
        parts.append(
            "One process a figure." if processes == "1" else f"Medians of {processes} processes."
        )
    parts += _control(one.figures)
    exact = (
        f"With dropout on its weights torch has no fused kernel for {EXACT} on a CPU."
        if is_unfused(one.setting, one.mode)
        else f"{EXACT} is exact attention, fused; {NO_MIXING} mixes nothing."
    )
    parts += [] if exact in told else [exact]
    told.add(exact)
    if any(place.disturbed for place in places):
        parts.append(f"!: timed on a busy machine ({SIGNS}); --rerun disturbed times it again.")
    if any(is_loose(place) for place in places):
        parts.append("~: quartiles more than 10 % of the median apart.")
    return [" ".join(parts)]


def _control(figures: pd.DataFrame) -> list[str]:
    """Sentence on the time of the control, and its drift within one cell."""
    names = ["control_before", "control_after"]
    own = figures[figures["metric"].isin(names) & (figures["value"] > 0)]
    pairs = own.pivot_table("value", ["origin", "record"], "metric", aggfunc="first")
    if not set(names) <= set(pairs.columns) or pairs.dropna().empty:
        return []
    pairs = pairs.dropna()[names]
    drift = float((pairs.max(axis=1) / pairs.min(axis=1)).max()) - 1
    middle = quantity(median(pairs.to_numpy().ravel()), "s")
    return [
        f"The control, a plain matrix product, took {middle}, "
        f"up to {percent(drift, 1)} % apart before and after a call."
    ]
