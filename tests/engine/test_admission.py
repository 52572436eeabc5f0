"""Cells admitted to a stretch of time, by a clock of our own."""

from __future__ import annotations

from pathlib import Path

from engine_jobs import baselines, timing, training

from lra.engine.order.admission import Admission, count_ended_within, too_long

CACHE = Path("cache")
BASELINES, TRAINING, TIMING = baselines(CACHE), training("Toy", CACHE), timing("Toy", CACHE)
ROUND = [timing(name, CACHE, length=64) for name in ("Floor", "Exact", "Ours")]
TEN = {job.cell.id: 10.0 for job in (BASELINES, TRAINING, TIMING, *ROUND)}


def test_only_what_can_be_continued_starts_where_it_does_not_fit() -> None:
    for left, admitted in ((10.1, [True] * 3), (9.9, [True, False, False]), (0.0, [False] * 3)):
        stretch = Admission(lambda left=left: left, [], TEN)
        assert [stretch.admits(job) for job in (TRAINING, BASELINES, TIMING)] == admitted


def test_what_is_unknown_starts_and_a_timing_where_its_passes_fit() -> None:
    stretch = Admission(lambda: 0.03, [], {})
    assert stretch.admits(BASELINES)
    assert not stretch.admits(TIMING), "it times for 0.02 s, and looks at memory as long"
    assert Admission(lambda: 0.05, [], {}).admits(TIMING)


def test_a_round_starts_only_where_all_of_it_fits() -> None:
    left = [100.0]
    stretch = Admission(lambda: left[0], ROUND, TEN, together=True)
    left[0] = 29.0
    assert not any(stretch.admits(job) for job in ROUND)
    assert stretch.admits(TIMING), "another round"
    left[0] = 31.0
    assert stretch.admits(ROUND[0]) and stretch.admits(ROUND[0])
    left[0] = 15.0
    assert [stretch.admits(job) for job in ROUND[1:]] == [True, True], "it has begun"
    left[0] = 5.0
    assert not stretch.admits(ROUND[2])


def test_a_round_that_waited_too_long_for_its_start_is_left_whole() -> None:
    left = [31.0]
    stretch = Admission(lambda: left[0], ROUND, TEN, together=True)
    assert stretch.admits(ROUND[0])
    left[0] = 29.0
    assert not any(stretch.admits(job) for job in ROUND)


def test_a_round_that_fits_into_no_such_stretch_goes_cell_by_cell() -> None:
    stretch = Admission(lambda: 25.0, ROUND, TEN, together=True)
    assert all(stretch.admits(job) for job in ROUND)


def test_rounds_are_split_up_where_they_are_not_measured_together() -> None:
    left = [100.0]
    stretch = Admission(lambda: left[0], ROUND, TEN)
    left[0] = 15.0
    assert stretch.admits(ROUND[0])


def test_what_fits_into_no_stretch_is_named_with_what_it_needs() -> None:
    jobs = [BASELINES, TRAINING, TIMING]
    assert too_long(jobs, TEN, 10.0) == {BASELINES.cell.id: 10.0, TIMING.cell.id: 10.0}
    assert too_long(jobs, TEN, 10.1) == too_long(jobs, {}, 10.0) == {}


def test_how_many_end_in_time() -> None:
    two = [training("Toy", CACHE, seed=seed) for seed in (1, 2)]
    jobs = [TRAINING, *two, TIMING, BASELINES]
    known = {**TEN, **{job.cell.id: 10.0 for job in two}, BASELINES.cell.id: 2.0}
    assert count_ended_within(jobs, known, 53.0, slots=1) == 5
    assert count_ended_within(jobs, known, 33.0, slots=1) == 4, "the timing is passed over"
    assert count_ended_within(jobs, known, 29.0, slots=1) == 2, "the third training takes the rest"
    assert count_ended_within(jobs, known, 15.1, slots=2) == 3, "beside each other"
    assert count_ended_within([TIMING, *ROUND], TEN, 29.0, slots=2) == 2, "timings run alone"
    assert count_ended_within(jobs, {}, 53.0, slots=1) == 0


def test_rounds_end_in_time_as_they_start() -> None:
    jobs = [BASELINES, *ROUND]
    assert count_ended_within(jobs, TEN, 35.0, slots=1, together=True) == 1
    assert count_ended_within(jobs, TEN, 35.0, slots=1) == 3
