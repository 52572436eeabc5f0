"""Verdicts on two figures: with noise as simulated machines have it, and without."""

from __future__ import annotations

import math
from statistics import fmean

import numpy as np
import pytest

from lra.verdict.change import compare_accuracies, compare_bits, compare_counts, compare_times

from .simulated import NOISY, SHARED, Machine, sweeps


def by_number(*values: float) -> dict[int, float]:
    return dict(enumerate(values))


def test_a_ratio_beyond_the_margin_is_a_change_and_one_near_it_is_not() -> None:
    before = by_number(1.0, 1.01, 0.99, 1.0)
    worse = compare_times(before, by_number(1.2, 1.22, 1.18, 1.21))
    assert worse is not None and worse.verdict == "worse" and worse.pairs == 4
    assert (
        worse.low is not None and worse.low > 1.03 and worse.ratio == pytest.approx(1.2, abs=0.01)
    )
    better = compare_times(by_number(1.2, 1.22, 1.18, 1.21), before)
    assert better is not None and better.verdict == "better"
    near = compare_times(before, by_number(1.02, 1.03, 1.01, 1.02))
    assert near is not None and near.verdict == "same", "surely slower, and by too little to matter"


def test_noise_is_ambiguous_and_so_is_one_pair() -> None:
    noisy = compare_times(by_number(1.0, 1.5, 0.7), by_number(1.3, 1.1, 1.2))
    assert noisy is not None and noisy.verdict == "ambiguous"
    one = compare_times(by_number(1.0), by_number(2.0))
    assert one is not None and (one.verdict, one.ratio, one.low) == ("ambiguous", 2.0, None)


def test_only_shared_pairs_count_and_none_is_none() -> None:
    found = compare_times({0: 1.0, 1: 1.0, 5: 9.0}, {0: 2.0, 1: 2.0, 7: 1.0})
    assert found is not None and (found.ratio, found.pairs, found.verdict) == (2.0, 2, "worse")
    assert compare_times({0: 1.0}, {1: 1.0}) is None


def test_an_error_of_nothing_is_the_same_or_gone() -> None:
    exact, off = by_number(0.0, 0.0), by_number(0.5, 0.5)
    for before, after, verdict in (
        (exact, exact, "same"),
        (exact, off, "worse"),
        (off, exact, "better"),
    ):
        found = compare_times(before, after)
        assert found is not None and found.verdict == verdict


def test_the_bounds_are_one_sided_and_the_margins_are_what_they_are_said_to_be() -> None:
    # Logarithms 0.10 and 0.14: mean 0.12, standard error 0.02; Student's t of one is 6.314 at 95 %.
    found = compare_times(by_number(1.0, 1.0), by_number(math.exp(0.10), math.exp(0.14)))
    assert found is not None and found.low is not None and found.high is not None
    assert math.log(found.low) == pytest.approx(0.12 - 6.314 * 0.02, abs=1e-4)
    assert math.log(found.high) == pytest.approx(0.12 + 6.314 * 0.02, abs=1e-4)
    one = by_number(*[1.0] * 9)
    for ratio, verdict in ((1.025, "same"), (1.035, "worse"), (0.96, "better")):
        near = compare_times(one, by_number(*[ratio * (1 + 1e-6 * n) for n in range(9)]))
        assert near is not None and near.verdict == verdict
    half = [by_number(*[0.5 + by + 1e-5 * n for n in range(9)]) for by in (0.0, 0.004, 0.01)]
    for after, verdict in ((half[1], "same"), (half[2], "better")):
        gained = compare_accuracies(half[0], after)
        assert gained is not None and gained.verdict == verdict
    wide = compare_accuracies(by_number(0.5, 0.5, 0.5), by_number(0.49, 0.5, 0.52))
    assert wide is not None and wide.verdict == "ambiguous", "within five points, not within two"


def test_seeds_that_agree_by_chance_are_no_certainty() -> None:
    found = compare_accuracies(by_number(0.7, 0.7), by_number(0.694, 0.694))
    assert found is not None and found.verdict == "same" and found.low != found.high


def judged(machine: Machine, slower: float, number: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(60):
        for first, second in sweeps(rng, machine, number, slower):
            one = compare_times(
                {r: p.ratio for r, p in first.items()}, {r: p.ratio for r, p in second.items()}
            )
            found.append(one.verdict if one else "")
    return found


def test_equal_builds_are_hardly_ever_called_different() -> None:
    for machine, most in ((NOISY, 0.01), (SHARED, 0.04)):
        found = judged(machine, 1.0, 8, seed=1)
        assert fmean(verdict == "worse" for verdict in found) < most
        assert fmean(verdict == "better" for verdict in found) < most


def test_a_slowdown_is_found_on_a_machine_of_ones_own() -> None:
    found = judged(NOISY, 1.2, 8, seed=2)
    assert fmean(verdict == "worse" for verdict in found) > 0.95
    assert "better" not in found


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [(100, 100, "same"), (1000, 1009, "same"), (100, 102, "worse"), (102, 100, "better")],
)
def test_what_is_counted_has_no_noise(before: float, after: float, verdict: str) -> None:
    found = compare_counts(by_number(before), by_number(after))
    assert found is not None and found.verdict == verdict


def test_of_counts_the_largest_replicate_counts_and_zero_has_no_ratio() -> None:
    found = compare_counts(by_number(100, 100, 100), by_number(100, 150, 100))
    assert found is not None and (found.verdict, found.ratio) == ("worse", 1.5)
    none = compare_counts(by_number(0), by_number(0))
    assert none is not None and none.verdict == "same"
    some = compare_counts(by_number(0), by_number(5))
    assert some is not None and (some.verdict, some.ratio) == ("worse", None)
    assert compare_counts({}, by_number(1)) is None


def test_accuracies_are_paired_by_seed_and_more_is_better() -> None:
    before = by_number(0.70, 0.75, 0.65)
    lower = compare_accuracies(before, by_number(0.60, 0.64, 0.56))
    assert lower is not None and lower.verdict == "worse"
    assert lower.difference == pytest.approx(-0.1) and lower.high is not None and lower.high < 0
    higher = compare_accuracies(before, by_number(0.80, 0.84, 0.76))
    assert higher is not None and higher.verdict == "better"
    close = compare_accuracies(before, by_number(0.702, 0.751, 0.649))
    assert close is not None and close.verdict == "same"
    noisy = compare_accuracies(before, by_number(0.6, 0.9, 0.7))
    assert noisy is not None and noisy.verdict == "ambiguous"
    assert compare_accuracies({0: 0.5}, {1: 0.5}) is None


def test_bits_are_judged_by_their_ratio_over_seeds_and_less_is_better() -> None:
    before = by_number(2.00, 2.02, 1.98)
    worse = compare_bits(before, by_number(2.10, 2.12, 2.08))
    assert worse is not None and (worse.verdict, worse.pairs) == ("worse", 3)
    assert worse.ratio == pytest.approx(1.05, abs=1e-3) and worse.low is not None
    better = compare_bits(by_number(2.10, 2.12, 2.08), before)
    assert better is not None and better.verdict == "better"
    one = by_number(*[2.0] * 9)
    for ratio, verdict in ((1.008, "same"), (1.012, "worse"), (0.985, "better")):
        near = compare_bits(one, by_number(*[2.0 * ratio * (1 + 1e-6 * n) for n in range(9)]))
        assert near is not None and near.verdict == verdict
    noisy = compare_bits(before, by_number(1.9, 2.3, 2.0))
    assert noisy is not None and noisy.verdict == "ambiguous"
    single = compare_bits(by_number(2.0), by_number(2.1))
    assert single is not None and single.verdict == "ambiguous"
    assert compare_bits({0: 2.0}, {1: 2.0}) is None


def test_bits_that_agree_by_chance_are_no_certainty() -> None:
    found = compare_bits(by_number(2.0, 2.0), by_number(2.021, 2.021))
    assert found is not None and found.verdict != "worse" and found.low != found.high


def test_the_same_to_the_last_digit_is_the_same_with_one_seed_too() -> None:
    same = compare_accuracies(by_number(0.5), by_number(0.5))
    other = compare_accuracies(by_number(0.5), by_number(0.51))
    assert same is not None and same.verdict == "same"
    assert other is not None and other.verdict == "ambiguous"
