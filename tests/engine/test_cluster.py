"""The grid, on workers of this machine: the same records as of the pool, whoever is killed."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from diary import Diary
from engine_jobs import timing, training
from processes import alive, descendants, gone, listening, wait_until

pytest.importorskip("distributed", reason="needs the extra cluster")

import dask
from distributed import LocalCluster

from lra.core.errors import LraError, UsageError
from lra.core.records import Record
from lra.engine.cluster import connect
from lra.engine.cluster.cluster import Cluster, ClusterLost
from lra.engine.cluster.connect import is_open, open_cluster, wait_for_workers
from lra.engine.cluster.grid import Grid
from lra.engine.cluster.local import local_cluster
from lra.engine.cluster.shared_folder import share
from lra.engine.jobs import Job, Progress
from lra.engine.order.budget import Budget
from lra.engine.process.runner import RunStopped
from lra.store import Store

pytestmark = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="two workers need two cores"
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store that all tests of a cluster share: its folder is what workers know it by."""
    with Store(tmp_path_factory.mktemp("cluster") / "store").locked() as store:
        yield store


@pytest.fixture(scope="module")
def cluster(whole: Store) -> Iterator[Cluster]:
    with open_cluster("local:2", whole.path, device="cpu") as cluster:
        yield cluster


@pytest.fixture
def two(cluster: Cluster) -> Cluster:
    """The cluster with both its workers there."""
    wait_for_workers(cluster, 2, lambda line: None, lambda: math.inf)
    return cluster


class Strikes(Diary):
    """Calls with the job, once, when a training has come so far."""

    def __init__(self, step: int, strike: Callable[[Job], None]) -> None:
        super().__init__()
        self._step, self._strike, self._struck = step, strike, False

    def progress(self, job: Job, progress: Progress) -> None:
        super().progress(job, progress)
        if progress.phase == "train" and progress.step >= self._step and not self._struck:
            self._struck = True
            self._strike(job)


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_all_that_it_starts_listens_on_loopback(two: Cluster) -> None:
    pids = descendants(os.getpid())
    assert set(two.client.run(os.getpid).values()) <= pids
    sockets = listening(pids)
    # Sockets of the scheduler and its page, of each worker and its page.
    assert len(sockets) >= 6
    assert [f"{address}:{port}" for address, port in sockets if not address.is_loopback] == []


def test_cells_end_on_a_cluster_as_they_do_in_the_pool(
    two: Cluster, whole: Store, cache: Path
) -> None:
    jobs = [
        training("Toy", cache, steps=10, evaluate_every=5),
        *(timing(toy, cache) for toy in ("Killed", "Raises", "OutOfMemory", "Toy")),
        *(timing("TooLarge", cache, length=length) for length in (64, 128)),
    ]
    diary = Diary()
    found = list(Grid(whole, two, watcher=diary).run(jobs))
    jobs.append(timing("Sleeps", cache))
    found += Grid(whole, two, timeout=2.0, watcher=diary).run(jobs[-1:])
    status = {(record.cell.mechanism.name, record.cell.id): record.status for record in found}  # type: ignore[union-attr]
    assert [status[job.cell.mechanism.name, job.cell.id] for job in jobs] == [  # type: ignore[union-attr]
        "ok", "crash", "error", "oom", "ok", "oom", "skipped", "timeout"
    ]  # fmt: skip
    assert {record.id: record for record in whole.records()} == {r.id: r for r in found}
    trained = next(record for record in found if record.id == jobs[0].cell.id)
    assert [point.step for point in trained.curve] == [5, 10]
    assert diary.losses and diary.steps[trained.id]
    assert trained.provenance.libraries["torch"] and trained.provenance.host["cores_allowed"]
    text = json.dumps([str(record.failure) for record in found])
    assert "the last words" in text and str(cache) not in text and str(Path.home()) not in text
    logs = {file.stem: file.read_text() for file in (whole.path / "logs").iterdir()}
    assert {"local-0", "local-1", "scheduler"} <= set(logs)
    assert "crash Killed forward 32" in logs["local-0"] + logs["local-1"]


def test_a_timing_has_its_machine_for_itself(two: Cluster, whole: Store, cache: Path) -> None:
    diary = Diary()
    jobs = [
        *(training("Toy", cache, seed=seed) for seed in (1, 2)),
        timing("Toy", cache, length=16),
        training("Toy", cache, seed=3),
    ]
    list(Grid(whole, two, watcher=diary).run(jobs))
    events = [line.partition(" ")[0] for line in diary.lines]
    assert events == ["start", "start", "ok", "ok", "start", "ok", "start", "ok"]
    assert diary.lines[4:6] == ["start Toy forward 16", "ok Toy forward 16"]


def test_workers_that_are_killed_lose_and_double_nothing(
    two: Cluster, whole: Store, cache: Path
) -> None:
    jobs = [training("Slow", cache, seed=seed, steps=40, evaluate_every=20) for seed in range(6)]
    victims = list(two.client.run(os.getpid).values())
    saved: list[Record] = []

    def kill(job: Job) -> None:
        os.kill(victims.pop(), signal.SIGKILL)

    class Twice(Strikes):
        def finished(self, job: Job, record: Record) -> None:
            super().finished(job, record)
            saved.append(record)
            if len(saved) == 2:
                kill(job)

    diary = Twice(10, kill)
    found = list(Grid(whole, two, watcher=diary).run(jobs))
    assert not victims
    assert Counter(record.id for record in found) == {job.cell.id: 1 for job in jobs}
    assert {record.status for record in found} == {"ok"}
    assert {job.cell.id for job in jobs} <= {record.id for record in whole.records()}
    done = [line for line in diary.lines if line.startswith("ok ")]
    again = [line for line in diary.lines if line.endswith("runs again")]
    started = [line for line in diary.lines if line.startswith("start ")]
    assert len(done) == 6 and 1 <= len(again) <= 2
    assert len(started) == 6 + len(again), "what had ended is not run again"


def test_a_cell_that_always_kills_its_worker_is_a_row_and_the_others_go_on(
    two: Cluster, whole: Store, cache: Path
) -> None:
    # No timings, which would wait for those of other runs on this machine.
    jobs = [training("KillsWorker", cache), training("Toy", cache, seed=8)]
    diary = Diary()
    found = {record.id: record for record in Grid(whole, two, watcher=diary).run(jobs)}
    killer, other = (found[job.cell.id] for job in jobs)
    assert killer.status == "crash" and killer.failure is not None
    assert killer.failure.type == "KilledWorker" and "2 workers" in killer.failure.message
    assert other.status == "ok"
    assert sum(line == "start KillsWorker listops" for line in diary.lines) == 2


def test_a_budget_stops_a_training_on_a_worker_and_it_continues(
    two: Cluster, whole: Store, cache: Path
) -> None:
    now = [0.0]
    job = training("Slow", cache, steps=120, evaluate_every=60)
    never = timing("Toy", cache, length=24)
    diary = Strikes(20, lambda job: now.__setitem__(0, 99.0))
    grid = Grid(whole, two, budget=Budget(100, lambda: now[0]), watcher=diary)
    assert list(grid.run([job, never])) == []
    assert {left.cell.id for left in grid.left} == {job.cell.id, never.cell.id}
    assert whole.load(job.cell.id) is None and whole.checkpoint(job.cell.id).is_file()
    rest = Diary()
    (record,) = Grid(whole, two, watcher=rest).run([job])
    assert record.status == "ok" and record.method["continued"] is True
    assert min(rest.steps[job.cell.id]) > max(diary.steps[job.cell.id])
    assert not whole.checkpoint(job.cell.id).exists()


def test_ctrl_c_saves_what_runs_on_workers(two: Cluster, whole: Store, cache: Path) -> None:
    job = training("Slow", cache, steps=400, seed=9)
    workers = two.client.run(os.getpid).values()

    def strike(job: Job) -> None:
        # A terminal or a queue signals all processes.
        for pid in (*workers, os.getpid()):
            os.kill(pid, signal.SIGINT)
        for pid in workers:
            os.kill(pid, signal.SIGTERM)

    grid = Grid(whole, two, watcher=Strikes(5, strike))
    with pytest.raises(RunStopped, match="1 are left"):
        list(grid.run([job]))
    assert whole.checkpoint(job.cell.id).is_file()
    assert set(two.client.run(os.getpid).values()) == set(workers)


def test_a_scheduler_that_is_gone_ends_the_run_with_a_line_and_its_cells_are_left(
    tmp_path: Path, cache: Path
) -> None:
    with (
        Store(tmp_path / "store").locked() as store,
        share(store.path) as folder,
        local_cluster(1, folder) as scheduler,
        open_cluster(scheduler.scheduler_address, store.path, device="cpu") as cluster,
    ):
        job = training("Slow", cache, steps=400)
        grid = Grid(store, cluster, watcher=Strikes(5, lambda job: scheduler.close()))
        with pytest.raises(ClusterLost, match="tcp://"):
            list(grid.run([job]))
        assert [left.cell.id for left in grid.left] == [job.cell.id]
        # Its worker has seen that nobody asks for it any more.
        assert wait_until(store.checkpoint(job.cell.id).is_file)


def test_a_cluster_that_does_not_answer_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connect._CONFIG, "distributed.comm.timeouts.connect", "0.5s")
    with (
        pytest.raises(LraError, match=r"'tcp://127\.0\.0\.1:9'"),
        open_cluster("tcp://127.0.0.1:9", tmp_path / "store", device="cpu"),
    ):
        pass
    assert not list((tmp_path / "store").glob(".cluster-*"))


def test_workers_that_cannot_start_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "_PATIENCE", 4.0)
    # No log can be written.
    (tmp_path / "store" / "logs" / "local-0.log").mkdir(parents=True)
    with (
        pytest.raises(LraError, match="no worker has come") as refused,
        open_cluster("local:1", tmp_path / "store", device="cpu"),
    ):
        pass
    assert "\n" not in str(refused.value) and str(tmp_path) in str(refused.value)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("tcp://127.0.0.1:8786", False),
        ("tcp://[::1]:8786", False),
        ("tcp://localhost:8786", False),
        ("tls://192.0.2.7:8786", False),
        ("wss://192.0.2.7:8786", False),
        ("tcp://192.0.2.7:8786", True),
        ("ws://192.0.2.7:8786", True),
        ("tcp://0.0.0.0:8786", True),
    ],
)
def test_an_address_is_open_beyond_loopback_and_without_tls(address: str, expected: bool) -> None:
    assert is_open(address) is expected


@pytest.mark.parametrize("value", ["local:1", "tcp://127.0.0.1:9", "jobs.toml"])
def test_where_encryption_is_asked_for_a_cluster_without_is_one_line(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = 'system = "slurm"\njobs = 1\n[job]\ncores = 1\nmemory = "1 GB"\n'
    Path("jobs.toml").write_text(text)
    with (
        dask.config.set({"distributed.comm.require-encryption": True}),
        pytest.raises(UsageError, match="no TLS") as refused,
        open_cluster(value, tmp_path / "store", device="cpu"),
    ):
        pass
    assert "\n" not in str(refused.value)


def test_who_uses_an_open_scheduler_is_warned_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lra.engine.cluster.connect._PATIENCE", 0.0)
    told: list[str] = []
    with LocalCluster(
        n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=False
    ) as scheduler:
        port = scheduler.scheduler_address.rpartition(":")[2]
        for host in ("127.0.0.1", "0.0.0.0"):
            with (
                pytest.raises(LraError, match="no worker has come"),
                open_cluster(f"tcp://{host}:{port}", tmp_path, device="cpu", echo=told.append),
            ):
                pass
    (line,) = told
    assert f"tcp://0.0.0.0:{port}" in line and "docs/cluster.md" in line and "\n" not in line


RUN = """
import os
import signal
import sys
signal.signal(signal.SIGINT, lambda number, frame: sys.exit(130))
sys.path[:0] = sys.argv[2:]
from pathlib import Path
from engine_jobs import timing
from lra.engine.cluster.grid import Grid
from lra.engine.cluster.connect import open_cluster
from lra.store import Store

place = Path(sys.argv[1])
with (
    Store(place / "store").locked() as store,
    open_cluster("local:1", store.path, device="cpu") as cluster,
):
    print(*cluster.client.run(os.getpid).values(), flush=True)
    list(Grid(store, cluster).run([timing("Sleeps", place, note=str(place))]))
"""


@pytest.fixture
def run(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    folders = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]
    with subprocess.Popen(
        [sys.executable, "-c", RUN, str(tmp_path), *folders],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as run:
        try:
            yield run
        finally:
            run.kill()


def test_a_run_that_is_killed_leaves_no_worker_behind(
    tmp_path: Path, run: subprocess.Popen[str]
) -> None:
    assert run.stdout is not None
    workers = [int(pid) for pid in run.stdout.readline().split()]
    # It may have to wait for the timings of other runs on this machine.
    assert wait_until(lambda: bool(list(tmp_path.glob("pids-*"))), 60.0)
    run.kill()
    (note,) = tmp_path.glob("pids-*")
    everyone = [*workers, *map(int, note.read_text().split())]
    assert len(everyone) == 3
    assert gone(everyone), [pid for pid in everyone if alive(pid)]


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_ctrl_c_while_workers_start_leaves_none_behind(run: subprocess.Popen[str]) -> None:
    # The run, Python's resource tracker, and a worker.
    assert wait_until(lambda: len(descendants(run.pid)) == 3)
    everyone = descendants(run.pid)
    os.killpg(run.pid, signal.SIGINT)
    _, stderr = run.communicate(timeout=60)
    assert run.returncode == 130 and stderr == ""
    assert gone(everyone), [pid for pid in everyone if alive(pid)]
