"""The gate on times, by hand and on simulated machines: equal builds pass, slow ones fail."""

import math
from functools import cache
from statistics import fmean

import numpy as np
import pytest

from lra.verdict.change import TIME_MARGIN, Change, compare_times
from lra.verdict.slowdown import (
    MOST,
    PAIRS,
    TARGET,
    calibrated_margin,
    is_faster,
    is_slower,
    log_deviation,
    margin,
    pairs_needed,
    smallest_slowdown,
)

from .simulated import CELLS, NOISY, SHARED, sweeps

RUNS = 60
"""Runs of 12 cells: 720 comparisons. tests/verdict/gate_rates.py makes ten thousand."""


def change(*logarithms):
    """Times of as many pairs of processes."""
    one = dict.fromkeys(range(len(logarithms)), 1.0)
    return compare_times(one, {n: math.exp(log) for n, log in enumerate(logarithms)})


def alternating(spread, pairs=PAIRS, middle=0.0):
    """Pairs with exactly this mean and standard deviation, the last of odd ones in the middle."""
    off = spread * math.sqrt((pairs - 1) / (pairs - pairs % 2))
    return change(
        *(middle + off * (-1) ** n for n in range(pairs - pairs % 2)), *[middle] * (pairs % 2)
    )


def test_the_margin_grows_with_noise_and_is_never_below_three_percent():
    assert margin(0.0) == margin(0.01) == margin(0.1) == TIME_MARGIN
    assert TIME_MARGIN < margin(0.2) < margin(0.5) < margin(1.0)
    assert margin(0.3, pairs=5) > margin(0.3, pairs=12) > margin(0.3, pairs=40)


@pytest.mark.parametrize(("spread", "pairs"), [(0.1, 5), (0.3, 5), (0.2, 12)])
def test_one_in_a_hundred_of_equal_cells_passes_the_margin(spread, pairs):
    rng = np.random.default_rng(pairs)
    logs = rng.normal(0.0, spread, (100_000, pairs))
    student = {5: 2.132, 12: 1.796}[pairs]
    low = logs.mean(1) - student * logs.std(1, ddof=1) / math.sqrt(pairs)
    assert np.mean(low > math.log1p(margin(spread, pairs))) == pytest.approx(0.01, abs=0.0015)


@pytest.mark.parametrize("spread", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("pairs", [2, 5, 12])
def test_the_spread_is_read_back_from_the_bounds(spread, pairs):
    assert log_deviation(alternating(spread, pairs, middle=0.3)) == pytest.approx(spread)


def test_one_pair_has_no_spread_and_equal_ones_have_none_to_speak_of():
    assert log_deviation(change(0.1)) is None and calibrated_margin(change(0.1)) == TIME_MARGIN
    assert (
        log_deviation(change(0.0, 0.0)) == 0.0
        and calibrated_margin(change(0.0, 0.0)) == TIME_MARGIN
    )
    assert log_deviation(Change("worse", pairs=3)) is None


def test_a_calibrated_margin_allows_for_noise_and_for_what_equal_builds_are_surely_off_by():
    for pairs in (5, 12):
        assert calibrated_margin(alternating(0.2, pairs)) == pytest.approx(margin(0.2, pairs))
    for middle in (0.3, -0.3):
        off = alternating(0.01, middle=middle)
        surely = max(off.low, 1 / off.high) - 1
        assert calibrated_margin(off) == pytest.approx(surely) and surely > 0.3


def test_slower_and_faster_are_beyond_the_margin_for_sure():
    slow = Change("worse", ratio=1.2, low=1.11, high=1.3, pairs=12)
    assert is_slower(slow, 0.10) and not is_slower(slow, 0.12)
    fast = Change("better", ratio=0.8, low=0.7, high=0.89, pairs=12)
    assert is_faster(fast, 0.12) and not is_faster(fast, 0.13)
    unsure = Change("ambiguous", ratio=2.0, pairs=1)
    assert not is_slower(unsure, 0.0) and not is_faster(unsure, 0.0)


@cache
def compared(machine, slowdown, seed):
    """Comparisons of 12 pairs of processes, each time over its control."""
    rng = np.random.default_rng(seed)
    runs = [sweeps(rng, machine, PAIRS, slower=slowdown) for _ in range(RUNS)]
    ratios = (
        [{n: p.ratio for n, p in own.items()} for own in both] for run in runs for both in run
    )
    return [compare_times(*sides) for sides in ratios]


@cache
def allowed(machine):
    """As a baseline has it for what was not calibrated itself: the largest of one day's cells."""
    return max(calibrated_margin(one) for one in compared(machine, 1.0, 0)[:CELLS])


def failing(machine, slowdown, seed):
    """Whether a cell is slower, and slower again on fresh pairs."""
    twice = zip(*(compared(machine, slowdown, seed + more) for more in (0, 1)), strict=True)
    return [all(is_slower(one, allowed(machine)) for one in both) for both in twice]


@pytest.mark.parametrize("machine", [NOISY, SHARED])
def test_equal_builds_do_not_fail_twice(machine):
    found = failing(machine, 1.0, seed=1)
    assert len(found) >= 500 and not any(found)
    once = [is_slower(one, allowed(machine)) for one in compared(machine, 1.0, 1)]
    assert sum(once) <= 0.02 * len(once)


def test_a_build_that_takes_a_fifth_longer_fails_twice_on_a_machine_of_ones_own():
    found = failing(NOISY, 1.2, seed=3)
    assert sum(found) >= 0.95 * len(found)


@pytest.mark.parametrize("machine", [NOISY, SHARED])
def test_the_smallest_slowdown_is_found_twice_on_95_percent_and_a_smaller_one_is_not(machine):
    spreads = [log_deviation(one) or 0.0 for one in compared(machine, 1.0, 1)]
    told = smallest_slowdown(math.sqrt(fmean(spread**2 for spread in spreads)), allowed(machine))
    # A standard error of 720 is 0.8 %, and drift is no normal sample.
    assert fmean(failing(machine, 1 + told, seed=5)) >= 0.93
    assert fmean(failing(machine, 1 + told / 2, seed=5)) <= 0.5


def test_what_can_be_seen_follows_noise_margin_and_pairs():
    assert smallest_slowdown(0.0, 0.05) == 0.05
    assert (
        smallest_slowdown(0.01, 0.03)
        < smallest_slowdown(0.05, 0.03)
        < smallest_slowdown(0.05, 0.10)
    )
    assert smallest_slowdown(0.05, 0.03, pairs=5) > smallest_slowdown(0.05, 0.03, pairs=12)


def test_pairs_are_as_many_as_find_a_fifth_and_no_more_than_it_takes():
    assert pairs_needed(0.0, 0.03) == pairs_needed(0.03, 0.03) == PAIRS
    assert (
        PAIRS
        < pairs_needed(0.12, 0.03)
        < pairs_needed(0.15, 0.03)
        < pairs_needed(1.0, 0.03)
        == MOST
    )
    pairs = pairs_needed(0.12, 0.05)
    assert smallest_slowdown(0.12, 0.05, pairs) < TARGET < smallest_slowdown(0.2, 0.05, pairs)
    assert pairs_needed(0.12, 0.10) > pairs
