"""What the grid makes of what it hears of a job, or no longer hears; no cluster runs here."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from diary import Diary
from engine_jobs import training

pytest.importorskip("distributed", reason="needs the extra cluster")

from lra.core.errors import LraError
from lra.core.protocol import Machine
from lra.core.records import Failure
from lra.engine.cluster import grid as module
from lra.engine.cluster.grid import Grid
from lra.engine.cluster.messages import Ended, Word
from lra.engine.cluster.shared_folder import Shared
from lra.engine.cluster.workers import Member
from lra.engine.jobs import Job, Outcome
from lra.engine.machine.host import machine_facts
from lra.engine.machine.provenance import provenance
from lra.store import Store


class Future:
    """A task that is carried out by nobody."""

    status = "pending"

    def done(self) -> bool:
        return self.status != "pending"

    def add_done_callback(self, call: Callable[[Any], None]) -> None:
        pass

    def release(self) -> None:
        pass


class Roster:
    """One worker, which takes whatever comes."""

    is_waiting, has_room = False, True

    def __init__(self) -> None:
        greeting: Any = SimpleNamespace(
            host="here",
            gpus=(),
            machines={"cpu": Machine(processor="toy", cores=1)},
            provenance=provenance(machine_facts()),
        )
        self.member = Member("w0", "w0", greeting, "")
        self.members, self.names = {"w0": self.member}, {"w0"}
        self.gone: list[Member] = []
        self.refused: list[str] = []
        self.asked: list[str] = []
        self.futures: list[Future] = []

    def new_round(self) -> None:
        pass

    def look(self) -> list[Member]:
        found, self.gone = self.gone, []
        return found

    def news(self) -> list[str]:
        return []

    def ask(self, address: str, what: object, *arguments: object, key: str) -> Future:
        self.asked.append(key)
        self.futures.append(Future())
        return self.futures[-1]

    def place_for(self, job: Job) -> Member | None:
        return self.member if self.member.job is None else None

    def refuse(self, member: Member, why: str) -> None:
        self.refused.append(why)


@pytest.fixture
def roster() -> Roster:
    return Roster()


@pytest.fixture
def grid(tmp_path: Path, roster: Roster) -> Iterator[Grid]:
    cluster: Any = SimpleNamespace(
        name="toy",
        run="run",
        roster=roster,
        client=SimpleNamespace(status="running"),
        shared=Shared(str(tmp_path), "token"),
        patience=60.0,
        listen=lambda put: None,
        localised=lambda job, checkpoint: job,
        tend=lambda joined: None,
    )
    with Store(tmp_path / "store").locked() as store:
        yield Grid(store, cluster, watcher=Diary())


def launched(grid: Grid, *jobs: Job) -> None:
    """Give the worker the first of the jobs."""
    grid._waiting, grid._open = list(jobs), {job.cell.id for job in jobs}
    assert list(grid._start()) == []
    assert grid._waiting == list(jobs[1:])


def failed(seconds: float) -> Ended:
    failure = Failure(type="E", message="m", phase="train")
    return Ended(
        outcome=Outcome(status="error", failure=failure),
        started_at="2026-01-01T00:00:00+00:00",
        seconds=seconds,
    )


def test_two_deaths_are_too_many_unless_the_training_got_further_in_between(
    grid: Grid, roster: Roster, cache: Path
) -> None:
    job = training("Toy", cache)
    saved = grid.store.checkpoint(job.cell.id)
    saved.parent.mkdir(parents=True, exist_ok=True)
    launched(grid, job)
    for time in (100, 200, 300):
        saved.touch()
        os.utime(saved, (time, time))
        roster.gone = [roster.member]
        assert list(grid._collect()) == [], "it goes on from what was saved since"
        assert grid._waiting == [job]
        launched(grid, job)
    roster.gone = [roster.member]
    (record,) = grid._collect()
    assert record.failure is not None and record.failure.type == "KilledWorker"
    assert saved.is_file(), "for --rerun failed"


def test_what_comes_late_of_a_job_that_runs_again_is_not_stored(
    grid: Grid, roster: Roster, cache: Path
) -> None:
    job = training("Toy", cache)
    launched(grid, job)
    roster.gone = [roster.member]
    assert list(grid._collect()) == []
    launched(grid, job)
    first, second = roster.asked
    for key, seconds in ((first, 1.0), (second, 2.0), (second, 3.0)):
        grid._words.put(Word(key, failed(seconds)))
    assert [record.seconds for record in grid._collect()] == [2.0]
    assert [record.seconds for record in grid.store.records()] == [2.0]


def test_a_task_that_is_done_is_given_time_for_its_last_word(
    grid: Grid, roster: Roster, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now))
    first, second = training("Toy", cache), training("Toy", cache, seed=1)

    launched(grid, first, second)
    roster.futures[-1].status = "finished"
    assert list(grid._collect()) == []
    now += 0.9 * module._LATE
    assert list(grid._collect()) == []
    grid._words.put(Word(roster.asked[-1], failed(1.0)))
    assert [record.seconds for record in grid._collect()] == [1.0]

    launched(grid, second)
    roster.futures[-1].status = "finished"
    assert list(grid._collect()) == []
    assert grid._waiting == []
    now += 1.1 * module._LATE
    assert list(grid._collect()) == []
    assert grid._waiting == [second], "its word is lost"


def test_a_job_whose_worker_is_preempted_runs_elsewhere(
    grid: Grid, roster: Roster, cache: Path
) -> None:
    job, other = training("Toy", cache), training("Toy", cache, seed=1)
    launched(grid, job, other)
    grid._words.put(Word(roster.asked[0], Ended()))
    assert list(grid._collect()) == []
    assert roster.refused == ["is being ended"]
    assert grid._waiting == [job, other] and not grid._deaths


def test_a_run_that_ends_starts_no_worker_again(grid: Grid) -> None:
    """What cannot start one is no reason not to wait for the others to save."""

    def tend(joined: Collection[str]) -> None:
        raise LraError("worker local-1 ends as soon as it starts")

    grid._cluster.tend = tend
    with pytest.raises(LraError, match="local-1"):
        list(grid._collect())
    grid._stopping = True
    assert list(grid._collect()) == []
