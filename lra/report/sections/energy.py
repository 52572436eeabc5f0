"""Energy of a call by the board's counter, net of the idle board, and estimates from it."""

from __future__ import annotations

import msgspec
import numpy as np
import pandas as pd

from lra.report.assumptions import Assumptions
from lra.report.cost_grid import Grid, grid_of
from lra.report.costs import pool
from lra.report.load.settings import CostSetting
from lra.report.model import Row, Table, Value
from lra.report.rows import Key
from lra.report.sections.cost_table import CALLS, cost_table
from lra.report.words import figures as digits
from lra.report.words import listing, machine_words, scale_of

CALLS_OF_ESTIMATE = 1e6
"""Number of calls in an estimate: one costs too little to read."""
JOULES = 3.6e6
"""Joules in a kWh."""
NET = "net_energy"
_BOARD = "By the GPU board's own counter: without processor, main memory, cooling and power supply."
_TOO_LOW = (
    "Too low by what the board's counter does not see (processor, main memory, cooling, power "
    "supply), and by making the machine."
)


def energy_tables(
    figures: pd.DataFrame, mode: str, number: int, assumed: Assumptions
) -> list[Table]:
    """Return tables of the energy of one mode and setting, with its part above the idle board, and
    of the estimates; nothing where none was measured."""
    gross = _energy(figures)
    if gross.empty or gross["value"].isna().all():
        return []
    whole, above = (grid_of(pool(one), one, timed=False) for one in (gross, _net(gross, figures)))
    assert whole is not None and above is not None, "both have a row a call"
    table = _table(whole, above, number)
    return [table, *_estimate(table, mode, assumed)]


def _energy(figures: pd.DataFrame) -> pd.DataFrame:
    """Energy of each timed call, or its ending."""
    names = ["origin", "record"]
    timed = figures[figures["metric"] == "latency"].set_index(names)
    energy = figures[figures["metric"] == "energy"].set_index(names)
    lost = timed[~timed.index.isin(energy.index)]
    silent = np.where(lost["status"] == "ok", "not in the record", lost["reason"])
    lost = lost.assign(metric="energy", value=np.nan, q1=np.nan, q3=np.nan, reason=silent)
    found = energy[energy.index.isin(timed.index)]
    return (pd.concat([found, lost]) if len(lost) else found).reset_index()[figures.columns]


def _net(gross: pd.DataFrame, figures: pd.DataFrame) -> pd.DataFrame:
    """Energy less idle power times the call's time in the same pass."""
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


def _table(whole: Grid, above: Grid, number: int) -> Table:
    """Table of the energy of calls; the second line ends with the part above the idle board."""
    table = cost_table(
        whole,
        id=f"energy-{whole.mode}-{number}",
        title=f"Energy of a {CALLS[whole.mode]}",
        caption="Mean over the calls of half a second or more; net: less idle power times the time "
        "of a call.",
        notes=(_BOARD, *_no_net(whole, above)),
    )
    size, _ = scale_of(whole.values, "J")

    def value(key: Key, length: int, own: Value) -> Value:
        place = above.places.get((key, length))
        if place is None or not place.known:
            return own
        net = f"net {digits(place.value / size, (place.high - place.low) / size)}"
        return msgspec.structs.replace(own, note="; ".join(filter(None, (own.note, net))))

    keys = {(key.origin, key.variant): key for key in whole.keys}
    rows = [
        msgspec.structs.replace(
            row,
            values=tuple(
                value(keys[row.origin, row.variant], n, own)
                for n, own in zip(whole.lengths, row.values, strict=True)
            ),
        )
        for row in table.rows
    ]
    return msgspec.structs.replace(table, rows=tuple(rows))


def _no_net(whole: Grid, above: Grid) -> list[str]:
    """Notes on why measured energies have no net."""
    found = {
        reason
        for at, place in above.places.items()
        for _, _, reason in place.endings
        if whole.places[at].known and not place.known
    }
    return [f"No net energy: {'; '.join(sorted(found))}."] if found else []


def _stated(assumed: Assumptions) -> list[str]:
    grams = [] if assumed.grams is None else [f"{assumed.grams:g} g of CO2e per kWh"]
    price = [] if assumed.price is None else [f"a price of {assumed.price:g} per kWh"]
    return grams + price


def _estimate(measured: Table, mode: str, assumed: Assumptions) -> list[Table]:
    """Estimates of CO2e, then cost, of a million calls; nothing without assumptions."""
    stated = _stated(assumed)
    if not stated:
        return []
    call = CALLS[mode]
    calls = f"a million {call}{'es' if call.endswith('s') else 's'}"
    table = Table(
        id=f"estimate-{measured.id}",
        title=f"Estimate: cost of {calls}"
        if assumed.grams is None
        else f"Estimate: CO2e of {calls}, in g",
        caption="Estimated, not measured: the board's whole energy of the call times "
        f"{listing(stated)}, as stated when this report was made."
        + (" The second line is the cost." if len(stated) > 1 else ""),
        corner=measured.corner,
        columns=measured.columns,
        rows=tuple(_estimated(row, assumed) for row in measured.rows),
        notes=(_TOO_LOW,),
    )
    return [table]


def _estimated(row: Row, assumed: Assumptions) -> Row:
    rates = [rate for rate in (assumed.grams, assumed.price) if rate is not None]

    def value(energy: Value) -> Value:
        if energy.number is None:
            return Value(energy.text)
        values = [CALLS_OF_ESTIMATE * energy.number / JOULES * rate for rate in rates]
        first, *below = [digits(one, most=2) for one in values]
        return Value(first, "".join(below), values[0])

    return msgspec.structs.replace(row, values=tuple(map(value, row.values)))


def why_no_energy(figures: pd.DataFrame, setting: CostSetting) -> list[str]:
    """Return a sentence on why no energy was measured in the run's calls of a setting; none where
    some was, or where records say nothing of energy."""
    own = figures[(figures["origin"] == "run") & (figures["metric"] == "energy")]
    if own.empty or own["value"].notna().any():
        return []
    reasons = listing(sorted({reason for reason in own["reason"] if reason}))
    return [f"No energy was measured on {machine_words(setting.machine)}: {reasons}."]


def no_estimate(figures: pd.DataFrame, setting: CostSetting, assumed: Assumptions) -> list[str]:
    """Return a sentence that the run's calls of a setting have no estimate, where their energy is
    unknown."""
    own = figures[figures["origin"] == "run"]
    known = own[(own["metric"] == "energy") & own["value"].notna()]
    if not _stated(assumed) or own.empty or len(known):
        return []
    why = {"cpu": "the energy of a CPU is not measured"}
    where = machine_words(setting.machine)
    reason = why.get(setting.device, "no energy was measured there")
    return [f"No estimate of CO2e or cost on {where}: {reason}."]
