"""Ours beside theirs, above the floor: every branch, by hand."""

from __future__ import annotations

import math

import pytest

from lra.verdict.peer_ratio import (
    Costs,
    is_far_above_floor,
    memory_verdict,
    ratio_above_floor,
    time_verdict,
)


def rounds(*values: float) -> Costs:
    return dict(enumerate(values))


FLOOR = rounds(1.0, 1.0, 1.0)
EXACT = rounds(10.0, 10.0, 10.0)


def word(ours: Costs, theirs: Costs, floor: Costs = FLOOR, exact: Costs = EXACT) -> str:
    found = time_verdict(ours, theirs, floor, exact)
    assert found is not None
    return found.word


def test_the_ratio_above_the_floor_is_of_differences_of_one_round() -> None:
    # (3 - 1) / (5 - 1) and (6 - 2) / (10 - 2): a half in both, though the second was twice as slow.
    found = ratio_above_floor(rounds(3.0, 6.0), rounds(5.0, 10.0), rounds(1.0, 2.0))
    assert found is not None and found.ratio is not None
    assert (found.value, found.ratio.low, found.ratio.high) == pytest.approx((0.5, 0.5, 0.5))
    assert (found.rounds, found.ours_at_floor, found.theirs_at_floor) == (2, 0, 0)


def test_its_interval_by_hand() -> None:
    # Differences 1/e, 1 and e over 1: logarithms -1, 0, 1; t of 97.5 % with 2 degrees is 4.3027.
    ours = rounds(1 + math.exp(-1), 2.0, 1 + math.e)
    found = ratio_above_floor(ours, rounds(2.0, 2.0, 2.0), FLOOR)
    assert found is not None and found.ratio is not None
    assert found.value == pytest.approx(1.0)
    assert math.log(found.ratio.high or 0.0) == pytest.approx(4.3027 / math.sqrt(3), rel=1e-4)


def test_at_the_floor_there_is_no_logarithm_and_no_crash() -> None:
    # Ours less the floor: 0, -0.5, 0.2, of which the median is 0.
    found = ratio_above_floor(rounds(1.0, 0.5, 1.2), rounds(3.0, 3.0, 3.0), FLOOR)
    assert found is not None and found.ratio is None
    assert (found.value, found.ours_at_floor, found.theirs_at_floor) == (0.0, 2, 0)
    # Medians 1 and 2, one round of theirs at the floor.
    found = ratio_above_floor(rounds(2.0, 2.0, 2.0), rounds(1.0, 3.0, 5.0), FLOOR)
    assert found is not None and found.ratio is None
    assert (found.value, found.ours_at_floor, found.theirs_at_floor) == (0.5, 0, 1)
    found = ratio_above_floor(rounds(2.0, 2.0, 2.0), rounds(1.0, 1.0, 3.0), FLOOR)
    assert found is not None and found.value == math.inf
    found = ratio_above_floor(FLOOR, FLOOR, FLOOR)
    assert found is not None and (found.value, found.ours_at_floor) == (0.0, 3)
    assert ratio_above_floor(rounds(1.0), {1: 1.0}, FLOOR) is None
    assert ratio_above_floor(FLOOR, FLOOR, {}) is None


def test_far_is_a_tenth_of_exact_attention_above_the_floor() -> None:
    assert is_far_above_floor(rounds(2.0, 2.0), FLOOR, EXACT) is True  # (2 - 1) / 10
    assert is_far_above_floor(rounds(1.9, 1.9), FLOOR, EXACT) is False
    # The median round tells: 0.05, 0.05 and 4.
    assert is_far_above_floor(rounds(1.5, 1.5, 41.0), FLOOR, EXACT) is False
    assert is_far_above_floor(rounds(2.0), FLOOR, {}) is None
    assert is_far_above_floor(rounds(2.0), FLOOR, rounds(0.0)) is None


@pytest.mark.parametrize(
    ("ours", "told"),
    [
        ((3.4, 3.4, 3.4), "meets"),  # 2.4 / 4 = 0.6
        ((3.8, 3.8, 3.8), "undecided"),  # 0.7, within 0.15 of 0.8
        ((4.6, 4.6, 4.6), "undecided"),  # 0.9
        ((4.9, 4.9, 4.9), "misses"),  # 0.975
        ((1.0, 0.9, 1.1), "meets"),  # at the floor
        ((1.4, 3.4, 5.4), "undecided"),  # 0.1, 0.6, 1.1: about 0.4, and the interval holds 0.8
        ((1.4, 7.0, 30.0), "undecided"),  # 0.1, 1.5, 7.25: about 1.03, and the interval holds 0.8
    ],
)
def test_above_the_floor_the_bar_is_four_fifths(ours: tuple[float, ...], told: str) -> None:
    theirs = rounds(5.0, 5.0, 5.0)
    assert word(rounds(*ours), theirs) == told
    found = time_verdict(rounds(*ours), theirs, FLOOR, EXACT)
    assert found is not None and found.bar == "at most 0.8 of theirs above the floor"


def test_with_a_cost_at_the_floor_the_interval_of_differences_decides() -> None:
    # The median is 0.6 of theirs, but the rounds say next to nothing.
    assert word(rounds(0.99, 1.3, 2.2), rounds(1.5, 1.5, 1.5), exact=rounds(4.0, 4.0, 4.0)) == (
        "undecided"
    )
    own = rounds(1.0, 1.02, 0.99, 1.01)
    assert word(own, rounds(2.0, 2.1, 1.9, 2.0), rounds(1, 1, 1, 1), rounds(9, 9, 9, 9)) == "meets"
    # Theirs at the floor in one round, ours far above it in all.
    slow, theirs = rounds(9.0, 9.1, 8.9, 9.0), rounds(3.0, 1.0, 3.0, 3.0)
    assert word(slow, theirs, rounds(1, 1, 1, 1), rounds(9, 9, 9, 9)) == "misses"


def test_the_bar_is_higher_where_theirs_has_less_to_compute() -> None:
    theirs, ours = rounds(5.0, 5.0, 5.0), rounds(4.9, 4.9, 4.9)  # 0.975
    found = time_verdict(ours, theirs, FLOOR, EXACT, bar=1.0)
    assert found is not None
    assert (found.word, found.bar) == ("undecided", "at most 1 of theirs above the floor")
    found = time_verdict(rounds(4.2, 4.2, 4.2), theirs, FLOOR, EXACT, bar=1.0)  # 0.8
    assert found is not None and found.word == "meets"


@pytest.mark.parametrize(
    ("ours", "told"),
    [
        ((1.2, 1.2, 1.2), "meets"),  # 0.8 of all
        ((1.5, 1.5, 1.5), "undecided"),
        ((1.65, 1.65, 1.65), "undecided"),  # 1.1
        ((1.8, 1.8, 1.8), "misses"),  # 1.2
        ((0.9, 1.8, 4.5), "undecided"),  # 0.6, 1.2, 3: about 1.3, and the interval holds 1
        ((0.3, 0.9, 3.0), "undecided"),  # 0.2, 0.6, 2: about 0.6, and the interval holds 1
    ],
)
def test_near_the_floor_ours_is_at_most_theirs(ours: tuple[float, ...], told: str) -> None:
    theirs = rounds(1.5, 1.5, 1.5)  # 0.05 of exact attention above the floor
    assert word(rounds(*ours), theirs) == told
    found = time_verdict(rounds(*ours), theirs, FLOOR, EXACT)
    assert found is not None and found.bar == "at most theirs, which is near the floor"


def test_one_round_and_what_is_missing_decide_nothing() -> None:
    assert word(rounds(2.0), rounds(9.0)) == "undecided"
    assert word(rounds(0.7), rounds(1.5)) == "undecided"
    for floor, exact in (({}, EXACT), (FLOOR, {})):
        found = time_verdict(rounds(2.0, 2.0), rounds(9.0, 9.0), floor, exact)
        assert found is not None and found.word == "undecided"
        assert "not measured" in found.bar
    assert time_verdict({}, rounds(1.0), FLOOR, EXACT) is None


@pytest.mark.parametrize(
    ("ours", "theirs", "floor", "told"),
    [
        (50.0, 100.0, 10.0, "meets"),
        (90.0, 100.0, 10.0, "undecided"),  # 0.9 of theirs
        (110.0, 100.0, 10.0, "undecided"),
        (120.0, 100.0, 10.0, "misses"),
        (109.0, 80.0, 100.0, "meets"),  # within 10 % of the floor
        (120.0, 80.0, 100.0, "undecided"),  # 1.2, within 0.15 of 1.1
        (126.0, 80.0, 100.0, "misses"),
    ],
)
def test_memory_is_at_most_theirs_or_the_floors(
    ours: float, theirs: float, floor: float, told: str
) -> None:
    found = memory_verdict(rounds(ours), rounds(theirs), rounds(floor))
    assert found is not None and found.word == told


def test_memory_without_a_floor_may_still_be_less_than_theirs() -> None:
    for ours, told in ((50.0, "meets"), (150.0, "undecided")):
        found = memory_verdict(rounds(ours), rounds(100.0), {})
        assert found is not None and found.word == told
    assert memory_verdict({}, rounds(1.0), FLOOR) is None
