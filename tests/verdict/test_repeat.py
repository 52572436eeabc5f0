"""The self-test by hand, and on simulated machines: what it says of them is so."""

import math
from functools import cache
from statistics import fmean

import msgspec
import numpy as np
import pytest

from lra.verdict.ratio import Ratio
from lra.verdict.repeatability import (
    TARGET,
    ControlledCost,
    RepeatedCell,
    are_disjoint,
    control_ratio,
    median_width,
    repeatability,
    repeated_cell,
    smallest_difference,
)
from lra.verdict.student import deviation_factor, power

from .simulated import CELLS, NOISY, QUIET, SHARED, Machine, repeats, sweeps

RUNS = 100


def process(cost, before=1.0, after=1.0):
    return ControlledCost(cost, before, after)


def test_the_control_of_a_process_is_the_geometric_mean_of_before_and_after():
    assert process(6.0, 1.0, 4.0).ratio == pytest.approx(3.0)
    found = control_ratio({0: process(6.0, 1.0, 4.0), 1: process(60.0, 10.0, 40.0)})
    assert found.pairs == 2
    assert (found.value, found.low, found.high) == pytest.approx((3.0, 3.0, 3.0))


def test_a_process_without_a_time_is_left_out():
    found = control_ratio({0: process(2.0), 1: process(0.0), 2: process(2.0, after=0.0)})
    assert found.pairs == 1
    assert control_ratio({1: process(0.0)}) is None


def test_pairs_are_those_of_one_replicate():
    first = {0: process(1.0), 1: process(10.0), 2: process(5.0)}
    second = {0: process(2.0), 1: process(20.0), 3: process(7.0)}
    found = repeated_cell(512, first, second)
    assert (found.between.value, found.between.pairs) == (pytest.approx(2.0), 2)
    assert found.first.pairs == found.second.pairs == 3
    assert found.spread == pytest.approx(0.0)
    assert repeated_cell(512, {0: process(1.0)}, {0: process(1.0)}) is None


@pytest.mark.parametrize(
    ("one", "other", "are_apart"),
    [((1.0, 2.0), (1.9, 3.0), False), ((1.0, 2.0), (2.1, 3.0), True), ((2.1, 3), (1, 2), True)],
)
def test_sweeps_agree_where_their_intervals_overlap(one, other, are_apart):
    assert are_disjoint(Ratio(1.5, *one, pairs=3), Ratio(1.5, *other, pairs=3)) is are_apart


def test_one_process_agrees_with_everything_and_has_no_width():
    assert not are_disjoint(Ratio(1.0, None, None, 1), Ratio(9.0, 8.0, 10.0, 3))
    assert median_width([Ratio(1.0, None, None, 1)]) is None
    wide = [Ratio(2.0, 1.0, 3.0, 3), Ratio(2.0, 1.9, 2.1, 3), Ratio(2.0, 1.8, 2.2, 3)]
    assert median_width(wide) == pytest.approx(0.2)


def test_width_is_of_long_inputs_alone():
    def cell(length, width):
        ratio = Ratio(1.0, 1.0, 1.0 + width, 3)
        return RepeatedCell(length, ratio, ratio, Ratio(1.0, 0.9, 1.1, 3), 0.1)

    found = repeatability([cell(1023, 5.0), cell(1024, 0.1), cell(2048, 0.2)], 12)
    assert found.width == pytest.approx(0.15)
    assert repeatability([cell(512, 5.0)], 12).width is None


@pytest.mark.parametrize("pairs", [3, 5, 12])
def test_a_difference_is_found_as_often_as_power_says(pairs):
    rng = np.random.default_rng(pairs)
    samples, student = rng.normal(0.06, 0.05, (20_000, pairs)), {3: 2.920, 5: 2.132, 12: 1.796}
    bound = samples.mean(1) - samples.std(1, ddof=1) / math.sqrt(pairs) * student[pairs]
    said = power(0.95, pairs - 1, 0.06 * math.sqrt(pairs) / 0.05)
    assert said == pytest.approx(np.mean(bound > 0), abs=0.01)
    assert power(0.95, pairs - 1, 0.0) == pytest.approx(0.05)
    assert power(0.95, pairs - 1, 1e9) == pytest.approx(1.0)


def test_a_cautious_deviation_is_too_small_once_in_twenty():
    found = np.random.default_rng(5).normal(size=(20_000, 9)).std(1, ddof=1)
    assert np.mean(deviation_factor(0.95, 8) * found < 1) == pytest.approx(0.05, abs=0.01)


def test_a_machine_without_noise_resolves_everything_and_more_pairs_resolve_more():
    still = repeated_cell(
        1024, {r: process(2.0) for r in range(3)}, {r: process(2.0) for r in range(3)}
    )
    assert smallest_difference([still]) < 1e-6
    cells = repeats(sweeps(np.random.default_rng(0), NOISY, 4))
    assert (
        smallest_difference(cells, 12) < smallest_difference(cells, 6) < smallest_difference(cells)
    )


@cache
def tried(machine, replicates, seed):
    rng = np.random.default_rng(seed)
    return [repeats(sweeps(rng, machine, replicates)) for _ in range(RUNS)]


@cache
def judged(machine, replicates):
    return [repeatability(cells, 12) for cells in tried(machine, replicates, 0)]


def found(machine, replicates, slower):
    """Share of cells on which the gate's rule calls a second build slower that is, on other days
    than those by which the machine was judged."""
    cells = [cell for run in tried(machine, replicates, 1) for cell in run]
    return fmean(_as_much_slower(cell, slower).slower for cell in cells)


def _as_much_slower(cell, slower):
    """The cell as it would have been found; a test below holds that to be so."""
    value = slower * cell.between.value
    return msgspec.structs.replace(cell, between=msgspec.structs.replace(cell.between, value=value))


UNEVEN = Machine(0.01, 0.005, uneven=3)
# Too noisy for its number of pairs by a hair: finds 10 % on 94 % of cells.
EDGE = {5: Machine(0.027, 0.02), 8: Machine(0.0375, 0.02), 12: Machine(0.0485, 0.02)}


@pytest.mark.parametrize(
    ("machine", "replicates"), [(QUIET, 5), (QUIET, 12), (NOISY, 12), (UNEVEN, 12)]
)
def test_yes_of_a_machine_that_resolves_ten_percent_and_it_does(machine, replicates):
    assert fmean(one.resolves for one in judged(machine, replicates)) >= 0.95
    assert found(machine, replicates, 1 + TARGET) >= 0.95


@pytest.mark.parametrize(
    ("machine", "replicates"),
    [(NOISY, 5), (SHARED, 5), (SHARED, 12), *((m, n) for n, m in EDGE.items())],
)
def test_no_of_a_machine_that_cannot(machine, replicates):
    assert found(machine, replicates, 1 + TARGET) < 0.95
    assert fmean(one.resolves for one in judged(machine, replicates)) <= 0.05


def test_a_slower_build_is_found_as_if_it_had_been_one():
    really = repeats(sweeps(np.random.default_rng(4), NOISY, 5, slower=1.1))
    equal = repeats(sweeps(np.random.default_rng(4), NOISY, 5))
    asif = [_as_much_slower(cell, 1.1) for cell in equal]
    assert [c.slower for c in really] == [c.slower for c in asif] != [c.slower for c in equal]
    assert [c.between.value for c in really] == pytest.approx([c.between.value for c in asif])


@pytest.mark.parametrize("machine", [QUIET, NOISY, SHARED, UNEVEN])
@pytest.mark.parametrize("replicates", [3, 5, 12])
def test_what_is_called_the_smallest_difference_is_found_on_95_percent_of_cells(
    machine, replicates
):
    told = [one.smallest for one in judged(machine, replicates)]
    # Nor is it said to be sure of that: a third as much is not.
    assert found(machine, replicates, 1 + float(np.median(told))) >= 0.95
    assert found(machine, replicates, 1 + float(np.median(told)) / 3) < 0.95
    assert found(machine, replicates, 1 + float(np.quantile(told, 0.05))) >= 0.95


@pytest.mark.parametrize("machine", [QUIET, NOISY, SHARED])
@pytest.mark.parametrize("replicates", [3, 5, 12])
def test_two_sweeps_of_one_build_agree_and_few_cells_are_called_slower(machine, replicates):
    told = judged(machine, replicates)
    assert sum(one.agreeing for one in told) / (CELLS * RUNS) >= 0.98
    assert fmean(one.agree for one in told) >= 0.95
    # 5 % are stated; a standard error of this mean is 0.6 %.
    assert 0.03 <= sum(one.alarms for one in told) / (CELLS * RUNS) <= 0.07


def test_sweeps_that_do_not_agree_resolve_nothing_however_narrow_they_are():
    cells = repeats(sweeps(np.random.default_rng(2), QUIET, 5, slower=1.3))
    told = repeatability(cells, 12)
    assert told.smallest < TARGET
    assert not told.agree and not told.resolves
    # One cell of twelve may be chance.
    good = repeats(sweeps(np.random.default_rng(2), QUIET, 5))
    assert repeatability([*good[1:], cells[0]], 12).agree
    assert not repeatability([*good[2:], *cells[:2]], 12).agree
