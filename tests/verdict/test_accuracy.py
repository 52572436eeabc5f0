"""Accuracies compared over seeds and by rank over tasks, held against scipy and simulation."""

import math
import random
from statistics import fmean

import pytest
from scipy import stats

from lra.verdict.accuracy import (
    above_chance,
    average_ranks,
    holm_adjust,
    mean_interval,
    paired_difference,
)


def seeds(*values):
    return dict(enumerate(values))


def test_of_one_task_it_is_the_paired_t_test():
    own, other = [0.61, 0.66, 0.58, 0.7], [0.6, 0.6, 0.59, 0.63]
    found = paired_difference({"a": seeds(*own)}, {"a": seeds(*other)})
    known = stats.ttest_rel(own, other)
    assert found.p == pytest.approx(known.pvalue)
    mean_interval = known.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((mean_interval.low, mean_interval.high))
    assert (found.tasks, found.pairs) == (1, 4)


def test_each_task_counts_alike_and_only_shared_seeds_do():
    own = {"a": seeds(0.5, 0.6), "b": {0: 0.9, 1: 0.9, 2: 0.8, 7: 0.1}, "c": seeds(0.2)}
    other = {"a": seeds(0.4, 0.5, 0.9), "b": {0: 0.8, 1: 0.8, 2: 0.7, 8: 0.9}, "d": seeds(0.3)}
    found = paired_difference(own, other)
    assert found.value == pytest.approx(0.1) and (found.tasks, found.pairs) == (2, 5)
    # 0.1 everywhere, but for rounding.
    assert found.p < 1e-6


def test_a_single_pair_of_seeds_has_a_difference_and_no_test():
    found = paired_difference(
        {"a": seeds(0.5, 0.6), "b": seeds(0.5)}, {"a": seeds(0.4, 0.4), "b": seeds(0.4)}
    )
    assert found.value == pytest.approx(0.125)
    assert found.low is found.high is found.p is None
    assert paired_difference({"a": seeds(0.5)}, {"b": seeds(0.5)}) is None
    assert paired_difference({"a": {0: 0.5}}, {"a": {1: 0.5}}) is None


@pytest.mark.parametrize(("gain", "p"), [(0.0, 1.0), (0.25, 0.0)])
def test_without_any_spread_there_is_no_doubt(gain, p):
    found = paired_difference({"a": seeds(0.5 + gain, 0.25 + gain)}, {"a": seeds(0.5, 0.25)})
    assert (found.low, found.p) == (gain, p)


def simulated(draw, gain, number):
    """Five tasks of other difficulty and noise each, as `mini` has."""
    noise = {"a": 0.003, "b": 0.015, "c": 0.01, "d": 0.04, "e": 0.05}
    return {
        task: {seed: 0.6 + gain + draw.gauss(0, sd) for seed in range(number)}
        for task, sd in noise.items()
    }


@pytest.mark.parametrize("number", [3, 6])
def test_equal_mechanisms_are_told_apart_no_more_often_than_is_said(number):
    draw = random.Random(1)
    found = []
    for _ in range(2000):
        one = paired_difference(simulated(draw, 0.0, number), simulated(draw, 0.0, number))
        # The interval and the test say the same.
        assert (one.p < 0.05) == (one.low > 0 or (one.high or 0.0) < 0)
        found.append(one.p < 0.05)
    assert 0.01 < fmean(found) < 0.065


def test_a_real_difference_is_found():
    draw = random.Random(2)
    found = [
        paired_difference(simulated(draw, 0.06, 3), simulated(draw, 0.0, 3)) for _ in range(300)
    ]
    assert fmean(one is not None and (one.p or 0.0) < 0.05 for one in found) > 0.5


def test_the_interval_over_seeds_is_students():
    found = [0.70, 0.74, 0.69, 0.71]
    expected = stats.t.interval(0.95, 3, loc=fmean(found), scale=stats.sem(found))
    assert mean_interval(found, grain=0.001) == pytest.approx(expected)
    assert mean_interval([0.7]) is None
    # Seeds that agree know no less than a row does; nothing is more than right everywhere.
    low, high = mean_interval([0.5, 0.5], grain=0.01) or (0.0, 0.0)
    assert high - low == pytest.approx(2 * stats.t.ppf(0.975, 1) * 0.01 / math.sqrt(2))
    assert mean_interval([0.99, 1.0]) == pytest.approx((0.995 - stats.t.ppf(0.975, 1) * 0.005, 1.0))


def test_holm_is_that_of_the_book():
    # Sorted .005 .01 .03 .04 of four: 4 x .005, 3 x .01, 2 x .03, and no less than the one before.
    assert holm_adjust([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm_adjust([0.9, 0.8]) == [1.0, 1.0] and holm_adjust([]) == []


def test_ranks_are_friedmans_with_nemenyis_distance():
    values = {
        "best": [0.9, 0.8, 0.7, 0.9, 0.8, 0.6],
        "middle": [0.8, 0.7, 0.6, 0.8, 0.7, 0.6],
        "last": [0.1, 0.2, 0.3, 0.1, 0.2, 0.3],
    }
    found = average_ranks(
        {name: {str(t): {0: v} for t, v in enumerate(own)} for name, own in values.items()}
    )
    known = stats.friedmanchisquare(*values.values())
    assert found.p == pytest.approx(known.pvalue)
    assert list(found.average) == ["best", "middle", "last"]
    # One tie of the first two: 1.5 each there.
    assert found.average["best"] == pytest.approx(6.5 / 6)
    # q of .05 for three is 2.343 (Demsar, table 5).
    assert found.critical == pytest.approx(2.343 * (3 * 4 / (6 * 6)) ** 0.5, abs=1e-3)
    assert found.differ("best", "last") and not found.differ("best", "middle")


def test_ranks_need_three_mechanisms_on_two_tasks_that_all_have():
    two = {"a": {0: 0.5}, "b": {0: 0.6}}
    assert average_ranks({"x": two, "y": two}) is None
    assert average_ranks({"x": two, "y": two, "z": {"a": {0: 0.5}}}) is None
    alike = average_ranks({"x": two, "y": two, "z": two})
    assert alike.p == 1.0 and not alike.differ("x", "y")


def test_luck_is_no_escape_from_chance():
    # On 2000 rows at one half, 99 % of guesses have at most 52.6 % right.
    assert not above_chance(0.526, 0.5, 2000) and above_chance(0.5265, 0.5, 2000)
    assert not above_chance(0.17, 0.178, 2000)
