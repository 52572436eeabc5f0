"""In which order a stretch of time runs cells: rule by rule, each with all else against it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from engine_jobs import baselines, timing, training

from lra.core.cells import CeilingCell, ErrorCell
from lra.core.protocol import Machine, Mechanism
from lra.engine.jobs import Job
from lra.engine.order.priority import by_priority

CACHE = Path("cache")
BASELINES = baselines(CACHE)
FIRST = {name: training(name, CACHE) for name in ("ours", "theirs", "sdpa", "identity", "local")}
SECOND = {name: training(name, CACHE, seed=1) for name in FIRST}
CEILING = msgspec.structs.replace(
    BASELINES,
    cell=CeilingCell(machine=Machine(processor="toy", cores=1), torch="0", threads=1, versions={}),
)


def a_round(length: int, replicate: int = 0) -> list[Job]:
    jobs = [timing(name, CACHE, length=length) for name in ("identity", "sdpa", "ours")]
    return [
        msgspec.structs.replace(job, cell=msgspec.structs.replace(job.cell, replicate=replicate))
        for job in jobs
    ]


def error(length: int, seed: int = 0) -> Job:
    cell = ErrorCell(
        machine=Machine(processor="toy", cores=1),
        torch="0",
        threads=1,
        versions={},
        scale="toy",
        mechanism=Mechanism(name="ours"),
        length=length,
        heads=1,
        head_width=4,
        seed=seed,
    )
    return msgspec.structs.replace(BASELINES, cell=cell)


def ordered(
    *jobs: Job,
    seconds: Sequence[float | None] = (),
    begun: Sequence[Job] = (),
    recorded: Sequence[Job] = (),
) -> list[Job]:
    """The jobs by value; each takes its number of seconds, where there is one."""
    told = zip(jobs, seconds, strict=False)
    return by_priority(
        jobs,
        missing={job.cell.id for job in jobs if job not in recorded},
        begun={job.cell.id for job in begun},
        expected={job.cell.id: one for job, one in told if one is not None},
    )


def test_what_was_begun_comes_before_first_seeds_references_and_short_cells() -> None:
    begun = SECOND["ours"]
    plan = (BASELINES, FIRST["sdpa"], FIRST["ours"], begun)
    assert ordered(*plan, seconds=(1, 1, 1, 99), begun=[begun])[0] == begun
    assert ordered(*plan, seconds=(1, 1, 1, 99))[-1] == begun


def test_of_what_was_begun_the_other_rules_say_what_is_first() -> None:
    plan = (SECOND["sdpa"], FIRST["ours"], FIRST["sdpa"])
    assert ordered(*plan, begun=plan) == [FIRST["sdpa"], FIRST["ours"], SECOND["sdpa"]]


def test_everything_comes_once_before_anything_comes_again() -> None:
    """References and short cells, too."""
    plan = (SECOND["sdpa"], SECOND["ours"], FIRST["ours"])
    assert ordered(*plan, seconds=(1, 1, 99)) == [FIRST["ours"], SECOND["sdpa"], SECOND["ours"]]


def test_what_others_are_read_against_comes_before_short_cells() -> None:
    plan = (FIRST["ours"], FIRST["local"], FIRST["identity"], FIRST["sdpa"], BASELINES, CEILING)
    assert ordered(*plan, seconds=(1, 75, 70, 60, 99, 80)) == [*reversed(plan)]


def test_the_shortest_comes_first_and_what_is_unknown_after_it_as_in_the_plan() -> None:
    other = training("other", CACHE)
    plan = (FIRST["theirs"], FIRST["ours"], other, training("another", CACHE))
    assert ordered(*plan, seconds=(None, 9, None, 2)) == [plan[3], plan[1], plan[0], plan[2]]


def test_a_round_is_not_split_up_and_keeps_its_order() -> None:
    """As long as its mean cell: here between two trainings."""
    floor, exact, ours = a_round(32)
    plan = (floor, exact, FIRST["theirs"], FIRST["ours"], ours)
    turn = ordered(*plan, seconds=(9, 3, 8, 4, 6))
    assert turn == [FIRST["ours"], floor, exact, ours, FIRST["theirs"]]


def test_rounds_keep_the_order_of_the_plan_but_for_replicates() -> None:
    """A longer input that is thought to be quicker must not be first to run out of memory."""
    short, long = a_round(32), a_round(64)
    assert ordered(*short, *long, seconds=(5, 5, 5, 1, 1, 1)) == [*short, *long]
    again = a_round(16, 1)
    assert ordered(*again, *short, *long) == [*short, *long, *again]


def test_errors_keep_the_order_of_the_plan_but_for_seeds() -> None:
    plan = (error(32), error(32, 1), error(64), error(64, 1))
    turn = ordered(*plan, seconds=(5, 5, 1, 1))
    assert turn == [plan[0], plan[2], plan[1], plan[3]]


def test_the_rest_of_a_round_that_was_begun_comes_before_any_other() -> None:
    rest = a_round(64, 1)[1:]
    assert ordered(*a_round(32), FIRST["ours"], *rest, begun=rest)[:2] == rest


def test_what_has_a_record_comes_last_in_the_order_given() -> None:
    """Or a rerun of all would do the same few again, stretch after stretch."""
    done = (FIRST["ours"], BASELINES, FIRST["sdpa"])
    turn = ordered(*done, SECOND["ours"], seconds=(9, 1, 1, 99), recorded=done, begun=done)
    assert turn == [SECOND["ours"], *done]


def test_a_round_is_measured_whole_where_one_of_it_is_missing() -> None:
    floor, exact, ours = a_round(32)
    turn = ordered(floor, exact, SECOND["ours"], ours, recorded=[floor, exact])
    assert turn == [floor, exact, ours, SECOND["ours"]]
