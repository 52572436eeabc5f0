"""Figures that no measurement can give, by which a record shows that it was changed or damaged.

JSON holds neither NaN nor infinity: what was not finite is a null with its reason.
"""

from __future__ import annotations

from itertools import pairwise

import msgspec

from lra.core.protocol import Fraction, Positive
from lra.core.records import Metric, Record

SIGNED = frozenset({"compile_time", "energy", "declared_operations"})
"""Metrics that may be below zero: two are differences of what was measured, one is somebody's own
formula."""
_LEAST, _MOST = 1e-60, 1e60
"""No figure but zero is smaller, and none is larger: beyond, a ratio or a plot's edge overflows."""


class _Method(msgspec.Struct, gc=False):
    """What is read of how a cell was measured, which for the rest is for people."""

    devices: Positive = 1
    throttled_by: tuple[str, ...] = ()
    exact_keys: str = ""
    package: str = ""
    assumed: tuple[str, ...] = ()
    untried: tuple[str, ...] = ()
    largest: Fraction = msgspec.field(name="largest class of the test split", default=0.0)


_SLACK = 1e-9
"""By which a quartile of equal samples may miss them, interpolated as it is."""


def why_impossible(record: Record) -> str | None:
    """Return which figure of a record cannot be true and why, in words; None where all can."""
    for finding in record.findings:
        if finding.cases < 0 or finding.seconds < 0:
            return f"the law {finding.law} has a count or a time below zero"
    if wrong := _beside_metrics(record):
        return wrong
    for metric in record.metrics.values():
        # Thousands of records are read at once, and of nearly all metrics this is all.
        value = metric.value
        if value and (not _LEAST <= value <= _MOST or (value > 1 and metric.unit == "share")):
            break
        if (metric.q1 is not None or metric.minimum is not None) and not _ordered(metric):
            break
    else:
        return None
    return _named(record)


def _beside_metrics(record: Record) -> str | None:
    """What of a curve, a picture or the record itself cannot be."""
    try:
        msgspec.convert(record.method, _Method)
    except msgspec.ValidationError as error:
        return f"its method does not fit: {error}"
    if record.seconds > _MOST:
        return f"its {record.seconds:g} s are more than any run takes"
    counts = (record.parameters or 0, record.best_step or 0)
    if max(*counts, *(f.cases for f in record.findings), *(p.step for p in record.curve)) > _MOST:
        return "it has a count of over 60 digits"
    for point in record.curve:
        # A cross-entropy: of a training that diverges it is large, and never below zero.
        losses = (point.train_loss, point.validation_loss)
        if min(losses) < 0 or max(*losses, point.seconds, point.learning_rate) > _MOST:
            return f"its curve has a figure at step {point.step} that no training has"
    if record.pattern is not None and not 0 <= record.pattern.top <= _MOST:
        return f"the largest value of its picture is {record.pattern.top:g}"
    if record.attended is not None:
        heads = [one for layer in record.attended.distances for one in layer]
        if not heads or not all(0 <= one <= _MOST for one in heads):
            return "it has no distance of any head, or one that no sequence has"
        if not all(0 <= rollout.top <= 1 for rollout in record.attended.rollouts):
            return "a picture of where it looked has a share beyond 1"
    return None


def _named(record: Record) -> str | None:
    for name, metric in record.metrics.items():
        value = metric.value
        if metric.unit == "share" and value is not None and not 0 <= value <= 1:
            return f"{name} = {value:g} is no share of 1"
        if value is not None and value < 0 and name not in SIGNED:
            return f"{name} = {value:g} {metric.unit} is below zero"
        told = (value, metric.minimum, metric.q1, metric.q3)
        if odd := [one for one in told if one and not _LEAST <= abs(one) <= _MOST]:
            return f"{name} has the figure {odd[0]:g}, which nothing measures"
        if not _ordered(metric):
            return f"the quartiles of {name} are out of order"
    return None


def _ordered(metric: Metric) -> bool:
    """Whether the least, the quartiles and the median rise. Of a rate the value is one over the
    median time, which only its least sample bounds."""
    least, q1, value, q3 = metric.minimum, metric.q1, metric.value, metric.q3
    if least and value and q1 and q3 and _LEAST <= least <= q1 <= value <= q3 <= _MOST:
        # Nearly all are.
        return True
    if any(one and not _LEAST <= one <= _MOST for one in (least, q1, q3)):
        return False
    rising = [least, q1, q3] if metric.unit == "1/s" else [least, q1, value, q3]
    known = [one for one in rising if one is not None]
    bounded = value is None or least is None or value >= least * (1 - _SLACK)
    return bounded and all(low <= high * (1 + _SLACK) for low, high in pairwise(known))
