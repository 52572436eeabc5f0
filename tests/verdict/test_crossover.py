"""Where a cost falls below another: every outcome, with its interval."""

import math

import numpy as np
import pytest

from lra.verdict.crossover import Figure, crossover

LENGTHS = (256, 512, 1024, 2048, 4096, 8192)
NEVER = math.inf


def costs(law, replicates=1, noise=0.0, *, seed=0, width=None, lengths=LENGTHS):
    """Costs by a law, with quartiles a share `width` apart where it is given."""
    rng = np.random.default_rng(seed)

    def figure(n):
        value = float(law(n) * np.exp(noise * rng.normal()))
        if width is None:
            return Figure(value)
        return Figure(value, value * (1 - width / 2), value * (1 + width / 2))

    return {r: {n: figure(n) for n in lengths} for r in range(replicates)}


def exact(n):
    return n**2.0


def linear(n, cost=1900.0):
    return cost * n


def constant(value):
    return costs(lambda n: value)


def each(*multiples):
    """Linear costs, of another multiple in each replicate."""
    return {r: costs(lambda n, c=c: linear(n, c))[0] for r, c in enumerate(multiples)}


EXACT, LINEAR, NOTHING = costs(exact), costs(linear), constant(0.0)
# Below at 512, above at 1024, below again from 2048: the last of several crossings counts.
SEVERAL = costs(dict(zip(LENGTHS, (2.0, 0.5, 2.0, 0.5, 0.4, 0.3), strict=True)).__getitem__)


@pytest.mark.parametrize(
    ("own", "other", "at"),
    [
        (LINEAR, EXACT, 1900),
        # Below everywhere is from before the shortest, not below at the longest never.
        (constant(1.0), EXACT, 0),
        (constant(1e9), EXACT, NEVER),
        (costs(lambda n: 1.0 if n == 1024 else 1e9), EXACT, NEVER),
        # A draw is not below.
        (EXACT, EXACT, NEVER),
        (SEVERAL, constant(1.0), math.sqrt(1024 * 2048)),
        # A cost of nothing is below any other.
        (NOTHING, EXACT, 0),
        (EXACT, NOTHING, NEVER),
        (NOTHING, NOTHING, NEVER),
        (costs(lambda n: 0.0 if n == 8192 else 1e9), EXACT, 8192),
        # The later of two middle ones of which one is none: an unsure crossing is not claimed.
        (each(1900.0, 1e6), costs(exact, 2), NEVER),
        (each(1600.0, 2300.0), costs(exact, 2), math.sqrt(1600 * 2300)),
    ],
)
def test_where_costs_cross(own, other, at):
    assert crossover(own, other).at == pytest.approx(at)


def test_one_figure_a_length_has_no_interval():
    result = crossover(LINEAR, EXACT)
    assert (result.low, result.high, result.interval) == (None, None, "none")
    assert (result.lengths, result.beaten, result.jumps) == (LENGTHS, (), False)


@pytest.mark.parametrize(
    ("multiples", "low", "high"),
    [((1600.0, 1900.0, 2300.0), 1600, 2300), ((100.0, 1900.0, 1e6), 0, NEVER)],
)
def test_replicates_give_the_range_of_their_crossings(multiples, low, high):
    result = crossover(each(*multiples), costs(exact, 3))
    assert (result.at, result.low, result.high) == pytest.approx((1900, low, high))
    assert result.interval == "replicates"


def test_noise_moves_a_crossing_little_and_the_interval_shows_it():
    results = [
        crossover(costs(linear, 3, 0.03, seed=s), costs(exact, 3, 0.03, seed=s + 1000))
        for s in range(200)
    ]
    assert all(abs(math.log(one.at / 1900)) < 0.15 for one in results)
    assert all(one.low and one.high and one.low <= one.at <= one.high for one in results)
    # Three crossings lie all on one side of the truth a quarter of the time.
    assert 0.6 < np.mean([one.low <= 1900 <= one.high for one in results]) < 0.9


@pytest.mark.parametrize(
    ("cost", "low", "high"),
    [
        # The ratio of the two may be off by 1.05 / 0.95 on either side.
        (1900, 1900 * 0.95 / 1.05, 1900 * 1.05 / 0.95),
        # Quartiles may reach past the range.
        (260, 0, 260 * 1.05 / 0.95),
        (8000, 8000 * 0.95 / 1.05, NEVER),
    ],
)
def test_one_replicate_has_the_interval_of_opposite_quartiles(cost, low, high):
    result = crossover(costs(lambda n: linear(n, cost), width=0.1), costs(exact, width=0.1))
    assert result.interval == "quartiles"
    assert (result.at, result.low, result.high) == pytest.approx((cost, low, high))


SHORT = costs(exact, lengths=LENGTHS[:-1])


@pytest.mark.parametrize(
    ("own", "other", "gone", "at", "beaten", "jumps"),
    [
        # An exact one out of memory is beaten there, and the other lengths stay.
        (LINEAR, SHORT, (8192,), 1900, (8192,), False),
        # A mechanism that is slower until then wins there.
        (constant(1e9), SHORT, (8192,), 8192, (8192,), True),
        (LINEAR, {}, LENGTHS, 0, LENGTHS, False),
        # Running out of memory oneself beats nothing.
        (costs(lambda n: 1e9, lengths=LENGTHS[:-1]), SHORT, (8192,), NEVER, (), False),
    ],
)
def test_exact_attention_out_of_memory(own, other, gone, at, beaten, jumps):
    result = crossover(own, other, gone)
    assert result.at == pytest.approx(at)
    assert (result.beaten, result.jumps) == (beaten, jumps)
    assert result.lengths == (LENGTHS if beaten else LENGTHS[:-1])


def test_lengths_and_replicates_that_one_of_them_lacks_are_left_out():
    result = crossover(costs(linear, lengths=(256, 1024, 4096)), EXACT)
    assert result.lengths == (256, 1024, 4096) and result.at == pytest.approx(1900)
    own = {**LINEAR, 1: costs(linear, lengths=LENGTHS[:5])[0]}
    assert crossover(own, costs(exact, 2)).lengths == LENGTHS[:5]
    result = crossover(costs(linear, 3), costs(exact, 1, width=0.1))
    assert result.interval == "none" and result.at == pytest.approx(1900)


@pytest.mark.parametrize(
    ("own", "other"),
    [({}, EXACT), (LINEAR, {}), (LINEAR, {5: EXACT[0]}), ({}, {}), ({0: {64: Figure(1.0)}}, EXACT)],
)
def test_nothing_in_common_is_none(own, other):
    assert crossover(own, other) is None
