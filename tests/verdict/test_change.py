"""Verdicts on two figures: with noise as simulated machines have it, and without."""

import math
from statistics import fmean

import numpy as np
import pytest

from lra.verdict.change import compare_accuracies, compare_counts, compare_losses, compare_times

from .simulated import NOISY, SHARED, sweeps


def by_number(*values):
    return dict(enumerate(values))


def steady(value, step=1e-6):
    """Nine figures that hardly differ."""
    return by_number(*[value + step * n for n in range(9)])


ONE, SLOWER = (1.0, 1.01, 0.99, 1.0), (1.2, 1.22, 1.18, 1.21)


@pytest.mark.parametrize(
    ("judge", "before", "after", "verdict"),
    [
        (compare_times, ONE, SLOWER, "worse"),
        (compare_times, SLOWER, ONE, "better"),
        # Surely slower, and by too little to matter.
        (compare_times, ONE, (1.02, 1.03, 1.01, 1.02), "same"),
        (compare_times, (1.0, 1.5, 0.7), (1.3, 1.1, 1.2), "ambiguous"),
        # An error of nothing is the same or gone.
        (compare_times, (0.0, 0.0), (0.0, 0.0), "same"),
        (compare_times, (0.0, 0.0), (0.5, 0.5), "worse"),
        (compare_times, (0.5, 0.5), (0.0, 0.0), "better"),
        # Counts have no noise.
        (compare_counts, (100,), (100,), "same"),
        (compare_counts, (1000,), (1009,), "same"),
        (compare_counts, (100,), (102,), "worse"),
        (compare_counts, (102,), (100,), "better"),
        (compare_counts, (0,), (0,), "same"),
        (compare_accuracies, (0.70, 0.75, 0.65), (0.60, 0.64, 0.56), "worse"),
        (compare_accuracies, (0.70, 0.75, 0.65), (0.80, 0.84, 0.76), "better"),
        (compare_accuracies, (0.70, 0.75, 0.65), (0.702, 0.751, 0.649), "same"),
        (compare_accuracies, (0.70, 0.75, 0.65), (0.6, 0.9, 0.7), "ambiguous"),
        # Within five points, not within two.
        (compare_accuracies, (0.5, 0.5, 0.5), (0.49, 0.5, 0.52), "ambiguous"),
        # The same to the last digit is the same with one seed too.
        (compare_accuracies, (0.5,), (0.5,), "same"),
        (compare_accuracies, (0.5,), (0.51,), "ambiguous"),
        # Less is better.
        (compare_losses, (2.00, 2.02, 1.98), (2.10, 2.12, 2.08), "worse"),
        (compare_losses, (2.10, 2.12, 2.08), (2.00, 2.02, 1.98), "better"),
        (compare_losses, (2.00, 2.02, 1.98), (1.9, 2.3, 2.0), "ambiguous"),
        (compare_losses, (2.0,), (2.1,), "ambiguous"),
    ],
)
def test_verdicts(judge, before, after, verdict):
    assert judge(by_number(*before), by_number(*after)).verdict == verdict


@pytest.mark.parametrize(
    ("judge", "before", "after", "verdict"),
    [
        (compare_times, 1.0, 1.025, "same"),
        (compare_times, 1.0, 1.035, "worse"),
        (compare_times, 1.0, 0.96, "better"),
        (compare_accuracies, 0.5, 0.504, "same"),
        (compare_accuracies, 0.5, 0.51, "better"),
        (compare_losses, 2.0, 2.0 * 1.008, "same"),
        (compare_losses, 2.0, 2.0 * 1.012, "worse"),
        (compare_losses, 2.0, 2.0 * 0.985, "better"),
    ],
)
def test_the_margins_are_what_they_are_said_to_be(judge, before, after, verdict):
    step = 1e-5 if judge is compare_accuracies else 1e-6
    assert judge(steady(before, 0.0), steady(after, step)).verdict == verdict


def test_ratios_differences_and_bounds():
    slower = compare_times(by_number(*ONE), by_number(*SLOWER))
    assert slower.pairs == 4 and slower.low > 1.03
    assert slower.ratio == pytest.approx(1.2, abs=0.01)
    one = compare_times({0: 1.0}, {0: 2.0})
    assert (one.verdict, one.ratio, one.low) == ("ambiguous", 2.0, None)
    # Logarithms 0.10 and 0.14: mean 0.12, standard error 0.02; Student's t of one is 6.314 at 95 %.
    found = compare_times(by_number(1.0, 1.0), by_number(math.exp(0.10), math.exp(0.14)))
    assert math.log(found.low) == pytest.approx(0.12 - 6.314 * 0.02, abs=1e-4)
    assert math.log(found.high) == pytest.approx(0.12 + 6.314 * 0.02, abs=1e-4)
    lower = compare_accuracies(by_number(0.70, 0.75, 0.65), by_number(0.60, 0.64, 0.56))
    assert lower.difference == pytest.approx(-0.1) and lower.high < 0
    more = compare_losses(by_number(2.00, 2.02, 1.98), by_number(2.10, 2.12, 2.08))
    assert more.ratio == pytest.approx(1.05, abs=1e-3) and more.low is not None and more.pairs == 3


def test_only_shared_pairs_count_and_none_is_none():
    found = compare_times({0: 1.0, 1: 1.0, 5: 9.0}, {0: 2.0, 1: 2.0, 7: 1.0})
    assert (found.ratio, found.pairs, found.verdict) == (2.0, 2, "worse")
    for judge in (compare_times, compare_accuracies, compare_losses):
        assert judge({0: 0.5}, {1: 0.5}) is None
    assert compare_counts({}, {0: 1}) is None


def test_of_counts_the_largest_replicate_counts_and_zero_has_no_ratio():
    found = compare_counts(by_number(100, 100, 100), by_number(100, 150, 100))
    assert (found.verdict, found.ratio) == ("worse", 1.5)
    some = compare_counts(by_number(0), by_number(5))
    assert (some.verdict, some.ratio) == ("worse", None)


def test_seeds_that_agree_by_chance_are_no_certainty():
    found = compare_accuracies(by_number(0.7, 0.7), by_number(0.694, 0.694))
    assert found.verdict == "same" and found.low != found.high
    found = compare_losses(by_number(2.0, 2.0), by_number(2.021, 2.021))
    assert found.verdict != "worse" and found.low != found.high


def judged(machine, slower, seed):
    """Verdicts on 60 runs of two builds, eight pairs each."""
    rng = np.random.default_rng(seed)
    pairs = (both for _ in range(60) for both in sweeps(rng, machine, 8, slower))
    ratios = ([{r: p.ratio for r, p in side.items()} for side in both] for both in pairs)
    return [compare_times(*sides).verdict for sides in ratios]


@pytest.mark.parametrize(("machine", "most"), [(NOISY, 0.01), (SHARED, 0.04)])
def test_equal_builds_are_hardly_ever_called_different(machine, most):
    found = judged(machine, 1.0, seed=1)
    assert fmean(verdict == "worse" for verdict in found) < most
    assert fmean(verdict == "better" for verdict in found) < most


def test_a_slowdown_is_found_on_a_machine_of_ones_own():
    found = judged(NOISY, 1.2, seed=2)
    assert fmean(verdict == "worse" for verdict in found) > 0.95
    assert "better" not in found
