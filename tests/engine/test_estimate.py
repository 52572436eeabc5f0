"""How long cells may take, by records of their like."""

from __future__ import annotations

from itertools import permutations

import pytest
from msgspec.structs import replace

from lra.core.cells import BaselineCell, CeilingCell, EfficiencyCell, ProfileCell, QualityCell
from lra.core.protocol import DataSpec, Machine, Mechanism, ModelSpec, Rows, TrainSpec
from lra.core.records import Metric, Record
from lra.engine.order.estimate import Estimate

CELL = EfficiencyCell(
    machine=Machine(processor="none", cores=1),
    torch="",
    threads=1,
    versions={},
    scale="mini",
    mechanism=Mechanism(name="linear"),
    length=1024,
    mode="train",
    heads=1,
    head_width=4,
)


def record(length: int, seconds: float, **changes: object) -> Record:
    cell = replace(CELL, length=length)
    made = Record(id=cell.id, cell=cell, status="ok", started_at="", seconds=seconds)
    return replace(made, **changes)


def test_the_nearest_record_tells_and_longer_inputs_cost_more() -> None:
    estimate = Estimate([record(256, 1.0), record(1024, 3.0), record(1024, 99.0, status="oom")])
    assert estimate.seconds(CELL) == pytest.approx(3.0)
    assert estimate.seconds(replace(CELL, length=4096)) == pytest.approx(48.0)
    # A short cell is mostly what a cell costs at any length.
    assert estimate.seconds(replace(CELL, length=16)) == pytest.approx(1.0)


def test_the_nearest_is_that_which_differs_by_the_least_factor() -> None:
    estimate = Estimate([record(256, 2.5), record(8192, 12.0)])
    assert estimate.seconds(replace(CELL, length=4096)) == pytest.approx(12.0)


def test_of_several_records_that_are_as_near_the_oldest_tells() -> None:
    of_one_size = [record(1024, 5.0, started_at="2"), record(1024, 3.0, started_at="1")]
    assert Estimate(of_one_size).seconds(CELL) == pytest.approx(3.0)
    around = [record(2048, 5.0, started_at="2"), record(512, 3.0, started_at="1")]
    assert Estimate(around).seconds(CELL) == pytest.approx(12.0)
    around = [record(2048, 5.0, started_at="1"), record(512, 3.0, started_at="2")]
    assert Estimate(around).seconds(CELL) == pytest.approx(5.0)


def test_nothing_is_said_of_what_no_record_is_like() -> None:
    estimate = Estimate([record(1024, 3.0)])
    for changes in ({"mode": "forward"}, {"level": "attention"}, {"device": "cuda"}):
        assert estimate.seconds(replace(CELL, **changes)) is None


def test_baselines_and_limits_are_known_by_those_of_their_kind_alone() -> None:
    def measured(cell: BaselineCell | CeilingCell, seconds: float) -> Record:
        return Record(id=cell.id, cell=cell, status="ok", started_at="", seconds=seconds)

    whole = {"machine": CELL.machine, "torch": "", "threads": 1, "versions": {}}
    text = BaselineCell(**whole, scale="compact", data=TRAINING.data)
    listops = replace(TRAINING.data, task="listops")
    limit = CeilingCell(**whole)
    estimate = Estimate([measured(text, 800.0), measured(limit, 3.0)])
    assert estimate.seconds(text) == pytest.approx(800.0)
    assert estimate.seconds(limit) == pytest.approx(3.0)
    for other in (
        replace(text, data=listops),
        replace(text, scale="mini"),
        replace(text, data=replace(text.data, source="hub:a")),
        replace(limit, dtype="bfloat16"),
        replace(limit, device="cuda"),
    ):
        assert estimate.seconds(other) is None


def test_a_training_that_was_continued_took_all_of_its_stretches() -> None:
    """Its record began with the last of them."""
    whole = {"training_seconds": Metric(value=40.0, unit="s", better="lower")}
    assert Estimate([record(1024, 3.0, metrics=whole)]).seconds(CELL) == pytest.approx(40.0)
    assert Estimate([record(1024, 45.0, metrics=whole)]).seconds(CELL) == pytest.approx(45.0)


TRAINING = QualityCell(
    machine=CELL.machine,
    torch="",
    threads=1,
    versions={},
    scale="compact",
    mechanism=CELL.mechanism,
    data=DataSpec(task="text", hash="", length=64, rows=Rows(train=9, validation=50, test=80)),
    model=ModelSpec(layers=1, width=8, qkv_width=8, heads=2, mlp_width=8),
    training=TrainSpec(steps=1000, batch=2, learning_rate=0.1, evaluate_every=400),
)


def profiled(step: float, row: float, **changes: object) -> Record:
    """Profile of a step of that training, whose data turned out to have fewer rows."""
    shared = ("machine", "torch", "threads", "versions", "scale", "mechanism", "data", "model")
    same = {name: getattr(TRAINING, name) for name in (*shared, "training")}
    cell = ProfileCell(**{**same, **changes})
    seconds = {"step_seconds": step, "row_seconds": row}
    return Record(
        id=cell.id, cell=cell, status="ok", started_at="1", seconds=20.0,
        metrics={name: Metric(value=value, unit="s") for name, value in seconds.items()},
        rows=Rows(train=9, validation=40, test=60),
    )  # fmt: skip


def test_a_training_without_a_record_takes_its_steps_and_evaluations() -> None:
    estimate = Estimate([profiled(0.5, 0.01)])
    # Validations after 400, 800 and 1000 steps, of 40 rows, and one test of 60.
    assert estimate.seconds(TRAINING) == pytest.approx(500 + (3 * 40 + 60) * 0.01)
    assert estimate.is_by_profile(TRAINING)
    other = replace(TRAINING.training, steps=400)
    shorter = replace(TRAINING, training=other, seed=2)
    assert estimate.seconds(shorter) == pytest.approx(200 + (40 + 60) * 0.01)
    for changes in (
        {"scale": "mini"},
        {"device": "cuda"},
        {"mechanism": Mechanism(name="full")},
        {"data": replace(TRAINING.data, task="image")},
    ):
        assert estimate.seconds(replace(TRAINING, **changes)) is None


ELSEWHERE = Machine(processor="other", cores=9)


def trained(seconds: float, *, started_at: str = "0", **changes: object) -> Record:
    """Record of that training with changes to its cell or to its protocol."""
    own = {name: changes.pop(name) for name in ("steps", "batch") if name in changes}
    protocol = replace(TRAINING.training, **own)
    cell = replace(TRAINING, **{"training": protocol, **changes})
    return Record(id=cell.id, cell=cell, status="ok", started_at=started_at, seconds=seconds)


def test_the_record_of_a_training_tells_more_than_a_profile() -> None:
    estimate = Estimate([trained(90.0, machine=ELSEWHERE), profiled(0.5, 0.0), trained(70.0)])
    assert estimate.seconds(TRAINING) == pytest.approx(70.0)
    assert not estimate.is_by_profile(TRAINING)


@pytest.mark.parametrize(
    "other",
    [{"machine": ELSEWHERE}, {"steps": 20}, {"batch": 64}, {"threads": 8},
     {"model": replace(TRAINING.model, layers=9)}],
)  # fmt: skip
def test_a_profile_tells_more_than_a_training_unlike_the_one_asked(
    other: dict[str, object],
) -> None:
    estimate = Estimate([trained(70.0, **other), profiled(0.5, 0.0)])
    assert estimate.seconds(TRAINING) == pytest.approx(500.0)
    assert estimate.is_by_profile(TRAINING)


@pytest.mark.parametrize(
    "other", [{"machine": ELSEWHERE}, {"threads": 8}, {"mechanism": Mechanism(
        name="linear", config={"features": 256})}],
)  # fmt: skip
def test_a_profile_unlike_the_training_asked_does_not(other: dict[str, object]) -> None:
    estimate = Estimate([trained(70.0, steps=500), profiled(0.5, 0.0, **other)])
    assert estimate.seconds(TRAINING) == pytest.approx(140.0)
    assert not estimate.is_by_profile(TRAINING)


def test_a_training_on_several_devices_says_nothing_of_one() -> None:
    shared = replace(trained(70.0), method={"devices": 4})
    assert Estimate([shared]).seconds(TRAINING) is None
    assert Estimate([shared, profiled(0.5, 0.0)]).is_by_profile(TRAINING)
    alone = replace(trained(90.0, started_at="1"), method={"devices": 1})
    assert Estimate([shared, alone]).seconds(TRAINING) == pytest.approx(90.0)


def test_of_several_profiles_the_newest_tells_and_best_that_of_the_same_machine() -> None:
    elsewhere = profiled(9.0, 0.0, machine=ELSEWHERE)
    newer = replace(profiled(2.0, 0.0), started_at="2")
    newest = replace(elsewhere, started_at="3")
    assert Estimate([newest]).seconds(TRAINING) == pytest.approx(9000.0)
    for records in permutations([newest, newer, profiled(1.0, 0.0)]):
        assert Estimate(records).seconds(TRAINING) == pytest.approx(2000.0)


def features(count: int) -> dict[str, object]:
    return {"mechanism": Mechanism(name="linear", config={"features": count})}


def data(**changes: object) -> dict[str, object]:
    return {"data": replace(TRAINING.data, **changes)}


BY_WEIGHT: list[tuple[dict[str, object], dict[str, object]]] = [
    ({}, {"machine": ELSEWHERE}),
    ({}, {"model": replace(TRAINING.model, layers=9)}),
    ({}, data(rules="lra2021")),
    (features(32), features(256)),
    (data(length=64), data(length=4096)),
    ({"threads": 1}, {"threads": 8}),
    (data(hash="a"), data(hash="b")),
    (data(source="file"), data(source="hub")),
]
"""Settings of the training, and others of a profile, the heaviest difference first."""


SETTINGS: list[dict[str, object]] = [
    {"batch": 64}, {"micro_batches": 2}, {"precision": "bfloat16"}, {"recompute": True},
    {"execution": "compiled"}, {"bucketed": False},
]  # fmt: skip
OF_TRAINING = [({}, {"training": replace(TRAINING.training, **one)}) for one in SETTINGS]


@pytest.mark.parametrize(("own", "other"), [*BY_WEIGHT, *OF_TRAINING])
def test_a_profile_with_the_settings_of_the_training_tells_before_a_newer_one(
    own: dict[str, object], other: dict[str, object]
) -> None:
    newer = replace(profiled(9.0, 0.0, **other), started_at="2")
    estimate = Estimate([profiled(1.0, 0.0, **own), newer])
    assert estimate.seconds(replace(TRAINING, **own)) == pytest.approx(1000.0)
    assert estimate.seconds(replace(TRAINING, **other)) == pytest.approx(9000.0)


def test_of_profiles_that_differ_that_is_nearest_which_differs_in_less() -> None:
    differing = [BY_WEIGHT[n][1] for n in (0, 1, 3, 4, 5, 6)]
    profiles = [
        replace(profiled(n + 1.0, 0.0, **other), started_at=str(9 - n))
        for n, other in enumerate(differing)
    ]
    for kept in range(1, len(profiles) + 1):
        found = Estimate(profiles[:kept]).seconds(TRAINING)
        assert found == pytest.approx(1000.0 * kept)


def test_a_profile_takes_what_the_last_one_of_its_kind_took() -> None:
    estimate = Estimate([profiled(0.5, 0.01)])
    again = profiled(0.5, 0.01, versions={"time": 2}).cell
    assert estimate.seconds(again) == pytest.approx(20.0)
    assert not estimate.is_by_profile(again)
