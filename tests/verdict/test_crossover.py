"""Where a cost falls below another: every outcome, with its interval."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from lra.verdict.crossover import Costs, Crossover, Figure, crossover

LENGTHS = (256, 512, 1024, 2048, 4096, 8192)


def costs(
    law: Callable[[int], float],
    replicates: int = 1,
    noise: float = 0.0,
    *,
    seed: int = 0,
    width: float | None = None,
    lengths: tuple[int, ...] = LENGTHS,
) -> Costs:
    """Costs by a law, with quartiles a share `width` apart where it is given."""
    rng = np.random.default_rng(seed)

    def figure(n: int) -> Figure:
        value = float(law(n) * np.exp(noise * rng.normal()))
        if width is None:
            return Figure(value)
        return Figure(value, value * (1 - width / 2), value * (1 + width / 2))

    return {r: {n: figure(n) for n in lengths} for r in range(replicates)}


def exact(n: int) -> float:
    return n**2.0


def linear(n: int) -> float:
    return 1900.0 * n


def found(own: Costs, other: Costs, gone: tuple[int, ...] = ()) -> Crossover:
    result = crossover(own, other, gone)
    assert result is not None
    return result


def test_power_laws_cross_where_they_are_equal() -> None:
    result = found(costs(linear), costs(exact))
    assert result.at == pytest.approx(1900)
    assert (result.low, result.high, result.interval) == (None, None, "none")
    assert (result.lengths, result.beaten, result.jumps) == (LENGTHS, (), False)


def test_below_everywhere_is_from_before_the_shortest() -> None:
    assert found(costs(lambda n: 1.0), costs(exact)).at == 0


def test_not_below_at_the_longest_is_never() -> None:
    assert found(costs(lambda n: 1e9), costs(exact)).at == math.inf
    once = costs(lambda n: 1.0 if n == 1024 else 1e9)
    assert found(once, costs(exact)).at == math.inf


def test_a_draw_is_not_below() -> None:
    assert found(costs(exact), costs(exact)).at == math.inf


def test_the_last_of_several_crossings_counts() -> None:
    """Below at 512, above at 1024, below again from 2048."""
    ratios = dict(zip(LENGTHS, (2.0, 0.5, 2.0, 0.5, 0.4, 0.3), strict=True))
    result = found(costs(ratios.__getitem__), costs(lambda n: 1.0))
    assert result.at == pytest.approx(math.sqrt(1024 * 2048))


def test_replicates_give_the_range_of_their_crossings() -> None:
    own = {r: costs(lambda n, c=c: c * n)[0] for r, c in enumerate((1600.0, 1900.0, 2300.0))}
    result = found(own, costs(exact, 3))
    assert (result.at, result.low, result.high) == pytest.approx((1900, 1600, 2300))
    assert result.interval == "replicates"
    even = found({0: own[0], 1: own[2]}, costs(exact, 2))
    assert even.at == pytest.approx(math.sqrt(1600 * 2300))


def test_replicates_may_disagree_whether_it_crosses() -> None:
    own = {r: costs(lambda n, c=c: c * n)[0] for r, c in enumerate((100.0, 1900.0, 1e6))}
    result = found(own, costs(exact, 3))
    assert (result.at, result.low, result.high) == pytest.approx((1900, 0, math.inf))
    # Of two middle ones of which one is none, the later: what is not sure is not claimed.
    assert found({0: own[1], 1: own[2]}, costs(exact, 2)).at == math.inf


def test_noise_moves_a_crossing_little_and_the_interval_shows_it() -> None:
    results = [
        found(costs(linear, 3, 0.03, seed=s), costs(exact, 3, 0.03, seed=s + 1000))
        for s in range(200)
    ]
    assert all(abs(math.log(one.at / 1900)) < 0.15 for one in results)
    assert all(one.low and one.high and one.low <= one.at <= one.high for one in results)
    held = sum((one.low or 0) <= 1900 <= (one.high or 0) for one in results) / len(results)
    # Three crossings lie all on one side of the truth a quarter of the time.
    assert 0.6 < held < 0.9


def test_one_replicate_has_the_interval_of_opposite_quartiles() -> None:
    result = found(costs(linear, width=0.1), costs(exact, width=0.1))
    assert result.interval == "quartiles"
    assert result.at == pytest.approx(1900)
    # The ratio of the two may be off by 1.05 / 0.95 on either side.
    assert result.low == pytest.approx(1900 * 0.95 / 1.05)
    assert result.high == pytest.approx(1900 * 1.05 / 0.95)


def test_quartiles_may_reach_past_the_range() -> None:
    result = found(costs(lambda n: 260.0 * n, width=0.1), costs(exact, width=0.1))
    assert result.low == 0
    assert result.high == pytest.approx(260 * 1.05 / 0.95)
    late = found(costs(lambda n: 8000.0 * n, width=0.1), costs(exact, width=0.1))
    assert (late.at, late.high) == (pytest.approx(8000), math.inf)


def test_an_exact_one_out_of_memory_is_beaten_and_the_other_lengths_stay() -> None:
    short = costs(exact, lengths=LENGTHS[:-1])
    result = found(costs(linear), short, gone=(8192,))
    assert result.at == pytest.approx(1900)
    assert (result.lengths, result.beaten, result.jumps) == (LENGTHS, (8192,), False)


def test_what_is_slower_until_the_exact_one_has_no_memory_wins_there() -> None:
    short = costs(exact, lengths=LENGTHS[:-1])
    result = found(costs(lambda n: 1e9), short, gone=(8192,))
    assert result.at == pytest.approx(8192)
    assert result.jumps


def test_an_exact_one_out_of_memory_everywhere_is_beaten_everywhere() -> None:
    result = found(costs(linear), {}, gone=LENGTHS)
    assert (result.at, result.beaten, result.jumps) == (0, LENGTHS, False)


def test_running_out_of_memory_oneself_beats_nothing() -> None:
    own = costs(lambda n: 1e9, lengths=LENGTHS[:-1])
    result = found(own, costs(exact, lengths=LENGTHS[:-1]), gone=(8192,))
    assert (result.at, result.beaten) == (math.inf, ())


def test_lengths_that_one_of_them_lacks_are_left_out() -> None:
    result = found(costs(linear, lengths=(256, 1024, 4096)), costs(exact))
    assert result.lengths == (256, 1024, 4096)
    assert result.at == pytest.approx(1900)


def test_replicates_share_their_lengths() -> None:
    own = {**costs(linear), 1: costs(linear, lengths=LENGTHS[:5])[0]}
    assert found(own, costs(exact, 2)).lengths == LENGTHS[:5]


def test_a_replicate_without_its_counterpart_is_left_out() -> None:
    result = found(costs(linear, 3), costs(exact, 1, width=0.1))
    assert result.interval == "none"
    assert result.at == pytest.approx(1900)


@pytest.mark.parametrize(
    ("own", "other"),
    [({}, costs(exact)), (costs(linear), {}), (costs(linear), {5: costs(exact)[0]}), ({}, {})],
)
def test_nothing_in_common_is_none(own: Costs, other: Costs) -> None:
    assert crossover(own, other) is None
    assert crossover(costs(linear, lengths=(64,)), costs(exact)) is None


def test_a_cost_of_nothing_is_below_any_other_and_draws_with_itself() -> None:
    nothing = costs(lambda n: 0.0)
    assert found(nothing, costs(exact)).at == 0
    assert found(costs(exact), nothing).at == math.inf
    assert found(nothing, nothing).at == math.inf
    late = costs(lambda n: 0.0 if n == 8192 else 1e9)
    assert found(late, costs(exact)).at == pytest.approx(8192)
