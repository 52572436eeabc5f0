"""Figures that no measurement can give, by which a record shows that it was changed or damaged.

JSON holds neither NaN nor infinity: what was not finite is a null with its reason.
"""

from __future__ import annotations

from itertools import pairwise

from lra.core.records import Metric, Record

SIGNED = frozenset({"compile_time", "energy", "declared_operations"})
"""Metrics that may be below zero: two are differences of what was measured, one is somebody's own
formula."""
_SLACK = 1e-9
"""By which a quartile of equal samples may miss them, interpolated as it is."""


def impossible(record: Record) -> str | None:
    """Return which metric of a record cannot be true and why, in words; None where all can."""
    for finding in record.findings:
        if finding.cases < 0 or finding.seconds < 0:
            return f"the law {finding.law} has a count or a time below zero"
    for metric in record.metrics.values():
        # Thousands of records are read at once, and of nearly all metrics this is all.
        value = metric.value
        if value is not None and (value < 0 or (value > 1 and metric.unit == "share")):
            break
        if metric.q1 is not None and not _ordered(metric):
            break
    else:
        return None
    return _named(record)


def _named(record: Record) -> str | None:
    for name, metric in record.metrics.items():
        value = metric.value
        if metric.unit == "share" and value is not None and not 0 <= value <= 1:
            return f"{name} = {value:g} is no share of 1"
        if value is not None and value < 0 and name not in SIGNED:
            return f"{name} = {value:g} {metric.unit} is below zero"
        if metric.q1 is not None and not _ordered(metric):
            return f"the quartiles of {name} are out of order"
    return None


def _ordered(metric: Metric) -> bool:
    """Whether the least, the quartiles and the median rise. The value of a rate is one over the
    median time, which only its least sample bounds."""
    least, q1, value, q3 = metric.minimum, metric.q1, metric.value, metric.q3
    if least and value and q1 and q3 and least <= q1 <= value <= q3:
        # Nearly all are.
        return True
    rising = [least, q1, q3] if metric.unit == "1/s" else [least, q1, value, q3]
    known = [one for one in rising if one is not None]
    bounded = value is None or value >= (least or 0.0) * (1 - _SLACK)
    return bounded and all(low <= high * (1 + _SLACK) for low, high in pairwise(known))
