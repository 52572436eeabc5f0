"""Decoding: the time of the prompt and of each token after it, and the state kept between."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pandas as pd

from lra.report.analysis import Analysis
from lra.report.cost_grid import Grid, grid
from lra.report.cost_titles import short_titles, titles
from lra.report.costs import Costs
from lra.report.crossover import crossovers
from lra.report.load.settings import CostSetting
from lra.report.model import Section, Table, drawn
from lra.report.plots.cost import cost_figure
from lra.report.plots.style import Looks
from lra.report.rows import of_the_run_first
from lra.report.sections.cost_table import cost_table
from lra.report.sweeps import by_row
from lra.report.words import listing

TOPIC = "Decoding"
_TITLES = {
    "latency": ("Time of a decoding step", "Median time of one token after so many.", "time"),
    "state_bytes": ("State kept after the prompt", "Bytes of its tensors.", "state"),
    "prefill": ("Time to take in the prompt", "Median.", "prefill"),
}
"""Title, caption and noun by metric; the noun is also the kind of cost in crossovers."""


class Decoding(msgspec.Struct, frozen=True):
    """Costs of decoding in one setting."""

    number: int
    setting: CostSetting
    grids: tuple[Grid, ...]
    crossing: pd.DataFrame
    errors: pd.DataFrame
    """Differences between a step and the parallel form, one row for each process."""
    own: bool


def analyse(costs: Costs) -> list[Decoding]:
    """Return the costs of each setting with timed decoding steps."""
    found = []
    for number, setting in enumerate(costs.settings, start=1):
        grids = [grid(costs, setting.id, "decode", metric) for metric in _TITLES]
        if grids[0] is None:
            continue
        own = costs.figures[costs.figures["setting"] == setting.id]
        found.append(
            Decoding(
                number=number,
                setting=setting,
                grids=tuple(one for one in grids if one is not None),
                crossing=crossovers(costs, setting.id),
                errors=own[(own["mode"] == "decode") & (own["metric"] == "decode_error")],
                own=setting.id in costs.own,
            )
        )
    return found


def sections(analysis: Analysis) -> list[Section]:
    """Return a section for each setting with decoding."""
    whole, short = (of(analysis.costs.settings) for of in (titles, short_titles))
    return [
        section
        for one in analyse(analysis.costs)
        for made in present(one, analysis.looks, whole[one.setting.id], short[one.setting.id])
        for section in of_the_run_first(made)
    ]


def present(one: Decoding, looks: Looks, title: str, short: str) -> list[Section]:
    """Return the section of a setting with its times, and one of all else."""
    drawn_metrics = ("latency", "state_bytes")
    shown = [grid.of_the_run() for grid in one.grids if grid.metric in drawn_metrics]
    figure = cost_figure(
        f"decoding-{one.number}",
        "Decoding against length of the context",
        shown,
        looks,
        axis="context length",
    )
    times, *others = (_table(one, grid) for grid in one.grids)
    found = Section(
        topic=TOPIC,
        setting=title,
        text=tuple(exactness(one.errors)),
        tables=(times,),
        figures=drawn([figure] if one.own else []),
    )
    rest = ": ".join(filter(None, [short, "state and prompt"]))
    return [found, *([Section(topic=TOPIC, setting=rest, tables=tuple(others))] if others else [])]


def _table(one: Decoding, grid: Grid) -> Table:
    title, caption, kind = _TITLES[grid.metric]
    return cost_table(
        grid,
        id=f"decode-{kind}-{one.number}",
        title=title,
        caption=caption,
        crossing=by_row(one.crossing, kind, "decode"),
    )


def exactness(errors: pd.DataFrame) -> list[str]:
    """Return the largest difference of a decoding step from the parallel form, and the steps
    without one."""
    known = errors[errors["value"].notna()]
    lost = errors[errors["value"].isna() & (errors["status"] == "ok")]
    found = []
    if len(known):
        worst = known.sort_values(["value", "label", "length"]).iloc[-1]
        found.append(
            f"A step differs from the parallel form by at most {worst.value:.0e} of the largest "
            f"output ({worst.label} after {worst.length} positions)."
        )
    if len(lost):
        parts = [
            f"{label} after {listing(_numbers(own['length']))} positions"
            for (label, _), own in lost.groupby(["label", "variant"], sort=True)
        ]
        found.append(f"The difference from the parallel form is not finite: {'; '.join(parts)}.")
    return found


def _numbers(lengths: pd.Series) -> Sequence[str]:
    return [str(n) for n in sorted(set(lengths))]
