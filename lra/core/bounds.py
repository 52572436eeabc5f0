"""Bounds of figures: a record beyond them was changed or damaged.

JSON holds neither NaN nor infinity: a figure that was not finite is a null with its reason.
"""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import msgspec

from lra.core.cells import BaselineCell
from lra.core.metric_kinds import OPERATORS, SCORES, metric_kinds
from lra.core.migrate import EARLIER
from lra.core.profile_metrics import OPERATOR
from lra.core.protocol import Fraction, Positive
from lra.core.records import Metric, Record

SIGNED = frozenset({"compile_time", "energy", "declared_operations"})
"""Metrics that may be below zero: two are differences of measured figures, one is somebody's own
formula."""
_LEAST, _MOST = 1e-60, 1e60
"""Bounds of a figure that is not zero: beyond them a ratio or a plot's edge overflows."""


class _Method(msgspec.Struct, gc=False):
    """Fields of a record's method that the report reads; the rest is for people."""

    devices: Positive = 1
    throttled_by: tuple[str, ...] = ()
    exact_keys: str = ""
    package: str = ""
    assumed: tuple[str, ...] = ()
    untried: tuple[str, ...] = ()
    largest: Fraction = msgspec.field(name="largest class of the test split", default=0.0)


_SLACK = 1e-9
"""Rounding error, as a share, by which interpolated quartiles of equal samples may miss them."""


def why_impossible(record: Record) -> str | None:
    """Return which figure of a record is impossible and why, in words; None where none is."""
    for finding in record.findings:
        if finding.cases < 0 or finding.seconds < 0:
            return f"the law {finding.law} has a count or a time below zero"
    if wrong := _beside_metrics(record) or _unlike_made(record):
        return wrong
    for metric in record.metrics.values():
        # Thousands of records are read at once, and nearly all metrics need no more than this.
        value = metric.value
        if value and (not _LEAST <= value <= _MOST or (value > 1 and metric.unit == "share")):
            break
        if (metric.q1 is not None or metric.minimum is not None) and not _ordered(metric):
            break
    else:
        return None
    return _named(record)


def _unlike_made(record: Record) -> str | None:
    """Words for the first metric that is not as the code of its kind of cell gives it; None without
    any."""
    ways = metric_kinds(record.cell)
    if isinstance(record.cell, BaselineCell) and record.metrics:
        first = next(iter(record.metrics.values()))
        score = next((one for one in SCORES if one.unit == first.unit), SCORES[0])
        ways = dict.fromkeys(record.metrics, score)
    for name, metric in record.metrics.items():
        if metric.value is None and not metric.why_null:
            return f"{name} has neither a figure nor a reason why not"
        way = ways.get(name)
        if way is None and name.startswith(OPERATOR):
            way = OPERATORS
        if way is not None and (metric.unit != way.unit or metric.better != way.better):
            return f"{name} is in {metric.unit} ({metric.better}), not in {way.unit} ({way.better})"
        if metric.samples:
            if not _is_of_samples(metric) and not _is_earlier(record):
                return f"{name} is not what its samples give"
        elif way is not None and way.sampled and metric.value is not None:
            return f"{name} has no samples"
    return None


def _is_of_samples(metric: Metric) -> bool:
    """Whether least, quartiles and median are those of the samples. A rate's value is one over the
    median time, and is not looked at."""
    ordered = sorted(metric.samples)
    if metric.minimum != ordered[0]:
        return False
    told = ((1, metric.q1), (2, None if metric.unit == "1/s" else metric.value), (3, metric.q3))
    for quarters, one in told:
        place, more = divmod(quarters * (len(ordered) - 1), 4)
        found = ordered[place]
        if more:
            found = (found * (4 - more) + ordered[place + 1] * more) / 4
        if one is None:
            if quarters != 2 or metric.unit != "1/s":
                return False
        elif abs(one - found) > _SLACK * found:
            return False
    return True


def _is_earlier(record: Record) -> bool:
    """Whether the record is of a version that kept only some samples: its quartiles are those of
    all."""
    return any(feature.startswith(EARLIER) for feature in record.cell.versions)


def _is_moment(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).utcoffset() == UTC.utcoffset(None)
    except ValueError:
        return False


def _beside_metrics(record: Record) -> str | None:
    """Words for an impossible curve, picture or field of the record itself; None where all are
    possible."""
    if not _is_moment(record.started_at):
        return f"it was started at {record.started_at!r:.40}, which is no time in UTC"
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
        # A cross-entropy: large in a training that diverges, and never below zero.
        losses = (point.train_loss, point.validation_loss)
        if min(losses) < 0 or max(*losses, point.seconds, point.learning_rate) > _MOST:
            return f"its curve has a figure at step {point.step} that no training has"
    for before, after in pairwise(record.curve):
        if not (before.step < after.step and before.seconds <= after.seconds):
            return f"its curve goes back at step {after.step}"
    steps = [point.step for point in record.curve]
    if steps and record.best_step is not None and record.best_step not in steps:
        return f"its curve has no step {record.best_step}, which is called its best"
    if record.pattern is not None and not 0 <= record.pattern.top <= _MOST:
        return f"the largest value of its picture is {record.pattern.top:g}"
    if record.attended is not None:
        attended = record.attended
        heads = [one for layer in attended.distances for one in layer]
        if not (heads or attended.crosses) or not all(0 <= one <= _MOST for one in heads):
            return "it has no distance of any head, or one that no sequence has"
        tops = [one.top for one in attended.rollouts] + [one.top for one in attended.crosses]
        if not all(0 <= top <= 1 for top in tops):
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
    """Whether least, quartiles and median rise. A rate's value is one over the median time: only
    its least sample bounds it."""
    least, q1, value, q3 = metric.minimum, metric.q1, metric.value, metric.q3
    if least and value and q1 and q3 and _LEAST <= least <= q1 <= value <= q3 <= _MOST:
        # Nearly all metrics pass here.
        return True
    if any(one and not _LEAST <= one <= _MOST for one in (least, q1, q3)):
        return False
    rising = [least, q1, q3] if metric.unit == "1/s" else [least, q1, value, q3]
    known = [one for one in rising if one is not None]
    bounded = value is None or least is None or value >= least * (1 - _SLACK)
    return bounded and all(low <= high * (1 + _SLACK) for low, high in pairwise(known))
