"""Figures that no measurement gives are found, and odd ones that are true are not."""

import msgspec
import pytest
from test_records import CELL

from lra.core.bounds import SIGNED, impossible
from lra.core.findings import Finding
from lra.core.records import CurvePoint, Metric, Record, decode, encode

LOSSES = {"train_loss": 1.0, "validation_loss": 1.0, "validation_accuracy": 0.5}
POINT = CurvePoint(step=1, seconds=1.0, learning_rate=0.1, **LOSSES)
UNITS = ("s", "B", "J", "W", "nat", "bit", "count", "1/s", "B/s", "ratio")


def record(metric=None, name="figure", **fields):
    made = {"metrics": {} if metric is None else {name: metric}, "seconds": 1.0, **fields}
    return Record(id=CELL.id, cell=CELL, status="ok", started_at="", **made)


def spread(least, q1, value, q3, unit="s"):
    return Metric(value=value, unit=unit, minimum=least, q1=q1, q3=q3)


@pytest.mark.parametrize(
    "metric",
    [
        *(Metric.share(value) for value in (7.5, -0.1, 1.0 + 1e-12)),
        *(Metric(value=-1e-9, unit=unit) for unit in UNITS),
        spread(2.0, 1.0, 3.0, 4.0),
        spread(1.0, 3.0, 2.0, 4.0),
        spread(1.0, 2.0, 5.0, 4.0),
        spread(None, 4.0, None, 3.0),
        spread(0.0, 2.0, 1.0, 4.0),
        spread(2.0, 3.0, 1.0, 4.0, unit="1/s"),
    ],
    ids=str,
)
def test_a_figure_that_cannot_be_is_named(metric):
    assert "figure" in (impossible(record(metric)) or "")


@pytest.mark.parametrize(
    "metric",
    [
        Metric.share(0.0),
        Metric.share(1.0),
        Metric(value=None, unit="share", why_null="not measured"),
        Metric(value=12.5, unit="ratio"),
        Metric(value=0.0, unit="s"),
        spread(1.0, 1.0, 1.0, 1.0),
        spread(None, 1.0, 2.0, 3.0),
        spread(0.0, 0.0, 0.0, 0.0),
        # As `statistics.quantiles` interpolates between equal samples.
        spread(0.1, 0.1, 0.1, 0.09999999999999999),
        # One over the median time of two stretches: 2 / (1 + 1/100), below the first quartile.
        spread(1.0, 25.75, 1.98, 75.25, unit="1/s"),
    ],
    ids=str,
)
def test_a_figure_that_can_be_is_let_be(metric):
    assert impossible(record(metric)) is None


@pytest.mark.parametrize("name", sorted(SIGNED))
def test_a_difference_may_be_below_zero(name):
    assert impossible(record(Metric(value=-0.5, unit="s"), name)) is None


@pytest.mark.parametrize("wrong", [{"cases": -1}, {"seconds": -0.5}], ids=str)
def test_a_check_of_less_than_nothing_is_named(wrong):
    found = Finding(law="causality", verdict="held", **wrong)
    assert "causality" in (impossible(record(findings=(found,))) or "")


@pytest.mark.parametrize(
    "wrong",
    [
        {"seconds": -1.0},
        {"parameters": -1},
        {"best_step": -1},
        {"metrics": {"latency": Metric(value=1.0, unit="s", samples=(1.0, -1.0))}},
        {"metrics": {"latency": Metric(value=1.0, unit="s", q1=-1.0)}},
        {"curve": (msgspec.structs.replace(POINT, validation_accuracy=7.5),)},
        {"curve": (msgspec.structs.replace(POINT, seconds=-1.0),)},
        {"curve": (msgspec.structs.replace(POINT, train_loss=float("nan")),)},
    ],
    ids=str,
)
def test_the_schema_refuses_impossible_values(wrong):
    assert decode(encode(record(curve=(POINT,)))).curve == (POINT,)
    with pytest.raises(msgspec.ValidationError):
        decode(encode(msgspec.structs.replace(record(), **wrong)))
