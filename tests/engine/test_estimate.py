"""How long cells may take, by records of their like."""

from __future__ import annotations

import msgspec
import pytest

from lra.core.cells import EfficiencyCell
from lra.core.protocol import Machine, Mechanism
from lra.core.records import Metric, Record
from lra.engine.estimate import Estimate

CELL = EfficiencyCell(
    machine=Machine(processor="none", cores=1),
    torch="",
    threads=1,
    measure_hash="",
    scale="mini",
    mechanism=Mechanism(name="linear", hash=""),
    length=1024,
    mode="train",
    heads=1,
    head_width=4,
)


def record(length: int, seconds: float, **changes: object) -> Record:
    cell = msgspec.structs.replace(CELL, length=length)
    made = Record(id=cell.id, cell=cell, status="ok", started_at="", seconds=seconds)
    return msgspec.structs.replace(made, **changes)


def test_the_nearest_record_tells_and_longer_inputs_cost_more() -> None:
    estimate = Estimate([record(256, 1.0), record(1024, 3.0), record(1024, 99.0, status="oom")])
    assert estimate.seconds(CELL) == pytest.approx(3.0)
    assert estimate.seconds(msgspec.structs.replace(CELL, length=4096)) == pytest.approx(48.0)
    # A short cell is mostly what a cell costs at any length.
    assert estimate.seconds(msgspec.structs.replace(CELL, length=16)) == pytest.approx(1.0)


def test_the_nearest_is_that_which_differs_by_the_least_factor() -> None:
    estimate = Estimate([record(256, 2.5), record(8192, 12.0)])
    assert estimate.seconds(msgspec.structs.replace(CELL, length=4096)) == pytest.approx(12.0)


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
        assert estimate.seconds(msgspec.structs.replace(CELL, **changes)) is None


def test_a_training_that_was_continued_took_all_of_its_stretches() -> None:
    """Its record began with the last of them."""
    whole = {"training_seconds": Metric(value=40.0, unit="s", better="lower")}
    assert Estimate([record(1024, 3.0, metrics=whole)]).seconds(CELL) == pytest.approx(40.0)
    assert Estimate([record(1024, 45.0, metrics=whole)]).seconds(CELL) == pytest.approx(45.0)
