"""Costs of calls pooled over processes: one row for each mechanism, mode, metric and length.

All results on time, memory, energy and state come from this frame. A time is the median over
processes, with their range, or a single process's quartiles. Ratios are to exact attention of the
same origin, setting, mode and length.
"""

from __future__ import annotations

from collections import defaultdict

import msgspec
import numpy as np
import pandas as pd

from lra.core.catalogue import CONTROLS, EXACT
from lra.report.load.select import Evidence
from lra.report.load.settings import CostSetting

CLOSE = 0.1
"""Share of the least figure within which another is not told apart from it, where either is of one
process: its quartiles say nothing of the next process."""
LOOSE = 0.1
"""Share of the median beyond which the distance of one process's quartiles makes a figure
doubtful."""
KEYS = ["setting", "mode", "metric", "length", "origin", "variant"]
_PLACE = ["setting", "mode", "metric", "length", "origin"]
_OF_A_CALL = {
    "latency",
    "latency_wall",
    "energy",
    "energy_seconds",
    "operations",
    "declared_operations",
    "minimum_bytes",
    "peak_allocated_bytes",
    "peak_reserved_bytes",
    "peak_device_bytes",
    "peak_resident_bytes",
    "peak_tensor_bytes",
}
"""Metrics that grow in proportion to the examples of a call."""


class Costs(msgspec.Struct, frozen=True):
    """All costs of a report."""

    pooled: pd.DataFrame
    """One row for each place: `KEYS`, mechanism, label, declared, asked, started_at, value, low,
    high, processes, disturbed, endings, those of exact attention as exact_value and so on, ratio,
    ratio_spread, ratio_disturbed."""
    figures: pd.DataFrame
    """Pooled figures, one row for each process."""
    settings: tuple[CostSetting, ...]
    """Settings, the run's own first, and among these the one with the most figures."""
    own: frozenset[str]
    """Ids of the settings in which the run has figures."""


def costs(evidence: Evidence) -> Costs:
    """Return the costs of all calls that were timed."""
    figures, settings = _per_example(evidence)
    numbers = figures.groupby("setting", sort=False)["origin"].agg(
        run=lambda own: int((own == "run").sum()), all="size"
    )
    order = sorted(
        numbers.index, key=lambda id: (-numbers.run[id], -numbers["all"][id], settings[id].parts)
    )
    return Costs(
        pooled=pool(figures),
        figures=figures,
        settings=tuple(settings[id] for id in order),
        own=frozenset(id for id in order if numbers.run[id]),
    )


def pool(figures: pd.DataFrame) -> pd.DataFrame:
    """Return figures pooled over processes, with exact attention's beside them: see `Costs`."""
    return _with_exact(_pooled(figures))


def _per_example(evidence: Evidence) -> tuple[pd.DataFrame, dict[str, CostSetting]]:
    """Return the figures of timed calls; calls with the same number of positions at every length
    are figures per example.

    So short inputs fill a GPU as well, and lengths are compared at its full rate. Lengths belong
    together where each has a batch of its own and the products are equal, for at least two batches
    of several examples. A call of one example of that product's length counts there, and also among
    other calls of one example.
    """
    figures = evidence.figures[evidence.figures["kind"] == "efficiency"]
    settings = {id: one for id, one in evidence.settings.items() if isinstance(one, CostSetting)}
    lengths = figures.groupby("setting")["length"].agg(lambda own: sorted(set(own)))
    alike: dict[str, list[str]] = defaultdict(list)
    for id in lengths.index:
        alike[msgspec.structs.replace(settings[id], batch=0).id].append(id)
    parts, found = [], dict(settings)
    for ids in alike.values():
        batches = {id: settings[id].batch or 1 for id in ids}
        products = [
            batches[id] * lengths[id][0] for id in ids if batches[id] > 1 and len(lengths[id]) == 1
        ]
        together = {tokens for tokens in products if products.count(tokens) > 1}
        for id in ids:
            own, batch = figures[figures["setting"] == id], batches[id]
            tokens = own["length"] * batch
            joined = tokens.isin(together)
            if joined.any():
                (number,) = set(tokens[joined])
                whole = msgspec.structs.replace(settings[id], batch=None, tokens=number)
                found[whole.id] = whole
                parts.append(_of_one(own[joined], batch, whole.id))
            single = batch == 1 and not joined.all()
            parts.append(own if single else own[~joined])
    own = pd.concat(parts) if parts else figures
    return own, {id: found[id] for id in set(own["setting"])}


def _of_one(own: pd.DataFrame, batch: int, setting: str) -> pd.DataFrame:
    scaled = own.assign(setting=setting)
    call = scaled["metric"].isin(_OF_A_CALL)
    for name in ("value", "q1", "q3", "minimum"):
        scaled[name] = scaled[name].where(~call, scaled[name] / batch)
    return scaled


def _pooled(figures: pd.DataFrame) -> pd.DataFrame:
    """Replicates of one place as one row."""
    known = figures[figures["value"].notna()]
    values = known.groupby(KEYS, sort=False)["value"].agg(["median", "min", "max", "size"])
    quartiles = known.groupby(KEYS, sort=False)[["q1", "q3"]].first()
    shared = figures.groupby(KEYS, sort=False).agg(
        mechanism=("mechanism", "first"),
        label=("label", "first"),
        declared=("declared", "first"),
        asked=("record", "size"),
        started_at=("started_at", "min"),
    )
    disturbed = known.groupby(KEYS, sort=False)["disturbed"].any()
    lost = figures[figures["value"].isna()]
    endings: dict[object, set[tuple[str, str, str]]] = defaultdict(set)
    columns = [*KEYS, "status", "failure", "reason"]
    for *key, status, failure, reason in lost[columns].itertuples(index=False, name=None):
        endings[tuple(key)].add((status, failure, reason))
    pooled = shared.join(values).join(quartiles)
    one = pooled["size"] == 1
    pooled["value"] = pooled["median"]
    pooled["low"] = pooled["min"].where(~one, pooled["q1"].fillna(pooled["value"]))
    pooled["high"] = pooled["max"].where(~one, pooled["q3"].fillna(pooled["value"]))
    pooled["processes"] = pooled["size"].fillna(0).astype("int64")
    pooled["disturbed"] = disturbed.reindex(pooled.index, fill_value=False).astype(bool)
    lists = [tuple(sorted(endings[key])) for key in pooled.index]
    pooled["endings"] = pd.Series(lists, index=pooled.index, dtype=object)
    return pooled.drop(columns=["median", "min", "max", "size", "q1", "q3"]).reset_index()


def _with_exact(pooled: pd.DataFrame) -> pd.DataFrame:
    """Pooled costs with exact attention's cost beside each place, and the ratio to it."""
    anchors = pooled[pooled["mechanism"] == EXACT].sort_values("label")
    shared = ["value", "low", "high", "disturbed", "processes"]
    exact = anchors.groupby(_PLACE, sort=False)[shared].first().add_prefix("exact_")
    joined = pooled.join(exact, on=_PLACE)
    joined["ratio"] = joined["value"] / joined["exact_value"]
    joined["ratio_spread"] = joined["ratio"] * (
        (joined["high"] - joined["low"]) / joined["value"]
        + (joined["exact_high"] - joined["exact_low"]) / joined["exact_value"]
    )
    other = joined["exact_disturbed"].fillna(False).astype(bool)
    joined["ratio_disturbed"] = joined["disturbed"] | (other & joined["ratio"].notna())
    return joined


def is_loose(place: pd.Series) -> bool:
    """Whether the quartiles of a single process's figure are too wide to trust its second digit."""
    return bool(place.processes == 1 and place.high - place.low > LOOSE * place.value)


def is_below(one: pd.Series, other: pd.Series) -> bool:
    """Whether a cost is less than another by more than the spread of processes."""
    if 1 in (one.processes, other.processes) and (1 + CLOSE) * one.value >= other.value:
        return False
    high = one.high if one.processes > 1 else one.value
    return bool(high < (other.low if other.processes > 1 else other.value))


def least(places: pd.DataFrame) -> pd.DataFrame:
    """Return the place of least cost and those not told apart from it, least first.

    A place that was disturbed, or where some process failed, never stands alone.
    """
    known = places[places["value"].notna()].sort_values(["value", "variant"])
    if known.empty:
        return known
    first = known.iloc[0]
    close = [n == 0 or not is_below(first, known.iloc[n]) for n in range(len(known))]
    if sum(close) == 1 and (first.disturbed or first.endings) and len(known) > 1:
        close[1] = True
    return known[np.array(close)]


def fastest(places: pd.DataFrame) -> str | None:
    """Return the variant of the run's cheapest mechanism but the controls, where replicates tell it
    apart; the reference's where the run has none."""
    main = "run" if (places["origin"] == "run").any() else "reference"
    asked = places[(places["origin"] == main) & ~places["mechanism"].isin(CONTROLS)]
    known = asked[asked["value"].notna()]
    if len(known) < 2 or known["disturbed"].any() or (known["processes"] < 2).any():
        return None
    found = least(known)
    return str(found.iloc[0]["variant"]) if len(found) == 1 else None
