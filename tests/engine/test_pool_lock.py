"""Runs side by side: timings take turns, trainings go on meanwhile."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import pytest
from diary import Diary
from engine_jobs import MakePool, timing, training
from msgspec.structs import replace

from lra.core.records import Record
from lra.engine.jobs import Job
from lra.engine.machine.timing_lock import TimingLock
from lra.engine.order.budget import Budget
from lra.engine.process import pool as pool_module
from lra.engine.process.launch import ForkServer
from lra.engine.process.pool import Pool
from lra.engine.process.runner import RunStopped
from lra.store import Store

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps the order")


class Waits(Diary):
    """Notes who waits as well, and what is to happen at a record."""

    def __init__(self, at_record: object = None) -> None:
        super().__init__()
        self.whom: list[str] = []
        self.at_record = at_record

    def waiting(self, job: Job, whom: str) -> None:
        self.whom.append(f"{job.label} for {whom}")

    def finished(self, job: Job, record: Record) -> None:
        super().finished(job, record)
        if callable(self.at_record):
            self.at_record()


@pytest.fixture
def other(tmp_path: Path) -> TimingLock:
    """Another run's lock, held."""
    lock = TimingLock(tmp_path / "lock")
    assert lock.acquire()
    return lock


@pytest.fixture
def pool(tmp_path: Path, pool: MakePool) -> MakePool:
    """Its lock is that of the test."""

    def make(**terms: object) -> Pool:
        made = pool(**terms)
        made._lock = TimingLock(tmp_path / "lock")
        return made

    return make


def test_trainings_go_on_while_a_timing_waits(
    pool: MakePool, cache: Path, other: TimingLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "PATIENCE", 0.0)
    left = [3]

    def released_at_the_third() -> None:
        left[0] -= 1
        if not left[0]:
            other.release()

    diary = Waits(released_at_the_third)
    jobs = [training("Toy", cache, seed=seed) for seed in range(4)]
    jobs[1:1] = [timing("Toy", cache), timing("Toy", cache, length=8)]
    found = list(pool(watcher=diary).run(jobs))
    order = [jobs.index(job) for r in found for job in jobs if job.cell.id == r.id]
    # Once it is free they wait for the timings again.
    assert order == [0, 3, 4, 1, 2, 5]
    (whom,) = diary.whom
    assert f"process {os.getpid()}" in whom


def test_cells_behind_wait_a_moment_for_the_end_of_anothers_timing(
    pool: MakePool, cache: Path, other: TimingLock
) -> None:
    diary = Waits()
    diary.waiting = lambda job, whom: other.release()  # type: ignore[method-assign]
    jobs = [timing("Toy", cache), training("Toy", cache)]
    list(pool(watcher=diary).run(jobs))
    assert [line.partition(" ")[2] for line in diary.lines[::2]] == [job.label for job in jobs]


def test_while_it_trains_it_is_in_nobodys_way_and_keeps_its_place(
    pool: MakePool, cache: Path, tmp_path: Path, other: TimingLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "PATIENCE", 0.0)
    third, got = TimingLock(tmp_path / "lock"), []

    def at_training() -> None:
        other.release()
        got.append(third.acquire())

    diary = Waits(lambda: third.release())
    diary.at_training = at_training
    list(pool(watcher=diary).run([timing("Toy", cache), training("Toy", cache)]))
    assert got[0] is True
    assert [line.partition(" ")[0] for line in diary.lines] == ["start", "ok", "start", "ok"]


def test_a_run_that_only_trains_knows_no_lock(pool: MakePool, cache: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "lock")
    assert [r.status for r in pool().run([training("Toy", cache)])] == ["ok"]


@pytest.mark.parametrize("how", ["budget", "signal", "not admitted"])
def test_a_run_that_no_longer_waits_gives_up_its_place(
    pool: MakePool, cache: Path, other: TimingLock, how: str
) -> None:
    now, admitted = [0.0], [True]

    class Ends(Waits):
        def waiting(self, job: Job, whom: str) -> None:
            super().waiting(job, whom)
            if how == "budget":
                now[0] = 99.0
            elif how == "signal":
                os.kill(os.getpid(), signal.SIGTERM)
            else:
                admitted[0] = False

    job, diary = timing("Toy", cache), Ends()
    budget = Budget(100, lambda: now[0])
    run = pool(watcher=diary, budget=budget, admits=lambda job: admitted[0])
    if how == "signal":
        with pytest.raises(RunStopped):
            list(run.run([job]))
    else:
        assert list(run.run([job])) == []
    assert run.left == [job] and len(diary.whom) == 1
    assert not other.is_contended


def test_two_runs_take_turns_and_a_series_gives_way(
    pool: MakePool, server: ForkServer, cache: Path, tmp_path: Path
) -> None:
    """Each in a thread of its own, with a server of its own."""
    done: list[str] = []
    apart: dict[str, list[object]] = {}

    def carry(name: str, server: ForkServer, began: threading.Event) -> None:
        class Tells(Diary):
            def finished(self, job: Job, record: Record) -> None:
                done.append(name)
                began.set()

        jobs = [
            replace(timing("Toy", cache, length=8 * n), series="one")
            for n in range(1, 7 if name == "first" else 4)
        ]
        with Store(tmp_path / name).locked() as store:
            records = list(pool(store=store, server=server, watcher=Tells()).run(jobs))
        apart[name] = [record.method["cells_before"] for record in records]

    began = threading.Event()
    with ForkServer() as servers:
        second = threading.Thread(target=carry, args=("second", servers, threading.Event()))
        first = threading.Thread(target=carry, args=("first", server, began))
        first.start()
        assert began.wait(60)
        second.start()
        first.join()
        second.join()
    assert len(done) == 9
    came = done.index("second")
    assert done[came : came + 5] == ["second", "first", "second", "first", "second"]
    # No worker waits beside another run's timing.
    assert apart["second"] == [0, 0, 0] and 0 in apart["first"][1:]
