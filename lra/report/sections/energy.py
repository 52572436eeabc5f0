"""Energy of a call by the board's counter, net of the idle board, and estimates made of it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import pandas as pd

from lra.report.analysis import Assumptions
from lra.report.cost_grid import Grid, grid_of
from lra.report.costs import pool
from lra.report.model import Row, Table, Value
from lra.report.sections.cost_table import CALLS, cost_table
from lra.report.words import figures as digits
from lra.report.words import listing

CALLS_OF_ESTIMATE = 1e6
"""An estimate is of so many calls: one costs too little to read."""
JOULES = 3.6e6
"""Joules of a kWh."""
NET = "net_energy"
_BOARD = "By the GPU board's own counter: without processor, main memory, cooling and power supply."
_TOO_LOW = (
    "Too low by what the board's counter does not see (processor, main memory, cooling, power "
    "supply), and by making the machine."
)


def energy_tables(figures: pd.DataFrame, number: int, assumed: Assumptions) -> list[Table]:
    """Return of each mode in which energy was measured the energy, the same net of the idle board,
    and the estimate; `figures` are of one setting."""
    tables: list[Table] = []
    for mode in CALLS:
        own = figures[figures["mode"] == mode]
        gross = _energy(own)
        if gross.empty or gross["value"].isna().all():
            continue
        net = _net(gross, own)
        grids = [grid_of(pool(found), found, timed=False) for found in (gross, net)]
        measured = [one for one in grids if one is not None and one.values]
        for one in measured:
            tables.append(_table(one, mode, number))
        tables += [_estimate(measured[0], mode, number, assumed)] if _stated(assumed) else []
    return tables


def _energy(figures: pd.DataFrame) -> pd.DataFrame:
    """The energy of each call that was timed, or how it ended."""
    names = ["origin", "record"]
    timed = figures[figures["metric"] == "latency"].set_index(names)
    energy = figures[figures["metric"] == "energy"].set_index(names)
    lost = timed[~timed.index.isin(energy.index)]
    silent = np.where(lost["status"] == "ok", "not in the record", lost["reason"])
    lost = lost.assign(metric="energy", value=np.nan, q1=np.nan, q3=np.nan, reason=silent)
    found = energy[energy.index.isin(timed.index)]
    return (pd.concat([found, lost]) if len(lost) else found).reset_index()[figures.columns]


def _net(gross: pd.DataFrame, figures: pd.DataFrame) -> pd.DataFrame:
    """The same less idle power times the call's time in the same pass."""
    keys = pd.MultiIndex.from_frame(gross[["origin", "record"]])

    def beside(metric: str) -> np.ndarray:
        own = figures[figures["metric"] == metric].set_index(["origin", "record"])["value"]
        return own.reindex(keys).to_numpy()

    idle = beside("idle_power") * beside("energy_seconds")
    value = gross["value"].to_numpy() - idle
    lacking = gross["value"].notna().to_numpy() & np.isnan(idle)
    below = value <= 0
    reason = np.where(
        lacking,
        "the record lacks idle power or the time of a call",
        np.where(below, "not above the idle board", gross["reason"]),
    )
    return gross.assign(
        metric=NET, value=np.where(below, np.nan, value), q1=np.nan, q3=np.nan, reason=reason
    )


def _table(grid: Grid, mode: str, number: int) -> Table:
    net = grid.metric == NET
    return cost_table(
        grid,
        id=f"{'net-energy' if net else 'energy'}-{mode}-{number}",
        title=f"Energy of a {CALLS[mode]}{', net of the idle board' if net else ''}",
        caption="Mean energy less idle power times the time of a call."
        if net
        else "Mean over the calls of half a second or more.",
        notes=() if net else (_BOARD,),
    )


def _stated(assumed: Assumptions) -> list[str]:
    grams = [] if assumed.grams is None else [f"{assumed.grams:g} g of CO2e per kWh"]
    price = [] if assumed.price is None else [f"a price of {assumed.price:g} per kWh"]
    return grams + price


def _estimate(grid: Grid, mode: str, number: int, assumed: Assumptions) -> Table:
    """CO2e, then cost, of a million calls."""
    measured = _table(grid, mode, number)
    call = CALLS[mode]
    calls = f"a million {call}{'es' if call.endswith('s') else 's'}"
    both = assumed.grams is not None and assumed.price is not None
    return Table(
        id=f"estimate-{measured.id}",
        title=f"Estimate: cost of {calls}"
        if assumed.grams is None
        else f"Estimate: CO2e of {calls}, in g",
        caption="Estimated, not measured: the board's whole energy of the call times "
        f"{listing(_stated(assumed))}, as stated when this report was made."
        + (" The second figure is the cost." if both else ""),
        corner=measured.corner,
        columns=measured.columns,
        rows=tuple(_estimated(row, assumed) for row in measured.rows),
        notes=(_TOO_LOW,),
    )


def _estimated(row: Row, assumed: Assumptions) -> Row:
    rates = [rate for rate in (assumed.grams, assumed.price) if rate is not None]

    def value(energy: Value) -> Value:
        if energy.number is None:
            return Value(energy.text)
        values = [CALLS_OF_ESTIMATE * energy.number / JOULES * rate for rate in rates]
        first, *below = [digits(one, most=2) for one in values]
        return Value(first, "".join(below), values[0])

    return msgspec.structs.replace(row, values=tuple(map(value, row.values)))


def why_no_energy(figures: pd.DataFrame) -> list[str]:
    """Return for each machine of the run on which no energy was measured a sentence that says why;
    none where records say nothing of energy."""
    own = figures[(figures["origin"] == "run") & (figures["metric"] == "energy")]
    return [
        f"No energy was measured on {machine} ({device}): "
        f"{listing(sorted({reason for reason in found['reason'] if reason}))}."
        for (machine, device), found in own.groupby(["machine", "device"], sort=True)
        if found["value"].isna().all()
    ]


def no_estimate(figures: pd.DataFrame, assumed: Assumptions) -> Sequence[str]:
    """Return for each machine of the run without measured energy that it has no estimate."""
    if not _stated(assumed):
        return []
    own = figures[figures["origin"] == "run"]
    known = own["value"].where(own["metric"] == "energy").notna()
    why = {"cpu": "the energy of a CPU is not measured"}
    return [
        f"No estimate of CO2e or cost on {machine} ({device}): "
        f"{why.get(str(device), 'no energy was measured there')}."
        for (machine, device), found in known.groupby([own["machine"], own["device"]], sort=True)
        if not found.any()
    ]
