"""Fitted exponents: right in the mean, as sure as they say, and what they leave out."""

import numpy as np
import pytest

from lra.verdict.growth import Growth, growth, slope

LENGTHS = (256, 512, 1024, 2048, 4096, 8192)


def sweep(rng, exponent, replicates=1, noise=0.03):
    return [
        {n: float(1e-6 * n**exponent * np.exp(noise * rng.normal())) for n in LENGTHS}
        for _ in range(replicates)
    ]


@pytest.mark.parametrize("exponent", [0.0, 1.0, 1.5, 2.0])
def test_a_power_law_has_its_exponent(exponent):
    found = growth([{n: 3.0 * n**exponent for n in LENGTHS}])
    assert found.exponent == pytest.approx(exponent)
    assert (found.low, found.high) == pytest.approx((exponent, exponent))
    assert found.end == pytest.approx(exponent)
    assert (found.lengths, found.replicates) == (LENGTHS, 1)


@pytest.mark.parametrize("replicates", [1, 2, 3, 8])
def test_intervals_hold_the_true_exponent_as_often_as_they_say(replicates):
    rng = np.random.default_rng(7)
    found = [growth(sweep(rng, 1.3, replicates)) for _ in range(200)]
    held = sum(one.low <= 1.3 <= one.high for one in found) / len(found)
    # Neither overconfident nor so wide that they say nothing.
    assert 0.88 <= held <= 0.995


def test_the_interval_of_replicates_is_students_over_their_exponents():
    replicates = [{n: n**power for n in LENGTHS} for power in (1.0, 1.1, 1.3)]
    found = growth(replicates)
    assert found.exponent == pytest.approx(np.mean([1.0, 1.1, 1.3]))
    # Two degrees of freedom: 4.303 standard errors.
    margin = 4.3027 * np.std([1.0, 1.1, 1.3], ddof=1) / np.sqrt(3)
    assert found.high - found.exponent == pytest.approx(margin, rel=1e-4)
    assert found.exponent - found.low == pytest.approx(margin, rel=1e-4)


def test_the_interval_of_one_replicate_is_that_of_the_slope():
    from scipy.stats import linregress, t

    (costs,) = sweep(np.random.default_rng(3), 1.7)
    found = growth([costs])
    line = linregress(np.log(list(costs)), np.log(list(costs.values())))
    assert found.exponent == pytest.approx(line.slope)
    assert found.high - found.exponent == pytest.approx(t.ppf(0.975, 4) * line.stderr)


def test_overheads_lower_the_exponent_and_its_end_says_so():
    costs = {n: 1e6 + n**2.0 for n in LENGTHS}
    found = growth([costs])
    assert found.exponent < 1.3
    assert found.end == pytest.approx(slope({n: costs[n] for n in LENGTHS[-3:]}))
    assert found.end > 1.6


def test_the_end_is_told_where_it_is_neither_all_nor_a_single_length():
    for lengths, end in (((256, 512, 1024), None), ((16, 128, 1024), None), ((64, 256, 1024), 1.0)):
        assert growth([{n: float(n) for n in lengths}]).end == (end and pytest.approx(end))


def linear(lengths):
    return {n: float(n) for n in lengths}


@pytest.mark.parametrize(
    "replicates",
    [
        [],
        [{}],
        [{256: 1.0}],
        [{256: 1.0, 512: 2.0}],
        # No length that both have.
        [linear(LENGTHS[:3]), linear(LENGTHS[3:])],
    ],
)
def test_fewer_than_three_shared_lengths_have_no_exponent(replicates):
    assert growth(replicates) is None


@pytest.mark.parametrize(
    ("replicates", "number", "lengths"),
    [
        ([linear(LENGTHS), linear(LENGTHS[:4])], 2, LENGTHS[:4]),
        # A replicate that failed early, and a cost of nothing, are left out.
        ([linear(LENGTHS), {256: 1.0, 512: 2.0}], 1, LENGTHS),
        ([{256: 0.0, **linear(LENGTHS[1:])}], 1, LENGTHS[1:]),
    ],
)
def test_replicates_are_fitted_over_the_lengths_they_share(replicates, number, lengths):
    found = growth(replicates)
    assert (found.replicates, found.lengths) == (number, lengths)
    assert found.exponent == pytest.approx(1.0)


def test_only_an_interval_wholly_above_the_declared_exceeds_it():
    rng = np.random.default_rng(11)
    quadratic, linear = growth(sweep(rng, 2.0, 3)), growth(sweep(rng, 1.0, 3))
    assert quadratic.exceeds(1.0)
    assert not quadratic.exceeds(2.0)
    assert not linear.exceeds(1.0)
    unsure = Growth(
        exponent=1.4, low=1.14, high=1.66, least=1.14, end=None, lengths=LENGTHS, replicates=3
    )
    assert not unsure.exceeds(1.0)


@pytest.mark.parametrize("replicates", [1, 2, 3])
def test_a_bend_that_repeats_to_the_last_digit_is_no_faster_growth(replicates):
    """A linear cost less a fixed part, as of memory above a level that was taken before."""
    affine = {n: 2734.0 * n - 0.4e6 for n in (256, 512, 1024, 2048)}
    found = growth([affine] * replicates)
    assert found.exponent == pytest.approx(1.36, abs=0.01)
    assert found.least == pytest.approx(0.93, abs=0.01)
    assert not found.exceeds(1.0)
    if replicates > 1:
        assert found.low == pytest.approx(found.exponent), "how well it repeats"


def test_the_wider_of_both_intervals_counts_against_a_claim():
    apart = growth([{n: float(n) ** power for n in LENGTHS} for power in (1.1, 1.5)])
    assert apart.least == apart.low < 1.0
    bent = growth([{n: 1e6 + float(n) ** 2 for n in LENGTHS}] * 2)
    one = growth([{n: 1e6 + float(n) ** 2 for n in LENGTHS}])
    assert bent.least == pytest.approx(one.low) and one.least == one.low
