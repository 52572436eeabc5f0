"""Ratios over pairs of processes."""

import math

import numpy as np
import pytest

from lra.verdict.ratio import ratio, ratio_of_logarithms


def test_a_slow_spell_that_both_share_cancels():
    found = ratio({0: 1.0, 1: 5.0, 2: 2.0}, {0: 2.0, 1: 10.0, 2: 4.0})
    assert (found.value, found.low, found.high) == pytest.approx((0.5, 0.5, 0.5))
    assert found.pairs == 3


def test_interval_by_hand():
    # Logarithms -1, 0 and 1: mean 0, standard deviation 1; t of 97.5 % with 2 degrees is 4.3027.
    found = ratio_of_logarithms([-1.0, 0.0, 1.0])
    assert found.value == pytest.approx(1.0)
    assert math.log(found.high or 0.0) == pytest.approx(4.3027 / math.sqrt(3), rel=1e-4)
    assert math.log(found.low or 0.0) == pytest.approx(-4.3027 / math.sqrt(3), rel=1e-4)
    assert found.width == pytest.approx((found.high or 0.0) - (found.low or 0.0))


def test_one_pair_has_no_interval():
    found = ratio({3: 4.0}, {3: 2.0})
    assert (found.value, found.low, found.high, found.width) == (2.0, None, None, None)


def test_only_replicates_that_both_have_and_that_cost_something_count():
    found = ratio({0: 1.0, 1: 3.0, 2: 0.0}, {1: 1.5, 2: 1.0, 4: 1.0})
    assert found.pairs == 1 and found.value == pytest.approx(2.0)
    assert ratio({0: 1.0}, {1: 1.0}) is None
    assert ratio({}, {}) is None


def test_the_interval_holds_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(0)
    found = [ratio_of_logarithms(list(rng.normal(math.log(1.3), 0.1, 5))) for _ in range(4000)]
    held = np.mean([(f.low or 0.0) <= 1.3 <= (f.high or 0.0) for f in found])
    assert 0.94 < held < 0.96
