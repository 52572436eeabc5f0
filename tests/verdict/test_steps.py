"""Steps over nights: found where they are, and not where there is noise, a spell or a gap."""

import math
from itertools import combinations, pairwise
from statistics import fmean

import numpy as np
import pytest

from lra.verdict.steps import SHORTEST_LEVEL, Segmentation, new_steps, segment

from .simulated import NOISY, QUIET, SHARED, nightly

NIGHTS = 60


def quiet(*levels, seed=0):
    """So many nights at each level, as a share above 1, within about 1 %."""
    rng = np.random.default_rng(seed)
    means = [math.log1p(level) for number, level in levels for _ in range(number)]
    return [mean + 0.01 * rng.normal() for mean in means]


def share(machine, change, trials, seed):
    rng = np.random.default_rng(seed)
    return [segment(list(nightly(rng, machine, len(change)) + change)) for _ in range(trials)]


def step_at(night, ratio, nights=NIGHTS):
    return np.where(np.arange(nights) < night, 0.0, math.log(ratio))


def test_levels_steps_and_how_sure():
    found = segment(quiet((20, 0.0), (15, 0.10), (25, -0.05)))
    assert [step.at for step in found.steps] == [20, 35]
    assert [(one.start, one.end, one.nights) for one in found.levels] == [
        (0, 20, 20),
        (20, 35, 15),
        (35, 60, 25),
    ]
    slower, faster = found.steps
    assert math.exp(slower.difference) == pytest.approx(1.10, abs=0.015)
    assert math.exp(faster.difference) == pytest.approx(0.95 / 1.10, abs=0.015)
    assert found.noise == pytest.approx(0.01, rel=0.6) and slower.size > 4
    assert slower.earliest <= slower.at <= slower.latest and slower.last == slower.earliest - 1


@pytest.mark.parametrize("machine", [QUIET, NOISY, SHARED])
def test_a_machine_that_drifts_makes_few_steps(machine):
    found = share(machine, np.zeros(NIGHTS), 400, seed=1)
    assert fmean(bool(one.steps) for one in found) <= 0.01


def test_a_few_nights_know_their_noise_badly_and_make_no_steps_of_it():
    found = share(NOISY, np.zeros(8), 2000, seed=5)
    assert fmean(bool(one.steps) for one in found) <= 0.001


def test_a_step_of_ten_percent_is_found_where_it_is():
    found = share(NOISY, step_at(30, 1.1), 150, seed=2)
    assert fmean(any(abs(s.at - 30) <= 2 for s in one.steps) for one in found) > 0.7
    found = share(NOISY, step_at(30, 1.2), 60, seed=3)
    assert fmean(any(abs(s.at - 30) <= 2 for s in one.steps) for one in found) > 0.95
    inside = [s.earliest <= 30 <= s.latest for one in found for s in one.steps[:1]]
    assert fmean(inside) > 0.9


def test_a_slow_creep_is_found():
    creep = np.clip(0.01 * (np.arange(NIGHTS) - 19), 0.0, 0.2)
    found = share(NOISY, creep, 60, seed=4)
    risen = [bool(one.steps) and one.levels[-1].value > one.levels[0].value + 0.1 for one in found]
    assert fmean(risen) > 0.95


@pytest.mark.parametrize("far", [0.3, 3.0, 30.0])
@pytest.mark.parametrize("nights", [8, 60, 365])
def test_one_or_two_outlying_nights_are_no_step(nights, far):
    for where in ([3], [nights // 2, nights // 2 + 1], [0, 1], [nights - 2, nights - 1]):
        values = quiet((nights, 0.0))
        for night in where:
            values[night] += far
        assert not segment(values).steps, where


def test_a_spell_of_four_nights_is_no_step_and_what_stays_is():
    assert not segment(quiet((30, 0.0), (4, 0.5), (30, 0.0))).steps
    assert len(segment(quiet((30, 0.0), (34, 0.5))).steps) == 1


def test_at_the_end_it_is_told_from_three_nights_on_and_pointed_out_before():
    for nights in range(1, 6):
        found = segment(quiet((40, 0.0), (nights, 0.3)))
        if nights < SHORTEST_LEVEL:
            assert not found.steps and found.outliers == nights
        else:
            assert [step.at for step in found.steps] == [40] and not found.outliers
    assert segment(quiet((40, 0.0))).outliers == 0


def test_gaps_are_gaps():
    values: list[float | None] = [*quiet((20, 0.0), (20, 0.2))]
    values[0] = values[18] = values[19] = None
    values[5], values[39] = math.nan, math.inf
    found = segment(values)
    (step,) = found.steps
    assert (step.at, step.last) == (20, 17)
    assert [(one.start, one.end, one.nights) for one in found.levels] == [(1, 18, 16), (20, 39, 19)]


@pytest.mark.parametrize("values", [[], [None, math.nan], [None] * 9])
def test_no_value_is_no_level(values):
    assert segment(values) == Segmentation((), (), None)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_of_fewer_than_four_values_there_is_a_level_and_no_noise(number):
    found = segment([1.0, None, 5.0, 2.0][: number + (number > 1)])
    assert len(found.levels) == 1 and found.noise is None and not found.steps
    assert found.levels[0].nights == number


def test_without_any_spread_the_grain_is_the_noise():
    constant = segment([0.5] * 30)
    assert not constant.steps and constant.noise == 0.003 and constant.levels[0].value == 0.5
    (step,) = segment([0.5] * 10 + [0.6] * 10).steps
    assert (step.at, step.earliest, step.latest) == (10, 10, 10)
    assert not segment([0.5] * 10 + [0.52] * 10).steps, "less than 3 % does not matter"
    (small,) = segment([0.5] * 10 + [0.52] * 10, margin=0.01, grain=0.001).steps
    assert small.difference == pytest.approx(0.02)


def test_the_optimum_is_the_least_of_all_partitions():
    from lra.verdict import steps

    rng = np.random.default_rng(7)
    for _ in range(20):
        y = np.round(np.repeat(rng.normal(size=4), 3) + 0.1 * rng.normal(size=12), 3)
        noise = steps._noise_of(y, 0.003)

        def cost(cuts, y=y, noise=noise):
            places = [0, *cuts, len(y)]
            total = steps.PENALTY * math.log(len(y)) * len(cuts)
            for a, b in pairwise(places):
                off = np.abs(y[a:b, None] - y) / (math.sqrt(2 / math.pi) * noise)
                total += np.minimum(off, steps._CAP).sum(axis=0).min()
                if b - a < SHORTEST_LEVEL:
                    return math.inf
            return total

        every = [cuts for n in range(4) for cuts in combinations(range(1, len(y)), n)]
        found = tuple(start for start, _ in steps._optimal_partition(y, noise)[1:])
        assert cost(found) == pytest.approx(min(map(cost, every)))


def test_what_was_told_before_is_not_new_and_what_took_long_to_tell_is():
    values = quiet((20, 0.0), (20, 0.2))
    assert new_steps(values, segment(values), 7) == ()
    assert [step.at for step in new_steps(values, segment(values), 18)] == [20]
    rng = np.random.default_rng(11)
    late = 0
    for _ in range(40):
        noisy = list(nightly(rng, NOISY, 80) + step_at(40, 1.1, 80))
        told = next((n for n in range(43, 80) if segment(noisy[:n]).steps), 80)
        late += told > 50 and bool(new_steps(noisy[:told], segment(noisy[:told]), 7))
    assert late > 5, "a step of which its date alone says that it is old"
