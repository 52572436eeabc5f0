"""Figures that no measurement gives are found, and odd ones that are true are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace
from test_records import BASELINE, CELL

from lra.core.bounds import SIGNED, why_impossible
from lra.core.findings import Finding
from lra.core.pattern import pack
from lra.core.records import CurvePoint, Metric, Record, decode, encode
from lra.core.trained_attention import Attended, pack_rollout

HISTORIC = Path(__file__).parents[1] / "fixtures/records"
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
    "curve": (POINT, replace(POINT, step=2, train_loss=1e38, validation_loss=0.0)),
    "best_step": 2,
    "pattern": PICTURE,
    "attended": Attended(examples=1, distances=((0.0, 2.5),), rollouts=(ROLLOUT,)),
    "parameters": 10**12,
    "method": {"devices": 2, "largest class of the test split": 0.5, "anything": [7.5]},
    "findings": (Finding(law="causality", verdict="held", cases=3),),
}
MOMENT = "2026-11-20T10:00:00+00:00"
UNITS = ("s", "B", "J", "W", "nat", "bit", "count", "1/s", "B/s", "ratio")


def record(metric: Metric | None = None, name: str = "figure", **fields: Any) -> Record:
    metrics = {} if metric is None else {name: metric}
    return Record(
        id=CELL.id,
        cell=CELL,
        status="ok",
        started_at=MOMENT,
        seconds=1.0,
        metrics=metrics,
        **fields,
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
        Metric(value=None, unit="s"),
        Metric(value=None, unit="s", why_null=""),
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


@pytest.mark.parametrize(
    ("name", "unit"), [("compile_time", "s"), ("energy", "J"), ("declared_operations", "count")]
)
def test_a_difference_may_be_below_zero(name: str, unit: Any) -> None:
    assert name in SIGNED
    assert why_impossible(record(Metric(value=-0.5, unit=unit), name)) is None


SAMPLES = (3.0, 1.0, 2.0, 5.0)
TIMED = Metric(value=2.5, unit="s", samples=SAMPLES, minimum=1.0, q1=1.75, q3=3.5)


@pytest.mark.parametrize(
    "wrong",
    [
        {"value": 2.6},
        {"minimum": 1.5},
        {"minimum": None},
        {"q1": 1.7},
        {"q1": None},
        {"q3": 3.6},
        {"samples": (3.0, 1.0, 2.0)},
        {"samples": ()},
        {"unit": "ratio"},
        {"better": "higher"},
        {"value": None},
    ],
    ids=str,
)
def test_a_time_is_what_its_samples_give(wrong: dict[str, Any]) -> None:
    assert why_impossible(record(TIMED, "latency")) is None
    told = why_impossible(record(replace(TIMED, **wrong), "latency"))
    assert told is not None and told.startswith("latency ")


def test_of_a_rate_the_median_is_that_of_the_times() -> None:
    told = replace(TIMED, unit="1/s", better="higher", value=2.4)
    assert why_impossible(record(told)) is None
    assert why_impossible(record(replace(told, q1=None)))


def test_an_earlier_version_kept_only_some_samples() -> None:
    some = replace(TIMED, samples=(3.0, 2.0))
    cell = replace(CELL, versions={"earlier/measuring": "0" * 20})
    assert why_impossible(record(some))
    assert why_impossible(replace(record(some), cell=cell)) is None


@pytest.mark.parametrize("folder", ["schema-1", "schema-2"])
def test_known_metrics_have_their_unit_in_records_of_every_kind(folder: str) -> None:
    files = sorted((HISTORIC / folder).glob("*.json"))
    found = [decode(file.read_bytes()) for file in files]
    changed = 0
    for one in found:
        assert why_impossible(one) is None
        for name, metric in one.metrics.items():
            for wrong in ({"unit": "W"}, {"better": "neither"}, {"unit": "ratio"}):
                other = replace(metric, **wrong)
                if other != metric:
                    changed += 1
                    assert why_impossible(replace(one, metrics={**one.metrics, name: other})), name
    assert changed > 100


def test_the_scores_of_a_baseline_are_all_shares_or_all_bits() -> None:
    share, bits = Metric.share(0.5), Metric(value=7.5, unit="bit")
    one = replace(record(), cell=BASELINE, metrics={"majority": share, "area": share})
    assert why_impossible(one) is None
    assert why_impossible(replace(one, metrics=dict.fromkeys(one.metrics, bits))) is None
    assert why_impossible(replace(one, metrics={**one.metrics, "majority": bits}))
    assert why_impossible(replace(one, metrics={"xz": Metric(value=7.5, unit="ratio")}))


def test_a_figure_of_a_later_version_may_have_any_unit() -> None:
    assert why_impossible(record(Metric(value=7.5, unit="bit"), "surprise")) is None


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
        {"curve": (POINT, replace(POINT, step=2, validation_loss=-0.5))},
        {"curve": (POINT, replace(POINT, step=2, train_loss=1e308))},
        {"curve": (POINT, replace(POINT, step=2), replace(POINT, step=2))},
        {"curve": (replace(POINT, step=2), POINT)},
        {"curve": (POINT, replace(POINT, step=2, seconds=0.5))},
        {"best_step": 3},
        {"started_at": ""},
        {"started_at": "yesterday"},
        {"started_at": "2026-11-20T10:00:00"},
        {"started_at": "2026-11-20T10:00:00+02:00"},
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
