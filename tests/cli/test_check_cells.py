"""Which cells a check runs of its plan; nothing is really run."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path

import msgspec
import pytest

from lra.core.catalogue import find
from lra.core.cells import Cell, QualityCell
from lra.core.records import Failure, Record
from lra.engine.gate.check import measure
from lra.engine.jobs import Job
from lra.engine.plan.spec import CheckSpec
from lra.engine.process.runner import Watcher
from lra.store import Store


class Pool:
    """Lets every cell that is due end well, after a longer time."""

    def __init__(self, store: Store, *_: object, **__: object) -> None:
        self.store = store

    def run(self, jobs: Iterable[Job]) -> Iterable[Record]:
        for job in jobs:
            self.store.save(ended(job.cell, seconds=2.0))
            yield ended(job.cell)


def ended(cell: Cell, **own: object) -> Record:
    one = Record(id=cell.id, cell=cell, status="ok", started_at="2026-11-20T10:00:00Z", seconds=1.0)
    return msgspec.structs.replace(one, **own)


@pytest.fixture
def store(tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("LRA_CACHE", environment["LRA_CACHE"])
    monkeypatch.setattr("lra.engine.process.pool.Pool", Pool)
    monkeypatch.setattr("lra.engine.process.launch.ForkServer", nullcontext)
    return Store(tmp_path / "store")


def measured(store: Store) -> list[Record]:
    targets = [find("mechanism", "identity")]
    spec = CheckSpec(device="cpu", store=store.path)
    found, unread = measure(spec, targets, quality=True, watch=lambda _: Watcher())
    assert unread == 0
    return found


def seeds(records: list[Record]) -> dict[int, Record]:
    """The trainings for accuracy."""
    cells = [(record.cell, record) for record in records]
    return {c.seed: r for c, r in cells if isinstance(c, QualityCell) and c.scale == "mini"}


def run_again(before: list[Record], after: list[Record]) -> list[str]:
    """Ids of the records with the seconds of a cell that was run, in the order of the plan."""
    assert [record.id for record in before] == [record.id for record in after]
    return [record.id for record in after if record.seconds > 1]


def test_everything_is_run_into_an_empty_store(store: Store) -> None:
    found = measured(store)
    assert sorted(seeds(found)) == [0, 1, 2]
    assert len(found) == len(store.records()) == 1 + 1 + 3 + 4
    assert {record.seconds for record in found} == {2.0}


@pytest.mark.parametrize("status", ["oom", "error", "unsupported"])
def test_a_training_for_accuracy_is_repeated_only_where_it_is_absent_or_did_not_end_well(
    store: Store, status: str
) -> None:
    found = measured(store)
    bad = {"status": status, "failure": Failure(type="Error", message="once")}
    with store.locked():
        for record in found:
            store.save(ended(record.cell))
        store.save(ended(seeds(found)[1].cell, **bad))
        store.path.joinpath(f"{seeds(found)[2].id}.json").unlink()
    due = run_again(found, measured(store))
    assert due == [record.id for record in found if record.id != seeds(found)[0].id]


def test_what_takes_seconds_is_always_run_again(store: Store) -> None:
    found = measured(store)
    with store.locked():
        for record in found:
            store.save(ended(record.cell))
    due = run_again(found, measured(store))
    long = {record.id for record in seeds(found).values()}
    assert due == [record.id for record in found if record.id not in long]
    kinds = {type(record.cell).__name__ for record in found if record.id in due}
    assert kinds == {"VerifyCell", "QualityCell", "EfficiencyCell"}, "the losses among them"
