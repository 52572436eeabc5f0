"""A cluster's bookkeeping: who may run cells, which worker gets one, which end counts; a client
without a scheduler stands for Dask."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from diary import Diary
from engine_jobs import timing, training

pytest.importorskip("distributed", reason="needs the extra cluster")

from distributed.scheduler import KilledWorker

from lra.core.errors import LraError
from lra.core.protocol import Machine
from lra.core.records import Failure, Record
from lra.engine.cluster import cluster as cluster_module
from lra.engine.cluster import connect, worker
from lra.engine.cluster.cluster import Cluster, ClusterLost, Worker
from lra.engine.cluster.connect import wait_for_workers
from lra.engine.cluster.grid import Grid
from lra.engine.cluster.handshake import Handshake, introduce, software, why_unfit
from lra.engine.cluster.shared_folder import SharedFolder, share
from lra.engine.cluster.worker import Ended, Order, TaskEvent
from lra.engine.jobs import Job
from lra.store import Store

OURS = software()


def handshake(**changes: Any) -> Handshake:
    values: dict[str, Any] = {
        "software": OURS,
        "machines": {"cpu": Machine(processor="toy", cores=4)},
        "host": "one",
        "cpus": (0, 1, 2, 3),
        "gpus": (),
        "provenance": {},
        "problem": "",
    }
    return msgspec.convert(values | changes, Handshake)


class Future:
    """A task that nobody runs."""

    status = "pending"

    def __init__(self, key: str) -> None:
        self.key = key
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Any], None]] = []

    def exception(self) -> BaseException | None:
        return self._error

    def add_done_callback(self, call: Callable[[Any], None]) -> None:
        self._callbacks.append(call)

    def release(self) -> None:
        """Forget the task, as a client does: what it came to is then unknown."""
        self.status, self._error = "cancelled", None

    def end(self, status: str, error: BaseException | None = None) -> None:
        self.status, self._error = status, error
        for call in self._callbacks:
            call(self)


class Client:
    """A scheduler that has the workers of `handshakes`."""

    status, scheduler = "running", SimpleNamespace(identity=None)

    def __init__(self) -> None:
        self.handshakes: dict[str, Handshake | Exception] = {}
        self.tasks: list[Future] = []

    def sync(self, function: object, n_workers: int) -> dict[str, Any]:
        assert n_workers == -1
        return {"workers": {name: {"name": name} for name in self.handshakes}}

    def run(
        self, function: object, folder: object, workers: list[str], on_error: str
    ) -> dict[str, bytes | Exception]:
        assert function is introduce and on_error == "return"
        found = {name: self.handshakes[name] for name in workers}
        encode = msgspec.msgpack.encode
        return {n: one if isinstance(one, Exception) else encode(one) for n, one in found.items()}

    def submit(
        self, function: object, order: Order, key: str, workers: list[str], pure: bool
    ) -> Future:
        assert workers == ["w0"] and not pure
        self.tasks.append(Future(key))
        return self.tasks[-1]

    def subscribe_topic(self, topic: str, handler: Callable[[Any], None]) -> None:
        self.handler = handler

    def cancel(self, futures: list[Future]) -> None:
        pass

    def send(self, task: Future, content: Any) -> None:
        self.handler((0.0, msgspec.msgpack.encode(TaskEvent(task.key, content))))


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def cluster(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setattr(cluster_module, "_BETWEEN", 0.0)
    monkeypatch.setattr(cluster_module, "software", lambda: OURS)
    folder = SharedFolder(str(tmp_path), "token")
    return Cluster("toy", client, folder, pins=True, patience=60.0)  # type: ignore[arg-type]


def join(cluster: Cluster, **handshakes: Handshake | Exception) -> None:
    cluster.client.handshakes |= handshakes
    cluster.update()


# Who may run cells.


@pytest.mark.parametrize("name", ["lra", "torch", "Python", "distributed", "sources"])
def test_a_worker_with_other_software_may_not_run_cells(name: str) -> None:
    assert why_unfit(handshake(), OURS, {}) == ""
    assert name in why_unfit(handshake(software=OURS | {name: "0.0"}), OURS, {})
    assert name in why_unfit(handshake(software={}), {name: OURS[name]}, {})


def test_all_workers_are_of_one_class_of_machine(cluster: Cluster) -> None:
    other = handshake(machines={"cpu": Machine(processor="toy", cores=8)})
    join(cluster, w0=handshake())
    join(cluster, w1=other)
    assert list(cluster.workers) == ["w0"]
    (line,) = cluster.refusals
    assert "w1" in line and "8 cores" in line and "4 cores" in line


def test_a_worker_has_to_see_the_folder(tmp_path: Path) -> None:
    with share(tmp_path / "store") as folder:
        own = msgspec.msgpack.decode(introduce(folder), type=Handshake)
        assert why_unfit(own, OURS, own.machines) == ""
        folder.token_file.unlink()
        own = msgspec.msgpack.decode(introduce(folder), type=Handshake)
        assert str(tmp_path / "store") in why_unfit(own, OURS, {})


def test_a_worker_that_cannot_answer_is_refused(cluster: Cluster) -> None:
    older: Any = {"version": "1.0"}
    join(cluster, w0=ImportError("no lra"), w1=handshake(), w2=older)
    assert list(cluster.workers) == ["w1"]
    assert [line.split()[1] for line in cluster.refusals] == ["w0", "w2"]
    cluster.refusals.clear()
    cluster.update()
    assert not cluster.refusals, "it is told once"


def test_each_worker_gets_a_gpu_of_its_own_and_one_too_many_is_refused(
    cluster: Cluster, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("HF_DATASETS_OFFLINE", raising=False)
    sees = handshake(gpus=("GPU-a", "GPU-b"))
    for name in ("w0", "w1", "w2"):
        join(cluster, **{name: sees})
    join(cluster, w3=handshake(gpus=("GPU-a",), host="two"))
    assert {name: one.environment for name, one in cluster.workers.items()} == {
        name: {"HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": gpu}
        for name, gpu in (("w0", "GPU-a"), ("w1", "GPU-b"), ("w3", "GPU-a"))
    }
    (line,) = cluster.refusals
    assert "w2" in line
    del client.handshakes["w0"]
    join(cluster, w4=sees)
    assert cluster.workers["w4"].gpu == "GPU-a"


# How long a run waits for them.


@pytest.mark.parametrize(
    ("joins", "patience", "budget", "begins"),
    [
        ([5.0, 30.0], 60.0, 1e9, 30),
        ([400.0, 900.0], float("inf"), 1e9, 460),
        ([400.0, 430.0], float("inf"), 1e9, 430),
        ([5.0, 900.0], 60.0, 1e9, 65),
        ([100.0], float("inf"), 120.0, 120),
        ([], 60.0, 1e9, None),
        ([], float("inf"), 90.0, None),
    ],
)
def test_a_run_begins_with_all_workers_or_those_that_come_soon_after_the_first(
    cluster: Cluster,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    joins: list[float],
    patience: float,
    budget: float,
    begins: float | None,
) -> None:
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        client.handshakes |= {f"w{n}": handshake() for n, at in enumerate(joins) if at <= now}

    clock = SimpleNamespace(monotonic=lambda: now, sleep=sleep)
    monkeypatch.setattr(connect, "time", clock)
    monkeypatch.setattr(cluster_module, "time", clock)
    cluster.patience = patience
    echoed: list[str] = []
    wait = (cluster, 2, echoed.append, lambda: max(0.0, budget - now))
    if begins is None:
        with pytest.raises(LraError, match="no worker has come"):
            wait_for_workers(*wait)
        assert now == pytest.approx(min(patience, budget), abs=0.2)
    else:
        wait_for_workers(*wait)
        assert now == pytest.approx(begins, abs=0.3)
    assert len(echoed) == 1


# Which worker gets a cell.


def job(cache: Path, **changes: Any) -> Job:
    one = training("Toy", cache)
    return msgspec.structs.replace(one, cell=msgspec.structs.replace(one.cell, **changes))


def put(cluster: Cluster, job: Job, closed: set[str] | None = None) -> Worker | None:
    found = cluster.place(job, set() if closed is None else closed)
    if found is not None:
        found.job = job
    return found


def test_cells_on_one_machine_take_no_more_threads_than_it_has_cores(
    cluster: Cluster, cache: Path
) -> None:
    join(cluster, w0=handshake())
    join(cluster, w1=handshake())
    join(cluster, w2=handshake())
    join(cluster, other=handshake(host="two"))
    placed = [put(cluster, job(cache, threads=threads)) for threads in (3, 2, 1, 8)]
    assert [one and one.name for one in placed] == ["w0", "other", "w1", None]


def test_workers_on_processors_of_their_own_leave_each_other_all_threads(
    cluster: Cluster, cache: Path
) -> None:
    half = {"cpu": Machine(processor="toy", cores=2)}
    for name, cpus in (("w0", (0, 1)), ("w1", (2, 3)), ("w2", (0, 1))):
        join(cluster, **{name: handshake(cpus=cpus, machines=half)})
    placed = [put(cluster, job(cache, threads=2, seed=seed)) for seed in range(3)]
    assert [one and one.name for one in placed] == ["w0", "w1", None]


def test_a_timing_waits_for_a_machine_which_takes_no_more(cluster: Cluster, cache: Path) -> None:
    join(cluster, w0=handshake(), w1=handshake())
    running = put(cluster, job(cache, seed=1))
    assert running is not None
    closed: set[str] = set()
    assert put(cluster, timing("Toy", cache), closed) is None
    assert closed == {"one"} and not cluster.free(closed)
    running.job = None
    assert put(cluster, timing("Toy", cache)) is not None
    assert put(cluster, job(cache, seed=2)) is None


def test_a_timing_takes_the_machine_with_the_fewest_cells(cluster: Cluster, cache: Path) -> None:
    for name, host in (("w0", "one"), ("w1", "one"), ("w2", "one"), ("w3", "two"), ("w4", "two")):
        join(cluster, **{name: handshake(host=host)})
    for name in ("w0", "w1", "w3"):
        cluster.workers[name].job = job(cache)
    closed: set[str] = set()
    assert put(cluster, timing("Toy", cache), closed) is None
    assert closed == {"two"} and [one.name for one in cluster.free(closed)] == ["w2"]


# Which end of a task counts.


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


def failed(job: Job, seconds: float) -> Ended:
    return Ended(
        Record(
            id=job.cell.id,
            cell=job.cell,
            status="error",
            started_at="2026-01-01T00:00:00+00:00",
            seconds=seconds,
            failure=Failure(type="E", message="m", phase="train"),
        )
    )


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


# The worker's side.


def order(folder: SharedFolder, job: Job, run: str = "run", **variables: str) -> Order:
    return Order(job=job, run=run, folder=folder, environment=variables, grace=1.0)


def test_a_fork_server_is_made_in_the_environment_of_its_run(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("CUDA_VISIBLE_DEVICES", "HF_HUB_OFFLINE", "MALLOC_TRIM_THRESHOLD_")
    seen: list[list[str | None]] = []

    class Server:
        def __init__(self) -> None:
            seen.append([os.environ.get(name) for name in names])

        def close(self) -> None:
            seen.append([])

    monkeypatch.setattr(worker, "ForkServer", Server)
    monkeypatch.setattr(worker.WorkerPool, "run_one", lambda self, task: None)
    for name, value in zip(names, ("0,1", None, "65536"), strict=True):
        monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name, raising=False)
    before = dict(os.environ)
    job = training("Toy", cache)
    with share(tmp_path / "store") as folder:
        first = order(folder, job, CUDA_VISIBLE_DEVICES="GPU-b", HF_HUB_OFFLINE="1")
        for one in (first, first, order(folder, job, "next", CUDA_VISIBLE_DEVICES="GPU-a")):
            worker._run(SimpleNamespace(order=one))  # type: ignore[arg-type]
            assert dict(os.environ) == before
    worker.release("run")
    assert seen == [["GPU-b", "1", None], [], ["GPU-a", None, None]]
    worker.release("next")
    assert seen[-1] == []


@pytest.mark.parametrize("is_lost", ["before", "meanwhile", "never"])
def test_a_failure_with_the_folder_is_no_row_of_the_cell(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, is_lost: str
) -> None:
    job = training("Toy", cache)
    started: list[Job] = []

    class Pool:
        server = SimpleNamespace(close=lambda: None)

        def __init__(self, order: Order) -> None:
            pass

        def run_one(self, task: Any) -> Record | None:
            started.append(task.order.job)
            if is_lost == "meanwhile":
                task.order.folder.token_file.unlink()
            return failed(job, 1.0).record

    monkeypatch.setattr(worker, "WorkerPool", Pool)
    with share(tmp_path / "store") as folder:
        if is_lost == "before":
            folder.token_file.unlink()
        ended = worker._run(SimpleNamespace(order=order(folder, job)))  # type: ignore[arg-type]
    worker.release("run")
    assert bool(started) is (is_lost != "before")
    assert bool(ended.record) is (is_lost == "never") is not bool(ended.unfit)
