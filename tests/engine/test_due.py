"""Which cells of a plan are due, and in which order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from engine_jobs import baselines, timing, training

from lra.core.records import Failure, Record
from lra.engine.jobs import Job
from lra.engine.order.due import Due
from lra.store import Store

CACHE = Path("cache")
NAMES = ("Floor", "Exact", "Ours", "Theirs")


def _round(length: int, replicate: int = 0) -> list[Job]:
    jobs = [timing(name, CACHE, length=length) for name in NAMES]
    return [
        msgspec.structs.replace(job, cell=msgspec.structs.replace(job.cell, replicate=replicate))
        for job in jobs
    ]


def _save(store: Store, job: Job, *, ago: float, seconds: float = 60, **changes: Any) -> None:
    """A record that began so many minutes ago."""
    began = datetime.now(UTC) - timedelta(minutes=ago)
    started_at = began.isoformat(timespec="seconds")
    record = Record(
        id=job.cell.id, cell=job.cell, status="ok", started_at=started_at, seconds=seconds
    )
    store.save(msgspec.structs.replace(record, **changes))


def _finish(store: Store, jobs: list[Job], *, ago: float) -> None:
    """Records of jobs that ran one after the other, a minute each; the first began so long ago."""
    for number, job in enumerate(jobs):
        _save(store, job, ago=ago - number)


SHORT, LONG, AGAIN = _round(32), _round(64), _round(32, 1)
PLAN = [*SHORT, *LONG, *AGAIN]


@pytest.fixture
def finished(store: Store) -> Store:
    """A store with the whole plan, measured an hour ago."""
    _finish(store, PLAN, ago=60)
    return store


@pytest.mark.parametrize("together", [False, True])
def test_what_has_a_record_is_not_due(finished: Store, together: bool) -> None:
    assert Due(finished, together=together).select(PLAN) == []
    assert Due(finished, together=together, rerun="all").select(PLAN) == PLAN
    assert Due(finished, together=together).ordered([]) == []


def test_a_round_is_due_with_one_of_it_and_no_other_round_is(finished: Store) -> None:
    plan = [*SHORT, *LONG, timing("New", CACHE, length=64), *AGAIN, training("Toy", CACHE)]
    asked = {plan[8].cell.id, plan[-1].cell.id}
    assert {job.cell.id for job in Due(finished).select(plan)} == asked
    assert Due(finished, together=True).select(plan) == [*LONG, plan[8], plan[-1]]


def test_a_timing_on_a_busy_machine_is_measured_with_its_round(finished: Store) -> None:
    due = Due(finished, rerun="disturbed", busy={LONG[2].cell.id}, together=True)
    assert due.select(PLAN) == LONG


def test_what_was_measured_just_now_stays(store: Store) -> None:
    _finish(store, LONG[:2], ago=4)
    assert Due(store, together=True).select(LONG) == LONG[2:]


def test_a_round_that_was_broken_by_a_pause_is_due_again(store: Store) -> None:
    """As where a rerun was stopped within it, and all of it has records."""
    _finish(store, [*SHORT, *AGAIN], ago=300)
    _finish(store, LONG[:2], ago=200)
    _finish(store, LONG[2:], ago=30)
    assert Due(store).select(PLAN) == []
    assert Due(store, together=True).select(PLAN) == LONG


def test_a_failed_cell_of_a_round_is_not_tried_again_and_fills_its_time(store: Store) -> None:
    """A timeout of 30 minutes between two figures is no pause, and an old one breaks no round."""
    timeout = {"status": "timeout", "failure": Failure(type="Timeout", message="no result")}
    _save(store, LONG[0], ago=100)
    _save(store, LONG[1], ago=99, seconds=1800, **timeout)
    _save(store, LONG[2], ago=69)
    _save(store, LONG[3], ago=500, **timeout)
    assert Due(store, together=True).select(LONG) == []
    missing = timing("New", CACHE, length=64)
    assert Due(store, together=True).select([*LONG, missing]) == [LONG[0], LONG[2], missing]
    assert Due(store, together=True, rerun="failed").select(LONG) == LONG


def test_a_rerun_goes_on_where_it_was_stopped(store: Store) -> None:
    _finish(store, [*SHORT, *LONG[:2]], ago=60)
    _finish(store, AGAIN, ago=90)
    assert Due(store).ordered(PLAN) == [*LONG[2:], *AGAIN, *SHORT, *LONG[:2]]
    _finish(store, LONG[2:], ago=50)
    assert Due(store).ordered(PLAN) == [*AGAIN, *SHORT, *LONG]


def test_the_rest_of_a_round_comes_before_other_rounds(store: Store) -> None:
    """Missing cells come first, so that short budgets get to all of them."""
    _finish(store, [*SHORT, *LONG[:2]], ago=60)
    turn = Due(store, together=True).ordered(PLAN)
    assert turn == [*LONG[2:], *LONG[:2], *AGAIN, *SHORT]


def test_what_was_left_out_is_due_where_nothing_leaves_it_out_now(store: Store) -> None:
    short, longer = (timing("Toy", CACHE, length=length) for length in (32, 64))
    oom = {"status": "oom", "failure": Failure(type="MemoryError", message="")}
    _save(store, short, ago=9, **oom)
    skipped = Failure(type="Pruned", message="not tried: oom already at length 32")
    _save(store, longer, ago=9, status="skipped", failure=skipped)
    assert Due(store).select([short, longer]) == []
    assert Due(store, prune=False).select([short, longer]) == [longer]
    assert Due(store, rerun="failed").select([short, longer]) == [short, longer]
    _save(store, short, ago=5)
    assert Due(store).select([short, longer]) == [longer]


def test_cells_without_a_length_are_rounds_of_their_own(store: Store) -> None:
    plan = [training("Toy", CACHE), training("Toy", CACHE, seed=1), baselines(CACHE)]
    _save(store, plan[0], ago=60)
    assert Due(store, together=True).select(plan) == plan[1:]


def test_what_was_begun_has_a_checkpoint_or_a_fresh_part_of_its_round(store: Store) -> None:
    plan = [*SHORT, *LONG, training("Toy", CACHE), training("Toy", CACHE, seed=1)]
    store.checkpoint(plan[-1].cell.id).touch()
    _finish(store, LONG[:2], ago=4)
    _finish(store, SHORT[:1], ago=60)
    due = Due(store, together=True)
    assert due.resumable(plan, due.select(plan)) == {job.cell.id for job in (*LONG[2:], plan[-1])}
    alone = Due(store)
    assert alone.resumable(plan, alone.select(plan)) == {plan[-1].cell.id}
