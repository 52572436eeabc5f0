"""Figures that no measurement gives are found, and odd ones that are true are not."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from lra.core.attended import Attended, pack_rollout
from msgspec.structs import replace
from test_records import CELL

from lra.core.bounds import SIGNED, why_impossible
from lra.core.findings import Finding
from lra.core.pattern import pack
from lra.core.records import CurvePoint, Metric, Record, decode, encode

POINT = CurvePoint(
    step=1,
    seconds=1.0,
    train_loss=1.0,
    validation_loss=1.0,
    validation_accuracy=0.5,
    learning_rate=0.1,
)
PICTURE = pack(np.ones((1, 2, 2), bool), np.ones((1, 2, 2)), "weights", measured=False)
ROLLOUT = pack_rollout(np.ones((2, 2)), np.ones((2, 2)), label=1, answer=0)
SOUND: dict[str, Any] = {
    "curve": (POINT, replace(POINT, train_loss=1e38, validation_loss=0.0)),
    "pattern": PICTURE,
    "attended": Attended(examples=1, distances=((0.0, 2.5),), rollouts=(ROLLOUT,)),
    "parameters": 10**12,
    "method": {"devices": 2, "largest class of the test split": 0.5, "anything": [7.5]},
    "findings": (Finding(law="causality", verdict="held", cases=3),),
}
UNITS = ("s", "B", "J", "W", "nat", "bit", "count", "1/s", "B/s", "ratio")


def record(metric: Metric | None = None, name: str = "figure", **fields: Any) -> Record:
    metrics = {} if metric is None else {name: metric}
    return Record(
        id=CELL.id, cell=CELL, status="ok", started_at="", seconds=1.0, metrics=metrics, **fields
    )


def spread(*figures: float | None, unit: Any = "s") -> Metric:
    least, q1, value, q3 = figures
    return Metric(value=value, unit=unit, minimum=least, q1=q1, q3=q3)


@pytest.mark.parametrize(
    "metric",
    [
        Metric.share(7.5),
        Metric.share(-0.1),
        Metric.share(1.0 + 1e-12),
        *(Metric(value=-1e-9, unit=unit) for unit in UNITS),
        spread(2.0, 1.0, 3.0, 4.0),
        spread(1.0, 3.0, 2.0, 4.0),
        spread(1.0, 2.0, 5.0, 4.0),
        spread(None, 4.0, None, 3.0),
        spread(0.0, 2.0, 1.0, 4.0),
        spread(2.0, 3.0, 1.0, 4.0, unit="1/s"),
        spread(1.0, 2.0, 3.0, 1e308),
        spread(1e-320, 2.0, 3.0, 4.0),
        spread(2.0, None, 1.0, None),
        Metric(value=1e308, unit="count"),
        Metric(value=1e-320, unit="B/s"),
    ],
    ids=str,
)
def test_a_figure_that_cannot_be_is_named(metric: Metric) -> None:
    assert "figure" in (why_impossible(record(metric)) or "")


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
def test_a_figure_that_can_be_is_let_be(metric: Metric) -> None:
    assert why_impossible(record(metric)) is None


@pytest.mark.parametrize("name", sorted(SIGNED))
def test_a_difference_may_be_below_zero(name: str) -> None:
    assert why_impossible(record(Metric(value=-0.5, unit="s"), name)) is None


@pytest.mark.parametrize("wrong", [{"cases": -1}, {"seconds": -0.5}], ids=str)
def test_a_check_of_less_than_nothing_is_named(wrong: dict[str, Any]) -> None:
    found = Finding(law="causality", verdict="held", **wrong)
    assert "causality" in (why_impossible(record(findings=(found,))) or "")


@pytest.mark.parametrize(
    "wrong",
    [
        {"seconds": 1e308},
        {"parameters": 10**400},
        {"best_step": 10**400},
        {"findings": (Finding(law="causality", verdict="held", cases=10**400),)},
        {"curve": (replace(POINT, step=10**400),)},
        {"curve": (POINT, replace(POINT, validation_loss=-0.5))},
        {"curve": (POINT, replace(POINT, train_loss=1e308))},
        {"method": {"devices": 0}},
        {"method": {"throttled_by": 5}},
        {"method": {"exact_keys": [1]}},
        {"method": {"largest class of the test split": 7.5}},
        {"pattern": replace(PICTURE, top=-1.0)},
        {"pattern": replace(PICTURE, top=1e308)},
        {"attended": Attended(examples=1, distances=())},
        {"attended": Attended(examples=1, distances=((),))},
        {"attended": Attended(examples=1, distances=((1.0, -1.0),))},
        {
            "attended": Attended(
                examples=1, distances=((1.0,),), rollouts=(replace(ROLLOUT, top=7.5),)
            )
        },
    ],
    ids=str,
)
def test_a_figure_beside_the_metrics_is_named(wrong: dict[str, Any]) -> None:
    """A report would divide by it, or draw it."""
    assert why_impossible(record(**SOUND)) is None
    assert why_impossible(replace(record(**SOUND), **wrong))


@pytest.mark.parametrize(
    "wrong",
    [
        {"seconds": -1.0},
        {"parameters": -1},
        {"best_step": -1},
        {"metrics": {"latency": Metric(value=1.0, unit="s", samples=(1.0, -1.0))}},
        {"metrics": {"latency": Metric(value=1.0, unit="s", q1=-1.0)}},
        {"curve": (replace(POINT, validation_accuracy=7.5),)},
        {"curve": (replace(POINT, seconds=-1.0),)},
        {"curve": (replace(POINT, train_loss=float("nan")),)},
    ],
    ids=str,
)
def test_the_schema_refuses_what_it_can(wrong: dict[str, Any]) -> None:
    assert decode(encode(record(curve=(POINT,)))).curve == (POINT,)
    with pytest.raises(msgspec.ValidationError):
        decode(encode(replace(record(), **wrong)))
