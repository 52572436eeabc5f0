"""The end of a task that counts: a worker dies, comes late, says nothing or gives its job back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from diary import Diary
from engine_jobs import training

pytest.importorskip("distributed", reason="needs the extra cluster")

from distributed.scheduler import KilledWorker
from idle_cluster import Client, failed, handshake, join

from lra.engine.cluster.cluster import Cluster, ClusterLost
from lra.engine.cluster.grid import Grid
from lra.engine.cluster.worker import Ended
from lra.engine.jobs import Job
from lra.store import Store


@pytest.fixture
def grid(tmp_path: Path, cluster: Cluster) -> Iterator[Grid]:
    join(cluster, w0=handshake())
    with Store(tmp_path / "store").locked() as store:
        yield Grid(store, cluster, watcher=Diary())


def launch(grid: Grid, *jobs: Job) -> None:
    """Give the worker the first of the jobs, after it has come again where it was gone."""
    join(grid._cluster, w0=handshake())
    grid._waiting = list(jobs)
    assert list(grid._start()) == []
    assert grid._waiting == list(jobs[1:])


def test_two_deaths_are_too_many_unless_the_training_got_further_in_between(
    grid: Grid, client: Client, cache: Path
) -> None:
    job = training("Toy", cache)
    saved = grid.store.checkpoint(job.cell.id)
    saved.parent.mkdir(parents=True, exist_ok=True)
    for time in (100, 200, 300):
        launch(grid, job)
        saved.touch()
        os.utime(saved, (time, time))
        client.handshakes.clear()
        assert list(grid._collect()) == [], "it goes on from the new checkpoint"
        assert grid._waiting == [job]
    launch(grid, job)
    client.handshakes.clear()
    (record,) = grid._collect()
    assert record.failure is not None and record.failure.type == "KilledWorker"
    assert saved.is_file(), "for --rerun failed"


def test_a_late_end_of_a_job_that_runs_again_is_not_stored(
    grid: Grid, client: Client, cache: Path
) -> None:
    job = training("Toy", cache)
    launch(grid, job)
    client.handshakes.clear()
    assert list(grid._collect()) == []
    launch(grid, job)
    first, second = client.tasks
    for task, seconds in ((first, 1.0), (second, 2.0), (second, 3.0)):
        client.send(task, failed(job, seconds))
    assert [record.seconds for record in grid._collect()] == [2.0]
    assert [record.seconds for record in grid.store.records()] == [2.0]


def test_a_task_that_ends_without_a_word_runs_again_on_another_worker(
    grid: Grid, client: Client, cache: Path
) -> None:
    job, other = training("Toy", cache), training("Toy", cache, seed=1)
    launch(grid, job)
    client.send(client.tasks[0], failed(job, 1.0))
    client.tasks[0].end("finished")
    assert [record.seconds for record in grid._collect()] == [1.0]
    for error in (None, KilledWorker("key", SimpleNamespace(address="w0"), 0)):
        launch(grid, other)
        client.tasks[-1].end("error" if error else "finished", error)
        assert len(list(grid._collect())) == bool(error), "two deaths"
    launch(grid, other)
    client.tasks[-1].end("error", ImportError("no lra"))
    assert list(grid._collect()) == [] and grid._waiting == [other]
    assert not grid._cluster.workers, "a worker that cannot run cells"


@pytest.mark.parametrize("why", ["", "does not see the store"])
def test_a_worker_that_gives_its_job_back_gets_no_more_and_the_job_is_left(
    grid: Grid, client: Client, cache: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """A worker that is preempted, or that loses the folder; no other comes."""
    jobs = [training("Toy", cache), training("Toy", cache, seed=1)]
    grid._cluster.patience = 0.2
    monkeypatch.setattr(
        grid.watcher, "started", lambda job: client.send(client.tasks[-1], Ended(unfit=why))
    )
    with pytest.raises(ClusterLost, match="no worker"):
        list(grid.run(jobs))
    assert grid.left == jobs and not grid._deaths and len(client.tasks) == 1
