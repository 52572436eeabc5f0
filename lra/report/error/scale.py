"""The error of each mechanism against the size of its inputs, with what theory predicts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

import msgspec

from lra.report.entries import Entry, Origin
from lra.report.table import Row

Laws = Mapping[tuple[Origin, str], Mapping[str, Any]]
"""The method of each record, by its origin and id."""


class ScaleCurve(msgspec.Struct, frozen=True):
    """The output's error of one mechanism at one length and its largest budget."""

    row: Row
    """Of the error tables."""
    points: tuple[tuple[float, float], ...]
    """Input scales and errors, the smallest scale first."""
    law: tuple[tuple[float, float], ...]
    """Input scales and predicted errors, where those are below 1: a first order says no more."""


def scale_curves(
    rows: Sequence[Row],
    group: Sequence[Entry],
    laws: Laws,
    rounding: float,
) -> tuple[ScaleCurve, ...]:
    """Return a curve for the last of each mechanism's `rows`, which stand in the order of budgets.

    `group` are entries of one length, `laws` the methods. What has a figure at one scale
    alone is no curve, and neither is what only rounds.
    """
    last = {(row.origin, row.mechanism): row for row in rows}
    curves = []
    for row in last.values():
        by_scale: dict[float, list[Entry]] = defaultdict(list)
        for e in group:
            if (e.metric, e.origin, e.label) == ("output_error", row.origin, row.variant):
                by_scale[e.input_scale or 0.0].append(e)
        points, law = [], []
        for scale, own in sorted(by_scale.items()):
            values = [e.value for e in own if e.value]
            if len(values) == len(own):
                points.append((scale, mean(values)))
            said = {laws.get((e.origin, e.record), {}).get("predicted_error") for e in own}
            (found,) = said if len(said) == 1 else (None,)
            if isinstance(found, float) and found < 1.0:
                law.append((scale, found))
        if len(points) > 1 and max(value for _, value in points) > rounding:
            curves.append(ScaleCurve(row, tuple(points), tuple(law)))
    return tuple(curves)
