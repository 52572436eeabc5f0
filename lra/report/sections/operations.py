"""Operations that mechanisms declare by formula, and those counted while they ran."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lra.report.costs import Costs
from lra.report.model import Table, Value
from lra.report.rows import row_keys
from lra.report.words import NO_VALUE, TIMES, figures, listing

ALIKE = 1e-3
"""Share of the count within which a formula agrees with it."""


def declared_operations(costs: Costs, setting: str) -> pd.DataFrame:
    """Return a row for each forward pass of a setting whose record has declared operations: origin,
    variant, label, length, `declared`, `counted` and `ratio`; empty where none was compared."""
    own = costs.figures[
        (costs.figures["setting"] == setting) & (costs.figures["mode"] == "forward")
    ]
    names = ["origin", "record"]
    declared = own[own["metric"] == "declared_operations"]
    counted = own[own["metric"] == "operations"].set_index(names)["value"]
    found = declared.assign(declared=declared["value"])
    keys = pd.MultiIndex.from_frame(found[names])
    found["counted"] = counted.reindex(keys).to_numpy() if len(found) else np.nan
    # A library's kernel is not counted: there is nothing to compare with.
    found["ratio"] = found["declared"] / found["counted"].where(found["counted"] > 0)
    found["ratio"] = found["ratio"].where(found["declared"] > 0)
    return found if found["ratio"].notna().any() else found.iloc[:0]


def _differing(declared: pd.DataFrame) -> set[str]:
    off = declared[(declared["ratio"] - 1.0).abs() > ALIKE]
    return set(off["variant"])


def declared_table(declared: pd.DataFrame, number: int) -> Table | None:
    """Return a table of the ratios of mechanisms whose formulas differ from the counts; None
    without any."""
    off = declared[declared["variant"].isin(_differing(declared))]
    if off.empty:
        return None
    lengths = sorted({int(n) for n in declared[declared["ratio"].notna()]["length"]})
    ratios = off.groupby(["origin", "variant", "length"])["ratio"].first().to_dict()

    def value(*place: object) -> Value:
        ratio = ratios.get(place, np.nan)
        # Three digits would hide a difference of a thousandth.
        known = ratio == ratio
        return Value(f"{figures(ratio, most=4)}{TIMES}", number=ratio) if known else Value(NO_VALUE)

    return Table(
        id=f"declared-{number}",
        title="Declared operations of a forward pass, as a multiple of those counted",
        caption=f"Mechanisms where they differ by more than {100 * ALIKE:g} %.",
        corner="mechanism",
        columns=tuple(map(str, lengths)),
        rows=tuple(
            key.row([value(key.origin, key.variant, n) for n in lengths]) for key in row_keys(off)
        ),
    )


def agreement(declared: pd.DataFrame) -> list[str]:
    """Return how many mechanisms agree with their formulas, and which cannot be compared and
    why."""
    off = _differing(declared)
    compared = declared[declared["ratio"].notna()]
    every = set(compared["variant"])
    rest = declared[~declared["variant"].isin(every)]
    uncounted = sorted(set(rest[rest["declared"] > 0]["label"]))
    undeclared = sorted(set(rest["label"]) - set(uncounted))
    found = []
    if every - off:
        whole = f"all {len(every)} compared" if not off else f"{len(every - off)} of {len(every)}"
        found.append(
            "Mechanisms that count in a forward pass the operations that they declare "
            f"(within {100 * ALIKE:g} %): {whole}."
        )
    if uncounted:
        found.append(f"In a library's kernel torch sees no product: {listing(uncounted)}.")
    if undeclared:
        found.append(f"No operations are declared by {listing(undeclared)}.")
    return [" ".join(found)] if found else []
