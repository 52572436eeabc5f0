"""Cells of a series share a worker until one fails; cut at any moment, none is lost or repeated."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest
from engine_jobs import Run, timing
from msgspec.structs import replace
from processes import gone, wait_until

from lra.core.records import Record
from lra.engine.jobs import Job, Progress
from lra.engine.order.budget import Budget
from lra.engine.process.launch import ForkServer
from lra.engine.process.pool import Pool
from lra.engine.process.runner import Watcher
from lra.store import Store


def series(*jobs: Job, name: str = "of one mechanism") -> list[Job]:
    return [replace(job, series=name) for job in jobs]


def before(records: list[Record]) -> list[object]:
    return [record.method.get("cells_before") for record in records]


@pytest.fixture
def started(server: ForkServer, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Ids of the workers that the server starts, in order; looked up when they have ended."""
    workers = []
    start = server.start

    def noted(payload: bytes) -> object:
        workers.append(start(payload))
        return workers[-1]

    monkeypatch.setattr(server, "start", noted)
    return workers


def test_a_series_has_one_process_and_other_cells_their_own(
    run: Run, cache: Path, started: list[object]
) -> None:
    one = series(*(timing("Toy", cache, length=n) for n in (8, 16, 32)))
    other = series(timing("Slow", cache), name="of another")
    jobs = [*one, *other, timing("Toy", cache, mode="train")]
    found = run(*jobs)
    assert [record.status for record in found] == ["ok"] * 5
    assert before(found) == [0, 1, 2, 0, None]
    assert len(started) == 3
    assert [r.id for r in found] == [job.cell.id for job in jobs]
    assert all(record.seconds > 0.0 for record in found)
    assert gone(worker.pid for worker in started)  # type: ignore[attr-defined]


def test_after_a_failure_there_is_a_new_process_and_after_a_refusal_none(
    run: Run, cache: Path, started: list[object]
) -> None:
    toys = ("Raises", "Toy", "Refuses", "Toy", "Killed", "Toy")
    jobs = series(*(timing(toy, cache, length=8 * n) for n, toy in enumerate(toys, start=1)))
    found = run(*jobs)
    assert [r.status for r in found] == ["error", "ok", "unsupported", "ok", "crash", "ok"]
    assert before(found) == [0, 0, 1, 2, None, 0]
    assert len(started) == 3


def test_a_failure_has_its_own_last_words_and_its_own_time(
    run: Run, cache: Path, tmp_path: Path
) -> None:
    jobs = series(
        timing("Toy", cache), timing("Raises", cache), timing("Sleeps", cache, note=str(tmp_path))
    )
    good, bad, slow = run(*jobs, timeout=4.0)
    assert good.status == "ok"
    assert bad.failure is not None and "the last words" in bad.failure.tail
    assert slow.status == "timeout" and slow.failure is not None
    assert "the last words" not in slow.failure.tail
    assert 4.0 <= slow.seconds < 10.0


def test_a_waiting_worker_that_is_killed_costs_no_cell(
    run: Run, cache: Path, started: list[object]
) -> None:
    class Killer(Watcher):
        """Ends the worker between two cells."""

        def finished(self, job: Job, record: Record) -> None:
            worker = started[-1]
            os.kill(worker.pid, signal.SIGKILL)  # type: ignore[attr-defined]
            # Until it is reaped its threads may hold its connection.
            assert wait_until(lambda: not Path(f"/proc/{worker.pid}").exists())  # type: ignore[attr-defined]

    jobs = series(*(timing("Toy", cache, length=n) for n in (8, 16, 32)))
    found = run(*jobs, watcher=Killer())
    assert [record.status for record in found] == ["ok"] * 3
    assert before(found) == [0, 0, 0] and len(started) == 3


@pytest.mark.parametrize("seed", range(3))
def test_cut_at_any_moment_it_goes_on_and_measures_each_cell_once(
    server: ForkServer, store: Store, cache: Path, seed: int, started: list[object]
) -> None:
    chance = random.Random(seed)
    jobs = series(
        *(timing("Toy", cache, length=8 * n, mode=m) for m in ("forward", "train") for n in (1, 2))
    )
    kept: list[str] = []
    for _ in range(50):
        now, after = [0.0], chance.randrange(1, 14)

        class Cut(Watcher):
            """Ends the time when so many phases have been told."""

            told = 0

            def progress(self, job: Job, progress: Progress, now=now, after=after) -> None:  # type: ignore[no-untyped-def]
                self.told += 1
                if self.told == after:
                    now[0] = 99.0

        left = [job for job in jobs if store.load(job.cell.id) is None]
        if not left:
            break
        budget = Budget(100, lambda now=now: now[0])  # type: ignore[misc]
        pool = Pool(store, server, slots=1, budget=budget, watcher=Cut())
        kept += [record.id for record in pool.run(left)]
        assert len(pool.left) == len(jobs) - len(kept)
    assert sorted(kept) == sorted(job.cell.id for job in jobs)
    assert {record.status for record in store.records()} == {"ok"}
    assert gone(worker.pid for worker in started if worker.pid)  # type: ignore[attr-defined]
