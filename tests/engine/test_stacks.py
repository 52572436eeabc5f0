"""Seeds of a training bound together: one worker trains them, and each has its own record."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import msgspec
import pytest
from diary import Diary
from engine_jobs import baselines, timing, training

from lra.core.records import Record
from lra.engine.jobs import Job
from lra.engine.pool import Pool
from lra.engine.runner import RunStopped
from lra.engine.server import ForkServer
from lra.engine.stacks import stacked
from lra.store import Store


def seeds(toy: str, cache: Path, count: int = 3, **changes: object) -> list[Job]:
    jobs = [training(toy, cache, seed=seed, **changes) for seed in range(count)]
    return [msgspec.structs.replace(job, apart=(f"seed {n}",)) for n, job in enumerate(jobs)]


def test_seeds_of_one_training_are_bound_to_the_first_that_is_due(cache: Path) -> None:
    jobs = [
        baselines(cache),
        *seeds("Toy", cache)[1:],
        training("Toy", cache, steps=40),
        *seeds("NoOracle", cache),
        timing("Toy", cache),
    ]
    bound = stacked(jobs)
    assert [job.cell for job in bound] == [job.cell for job in jobs]
    assert [job.beside for job in bound] == [(), (2,), (), (), (1, 2), (), (), ()]
    first, other = jobs[1].cell.id, jobs[4].cell.id
    assert [job.after for job in bound] == ["", "", first, "", "", other, other, ""]
    assert "with seeds 1, 2" in bound[4].label
    assert [job for job, own in zip(bound, jobs, strict=True) if job == own] == [
        jobs[0], jobs[3], jobs[7],
    ]  # fmt: skip


def by_seed(records: list[Record]) -> dict[int, Record]:
    return {record.cell.seed: record for record in records}  # type: ignore[union-attr]


def test_one_worker_trains_all_and_each_is_tested_by_itself(
    store: Store, server: ForkServer, cache: Path, tmp_path: Path
) -> None:
    jobs, diary = stacked([*seeds("Toy", cache), training("Toy", cache, steps=5)]), Diary()
    found = list(Pool(store, server, slots=2, watcher=diary).run(jobs))
    together = by_seed([record for record in found if record.cell != jobs[3].cell])
    with Store(tmp_path / "apart").writing() as other:
        apart = by_seed(list(Pool(other, server, slots=2).run(seeds("Toy", cache))))
    for seed, record in together.items():
        assert record.status == "ok"
        assert record.method["stacked"] == 3
        assert record.method["continued"] == (seed > 0)
        assert record.curve[0].train_loss == pytest.approx(
            apart[seed].curve[0].train_loss, rel=1e-5
        )
        assert record.metrics["test_accuracy"] == apart[seed].metrics["test_accuracy"]
    # Nobody begins what another worker trains.
    first, *others = (job.label for job in jobs[:3])
    lines = diary.lines
    assert all(lines.index(f"start {one}") > lines.index(f"ok {first}") for one in others)
    # The steps are made once.
    assert set(diary.steps) == {jobs[0].cell.id, jobs[3].cell.id}
    assert not list((store.path / "checkpoints").glob("*.pt"))


def test_what_cannot_be_stacked_is_trained_one_by_one(
    store: Store, server: ForkServer, cache: Path
) -> None:
    jobs = stacked(seeds("Decides", cache))
    for record in Pool(store, server, slots=2).run(jobs):
        assert record.status == "ok"
        assert record.method["stacked"] == 1
        assert ("stacking_failed" in record.method) == (record.cell.seed == 0)  # type: ignore[union-attr]


@pytest.mark.parametrize("toy", ["Killed", "Diverges"])
def test_others_go_on_by_themselves_where_the_first_fails(
    store: Store, server: ForkServer, cache: Path, toy: str
) -> None:
    status = {"Killed": "crash", "Diverges": "diverged"}[toy]
    found = list(Pool(store, server, slots=2).run(stacked(seeds(toy, cache, 2, steps=200))))
    assert [record.status for record in found] == [status] * 2


def test_stopped_all_seeds_go_on(store: Store, server: ForkServer, cache: Path) -> None:
    jobs = stacked(seeds("Toy", cache, steps=4000))
    diary = Diary(lambda: os.kill(os.getpid(), signal.SIGTERM))
    pool = Pool(store, server, slots=2, watcher=diary)
    with pytest.raises(RunStopped, match="3 are left"):
        list(pool.run(jobs))
    kept = sorted((store.path / "checkpoints").glob("*.pt"))
    assert [file.stem for file in kept] == sorted(job.cell.id for job in jobs)
    assert store.load(jobs[0].cell.id) is None


def test_a_plan_without_seeds_is_left_as_it_is(cache: Path) -> None:
    jobs = [training("Toy", cache), timing("Toy", cache)]
    assert stacked(jobs) == jobs
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(jobs[0]), type=Job) == jobs[0]
