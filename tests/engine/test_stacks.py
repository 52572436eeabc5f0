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
    # The steps are made once, and the first seed alone is told of while they are.
    assert set(diary.steps) == {jobs[0].cell.id, jobs[3].cell.id}
    assert len(diary.losses) == 2
    assert not list((store.path / "checkpoints").glob("*.pt"))


def dropping(jobs: list[Job]) -> list[Job]:
    """The same of a model that draws."""

    def changed(job: Job) -> Job:
        model = msgspec.structs.replace(job.cell.model, dropout=0.2)  # type: ignore[union-attr]
        return msgspec.structs.replace(job, cell=msgspec.structs.replace(job.cell, model=model))

    return [changed(job) for job in jobs]


def test_what_cannot_be_stacked_is_trained_one_by_one(
    store: Store, server: ForkServer, cache: Path, tmp_path: Path
) -> None:
    jobs, diary = dropping(seeds("Decides", cache)), Diary()
    found = by_seed(list(Pool(store, server, slots=2, watcher=diary).run(stacked(jobs))))
    with Store(tmp_path / "apart").writing() as other:
        apart = by_seed(list(Pool(other, server, slots=2).run(jobs)))
    for seed, record in found.items():
        assert record.status == "ok"
        assert record.method["stacked"] == 1
        assert ("stacking_failed" in record.method) == (seed == 0)
        # With the draws that each has by itself.
        assert record.curve[0].train_loss == apart[seed].curve[0].train_loss
    (told,) = (line for line in diary.lines if line.startswith("noticed"))
    assert "with seeds 1, 2: one by one, not in the same steps: torch.vmap refuses it" in told


def test_what_fails_together_goes_on_alone(store: Store, server: ForkServer, cache: Path) -> None:
    """Memory for one seed may not be there for three."""
    jobs = stacked(seeds("Tires", cache, steps=6, evaluate_every=3))
    found = by_seed(list(Pool(store, server, slots=1).run(jobs)))
    assert [record.status for record in found.values()] == ["ok"] * 3
    assert found[0].method["stacking_failed"] == "too much for several"


def test_another_seeds_checkpoint_that_cannot_be_read_is_its_own_row(
    store: Store, server: ForkServer, cache: Path
) -> None:
    jobs = stacked(seeds("Toy", cache))
    store.checkpoint(jobs[1].cell.id).write_text("junk")
    found = by_seed(list(Pool(store, server, slots=1).run(jobs)))
    assert {seed: record.status for seed, record in found.items()} == {0: "ok", 1: "error", 2: "ok"}
    assert "cannot read checkpoint" in found[0].method["stacking_failed"]


def test_who_trains_several_has_the_time_of_each(
    store: Store, server: ForkServer, cache: Path
) -> None:
    jobs = stacked(seeds("Toy", cache))
    pool = Pool(store, server, slots=1, timeout=2.0)
    assert [pool._time_for(job) for job in jobs] == [6.0, 2.0, 2.0]
    assert Pool(store, server, slots=1)._time_for(jobs[0]) is None


def test_nobody_waits_for_a_first_that_is_not_admitted(
    store: Store, server: ForkServer, cache: Path
) -> None:
    jobs = stacked(seeds("Toy", cache))
    pool = Pool(store, server, slots=1, admits=lambda job: job is not jobs[0])
    assert sorted(by_seed(list(pool.run(jobs)))) == [1, 2]
    assert pool.left == [jobs[0]]


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
