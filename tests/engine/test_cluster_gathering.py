"""How long a run waits for workers, and which of them are started again; no cluster runs here."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("distributed", reason="needs the extra cluster")

from lra.core.errors import LraError
from lra.engine.cluster import cluster as module
from lra.engine.cluster.cluster import Cluster
from lra.engine.cluster.local import MOST_FALLS, LocalWorkers
from lra.engine.cluster.shared_folder import Shared


class Clock:
    """Time that passes while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Roster:
    """Workers that join at set times."""

    is_waiting = False

    def __init__(self, clock: Clock, joins: Collection[float]) -> None:
        self._clock, self._joins = clock, joins
        self.members: dict[int, object] = {}
        self.names: set[str] = set()

    def look(self, *, now: bool) -> list[Any]:
        self.members = {n: n for n, at in enumerate(self._joins) if at <= self._clock.now}
        return []

    def news(self) -> list[str]:
        return []


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(module, "time", found)
    return found


def waiting(clock: Clock, folder: Path, *, joins: Collection[float], patience: float) -> Cluster:
    found: Any = SimpleNamespace(
        name="slurm.toml",
        client=SimpleNamespace(status="running"),
        shared=Shared(str(folder), "token"),
        patience=patience,
        roster=Roster(clock, joins),
        tend=lambda joined: None,
    )
    return found


FOR_EVER = float("inf")


@pytest.mark.parametrize(
    ("joins", "patience", "begins"),
    [
        ([5.0, 30.0], 60.0, 30),
        ([400.0, 900.0], FOR_EVER, 460),
        ([400.0, 430.0], FOR_EVER, 430),
        ([5.0, 900.0], 60.0, 65),
    ],
)
def test_a_run_begins_with_all_workers_or_those_that_come_soon_after_the_first(
    clock: Clock, tmp_path: Path, joins: list[float], patience: float, begins: float
) -> None:
    cluster = waiting(clock, tmp_path, joins=joins, patience=patience)
    Cluster.gather(cluster, 2, lambda line: None)
    assert clock.now == pytest.approx(begins, abs=0.2)


def test_where_no_worker_comes_a_line_says_so(clock: Clock, tmp_path: Path) -> None:
    cluster = waiting(clock, tmp_path, joins=[], patience=60.0)
    with pytest.raises(LraError, match=r"^--cluster slurm\.toml: no worker has come in 60 s; sta"):
        Cluster.gather(cluster, 2, lambda line: None)


def test_no_queue_is_waited_for_longer_than_the_budget(clock: Clock, tmp_path: Path) -> None:
    cluster = waiting(clock, tmp_path, joins=[], patience=FOR_EVER)
    with pytest.raises(LraError, match=r"no worker has come in 90 s; give --budget more, "):
        Cluster.gather(cluster, 2, lambda line: None, lambda: max(0.0, 90.0 - clock.now))
    cluster = waiting(clock, tmp_path, joins=[100.0], patience=FOR_EVER)
    Cluster.gather(cluster, 2, lambda line: None, lambda: max(0.0, 120.0 - clock.now))
    assert clock.now == pytest.approx(120, abs=0.2)


@pytest.fixture
def workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalWorkers:
    """One that ends as soon as it starts."""

    def start(self: LocalWorkers, place: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-S", "-c", ""], stdin=subprocess.PIPE)

    monkeypatch.setattr(LocalWorkers, "_start", start)
    return LocalWorkers("tcp://nowhere:1", 1, Shared(str(tmp_path), "token"))


def fall(workers: LocalWorkers, joined: Collection[str]) -> None:
    workers._processes[0].wait()
    workers.tend(joined)


def test_a_worker_that_never_joins_is_given_up(workers: LocalWorkers) -> None:
    for _ in range(MOST_FALLS):
        fall(workers, ())
    with pytest.raises(LraError, match=r"worker local-0 ends as soon as it starts; see .*logs"):
        fall(workers, ())
    workers.close()


def test_a_worker_that_its_cells_kill_is_started_again_each_time(workers: LocalWorkers) -> None:
    for _ in range(3 * MOST_FALLS):
        fall(workers, {"local-0"})
    workers.close()
