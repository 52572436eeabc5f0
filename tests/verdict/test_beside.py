"""Ours beside theirs, above the floor: every branch, by hand."""

import math

import pytest

from lra.verdict.peer_ratio import (
    is_far_above_floor,
    memory_verdict,
    ratio_above_floor,
    time_verdict,
)


def rounds(*values):
    return dict(enumerate(values))


def thrice(value):
    return rounds(value, value, value)


FLOOR, EXACT = thrice(1.0), thrice(10.0)


def test_the_ratio_above_the_floor_is_of_differences_of_one_round():
    # (3 - 1) / (5 - 1) and (6 - 2) / (10 - 2): a half in both, though the second was twice as slow.
    found = ratio_above_floor(rounds(3.0, 6.0), rounds(5.0, 10.0), rounds(1.0, 2.0))
    assert (found.value, found.ratio.low, found.ratio.high) == pytest.approx((0.5, 0.5, 0.5))
    assert (found.rounds, found.ours_at_floor, found.theirs_at_floor) == (2, 0, 0)


def test_its_interval_by_hand():
    # Differences 1/e, 1 and e over 1: logarithms -1, 0, 1; t of 97.5 % with 2 degrees is 4.3027.
    found = ratio_above_floor(rounds(1 + math.exp(-1), 2.0, 1 + math.e), thrice(2.0), FLOOR)
    assert found.value == pytest.approx(1.0)
    assert math.log(found.ratio.high) == pytest.approx(4.3027 / math.sqrt(3), rel=1e-4)


@pytest.mark.parametrize(
    ("ours", "theirs", "value", "ours_at_floor", "theirs_at_floor"),
    [
        # Ours less the floor: 0, -0.5, 0.2, of which the median is 0.
        (rounds(1.0, 0.5, 1.2), thrice(3.0), 0.0, 2, 0),
        # Medians 1 and 2, one round of theirs at the floor.
        (thrice(2.0), rounds(1.0, 3.0, 5.0), 0.5, 0, 1),
        (thrice(2.0), rounds(1.0, 1.0, 3.0), math.inf, 0, 2),
        (FLOOR, FLOOR, 0.0, 3, 3),
    ],
)
def test_at_the_floor_there_is_no_logarithm(ours, theirs, value, ours_at_floor, theirs_at_floor):
    found = ratio_above_floor(ours, theirs, FLOOR)
    assert found.value == value and found.ratio is None
    assert (found.ours_at_floor, found.theirs_at_floor) == (ours_at_floor, theirs_at_floor)


def test_without_a_shared_round_there_is_no_ratio():
    assert ratio_above_floor(rounds(1.0), {1: 1.0}, FLOOR) is None
    assert ratio_above_floor(FLOOR, FLOOR, {}) is None


def test_far_is_a_tenth_of_exact_attention_above_the_floor():
    assert is_far_above_floor(rounds(2.0, 2.0), FLOOR, EXACT) is True  # (2 - 1) / 10
    assert is_far_above_floor(rounds(1.9, 1.9), FLOOR, EXACT) is False
    # The median round tells: 0.05, 0.05 and 4.
    assert is_far_above_floor(rounds(1.5, 1.5, 41.0), FLOOR, EXACT) is False
    assert is_far_above_floor(rounds(2.0), FLOOR, {}) is None
    assert is_far_above_floor(rounds(2.0), FLOOR, rounds(0.0)) is None


FAR, NEAR = thrice(5.0), thrice(1.5)
"""Theirs 0.4 and 0.05 of exact attention above the floor."""
FOUR_FIFTHS, THEIRS = (
    "at most 0.8 of theirs above the floor",
    "at most theirs, which is near the ",
)


@pytest.mark.parametrize(
    ("theirs", "bar", "ours", "word"),
    [
        (FAR, FOUR_FIFTHS, (3.4, 3.4, 3.4), "meets"),  # 2.4 / 4 = 0.6
        (FAR, FOUR_FIFTHS, (3.8, 3.8, 3.8), "undecided"),  # 0.7, within 0.15 of 0.8
        (FAR, FOUR_FIFTHS, (4.6, 4.6, 4.6), "undecided"),  # 0.9
        (FAR, FOUR_FIFTHS, (4.9, 4.9, 4.9), "misses"),  # 0.975
        (FAR, FOUR_FIFTHS, (1.0, 0.9, 1.1), "meets"),  # at the floor
        (FAR, FOUR_FIFTHS, (1.4, 3.4, 5.4), "undecided"),  # 0.1, 0.6, 1.1: the interval holds 0.8
        (FAR, FOUR_FIFTHS, (1.4, 7.0, 30.0), "undecided"),  # 0.1, 1.5, 7.25: it holds 0.8 too
        (NEAR, THEIRS, (1.2, 1.2, 1.2), "meets"),  # 0.8 of all
        (NEAR, THEIRS, (1.5, 1.5, 1.5), "undecided"),
        (NEAR, THEIRS, (1.65, 1.65, 1.65), "undecided"),  # 1.1
        (NEAR, THEIRS, (1.8, 1.8, 1.8), "misses"),  # 1.2
        (NEAR, THEIRS, (0.9, 1.8, 4.5), "undecided"),  # 0.6, 1.2, 3: the interval holds 1
        (NEAR, THEIRS, (0.3, 0.9, 3.0), "undecided"),  # 0.2, 0.6, 2: it holds 1 too
    ],
)
def test_far_from_the_floor_the_bar_is_four_fifths_and_near_it_theirs(theirs, bar, ours, word):
    found = time_verdict(rounds(*ours), theirs, FLOOR, EXACT)
    assert found.word == word and found.bar.startswith(bar)


@pytest.mark.parametrize(
    ("ours", "theirs", "exact", "word"),
    [
        # The median is 0.6 of theirs, but the rounds say next to nothing.
        ((0.99, 1.3, 2.2), (1.5, 1.5, 1.5), 4.0, "undecided"),
        ((1.0, 1.02, 0.99, 1.01), (2.0, 2.1, 1.9, 2.0), 9.0, "meets"),
        # Theirs at the floor in one round, ours far above it in all.
        ((9.0, 9.1, 8.9, 9.0), (3.0, 1.0, 3.0, 3.0), 9.0, "misses"),
    ],
)
def test_with_a_cost_at_the_floor_the_interval_of_differences_decides(ours, theirs, exact, word):
    floor, bound = (dict.fromkeys(range(len(ours)), value) for value in (1.0, exact))
    assert time_verdict(rounds(*ours), rounds(*theirs), floor, bound).word == word


@pytest.mark.parametrize(("ours", "word"), [(4.9, "undecided"), (4.2, "meets")])  # 0.975, 0.8
def test_the_bar_is_higher_where_theirs_has_less_to_compute(ours, word):
    found = time_verdict(thrice(ours), FAR, FLOOR, EXACT, bar=1.0)
    assert (found.word, found.bar) == (word, "at most 1 of theirs above the floor")


@pytest.mark.parametrize(
    ("ours", "theirs", "floor", "exact"),
    [
        (rounds(2.0), rounds(9.0), FLOOR, EXACT),
        (rounds(0.7), rounds(1.5), FLOOR, EXACT),
        (rounds(2.0, 2.0), rounds(9.0, 9.0), {}, EXACT),
        (rounds(2.0, 2.0), rounds(9.0, 9.0), FLOOR, {}),
    ],
)
def test_one_round_or_a_missing_measurement_decides_nothing(ours, theirs, floor, exact):
    found = time_verdict(ours, theirs, floor, exact)
    assert found.word == "undecided"
    assert ("not measured" in found.bar) == (not floor or not exact)
    assert time_verdict({}, theirs, floor, exact) is None


@pytest.mark.parametrize(
    ("ours", "theirs", "floor", "word"),
    [
        (50.0, 100.0, 10.0, "meets"),
        (90.0, 100.0, 10.0, "undecided"),  # 0.9 of theirs
        (110.0, 100.0, 10.0, "undecided"),
        (120.0, 100.0, 10.0, "misses"),
        (109.0, 80.0, 100.0, "meets"),  # within 10 % of the floor
        (120.0, 80.0, 100.0, "undecided"),  # 1.2, within 0.15 of 1.1
        (126.0, 80.0, 100.0, "misses"),
        # Without a floor it may still be less than theirs.
        (50.0, 100.0, None, "meets"),
        (150.0, 100.0, None, "undecided"),
    ],
)
def test_memory_is_at_most_theirs_or_the_floors(ours, theirs, floor, word):
    at_floor = {} if floor is None else rounds(floor)
    assert memory_verdict(rounds(ours), rounds(theirs), at_floor).word == word
    assert memory_verdict({}, rounds(theirs), at_floor) is None
