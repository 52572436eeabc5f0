"""Notes of what was stopped in vain."""

from __future__ import annotations

import time
from pathlib import Path
from unittest.mock import Mock, call

import pytest
from diary import Diary
from engine_jobs import baselines, training

from lra.core.records import Record
from lra.engine.jobs import Job, Progress
from lra.engine.order.lost_time import LostTime, seconds_needed
from lra.engine.process.runner import Watcher
from lra.store import Store

LOST, KEPT = baselines(Path("cache")), training("Toy", Path("cache"))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def stop(store: Store, job: Job, clock: list[float], *, after: float) -> None:
    cuts = LostTime(store, Diary())
    cuts.started(job)
    clock[0] += after
    cuts.left(job)


def record_of(job: Job) -> Record:
    return Record(id=job.cell.id, cell=job.cell, status="ok", started_at="", seconds=1.0)


def test_a_cell_that_was_lost_is_to_have_a_quarter_more(store: Store, clock: list[float]) -> None:
    assert seconds_needed(store, LOST) is None
    stop(store, LOST, clock, after=80.0)
    assert seconds_needed(store, LOST) == 100.0
    stop(store, LOST, clock, after=160.0)
    assert seconds_needed(store, LOST) == 200.0


def test_one_that_is_stopped_sooner_the_next_time_is_to_have_no_less(
    store: Store, clock: list[float]
) -> None:
    stop(store, LOST, clock, after=80.0)
    stop(store, LOST, clock, after=4.0)
    assert seconds_needed(store, LOST) == 100.0


def test_a_training_loses_nothing(store: Store, clock: list[float]) -> None:
    stop(store, KEPT, clock, after=80.0)
    assert seconds_needed(store, KEPT) is None


def test_a_record_takes_its_place(store: Store, clock: list[float]) -> None:
    stop(store, LOST, clock, after=80.0)
    LostTime(store, Diary()).finished(LOST, record_of(LOST))
    assert seconds_needed(store, LOST) is None
    assert list(store.checkpoint("").parent.iterdir()) == []


def test_a_note_that_was_cut_off_says_nothing(store: Store) -> None:
    store.checkpoint(LOST.cell.id).with_suffix(".cut").write_text("")
    assert seconds_needed(store, LOST) is None


def test_the_other_watcher_hears_all(store: Store) -> None:
    told = {
        "started": (LOST,),
        "progress": (LOST, Progress(phase="train")),
        "waiting": (LOST, "another run"),
        "noticed": ("a worker is gone",),
        "left": (LOST,),
        "close": (),
        "finished": (LOST, record_of(LOST)),
    }
    assert set(told) == {name for name in vars(Watcher) if not name.startswith("_")}
    other = Mock(spec=Watcher)
    cuts = LostTime(store, other)
    for name, what in told.items():
        getattr(cuts, name)(*what)
    assert other.mock_calls == [getattr(call, name)(*what) for name, what in told.items()]
