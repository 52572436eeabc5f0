"""Pooled accuracies and costs, against the same figures by hand."""

from __future__ import annotations

from statistics import fmean, median, stdev

import numpy as np
import pytest
from scipy import stats

from lra.core.catalogue import EXACT
from lra.report.accuracy import accuracies, winner
from lra.report.costs import costs, fastest, least
from lra.report.load.select import join

from .sample import GPU, efficiency, mechanism, quality


def test_a_mean_over_seeds_has_students_interval() -> None:
    values = [0.70, 0.74, 0.75]
    run = [quality("linear", "text", v, seed=n) for n, v in enumerate(values)]
    (scores,) = accuracies(join(run, []))
    (row,) = scores.pooled.to_dict("records")
    assert row["n"] == 3 and row["mean"] == pytest.approx(fmean(values))
    assert row["sd"] == pytest.approx(stdev(values))
    low, high = stats.t.interval(0.95, 2, fmean(values), stdev(values) / np.sqrt(3))
    assert (row["low"], row["high"]) == pytest.approx((low, high))


def test_one_seed_has_no_interval() -> None:
    (scores,) = accuracies(join([quality("linear", "text", 0.7)], []))
    (row,) = scores.pooled.to_dict("records")
    assert np.isnan([row["sd"], row["low"], row["high"]]).all()


def test_a_mean_over_tasks_is_of_rows_that_have_them_all() -> None:
    run = [quality("linear", task, 0.6) for task in ("listops", "text")]
    run += [quality("lstm", "listops", 0.9), quality("lstm", "text", status="oom")]
    (scores,) = accuracies(join(run, []))
    means = scores.means.set_index("mechanism")
    assert means["mean"]["linear"] == pytest.approx(0.6)
    assert np.isnan(means["mean"]["lstm"]) and means["n"]["lstm"] == 1
    assert [column.task for column in scores.averaged] == ["listops", "text"]


def test_the_spread_of_a_mean_is_of_seeds_that_all_tasks_share() -> None:
    by_task = {"listops": [0.5, 0.7], "text": [0.9, 0.6]}
    run = [
        quality("linear", task, value, seed=seed)
        for task, values in by_task.items()
        for seed, value in enumerate(values)
    ]
    (scores,) = accuracies(join(run, []))
    (row,) = scores.means.to_dict("records")
    assert row["sd"] == pytest.approx(stdev([fmean([0.5, 0.9]), fmean([0.7, 0.6])]))


@pytest.mark.parametrize(("gap", "wins"), [(0.2, True), (0.002, False)])
def test_a_winner_is_told_apart_by_its_interval(gap: float, wins: bool) -> None:
    run = [
        quality(name, "text", 0.5 + add + 0.01 * seed, seed=seed)
        for name, add in (("linear", 0.0), ("lstm", gap))
        for seed in range(3)
    ]
    (scores,) = accuracies(join(run, []))
    found = winner(scores, scores.columns[0].protocol)
    assert (found is not None and found[1].startswith("lstm:")) == wins


def test_a_cost_of_processes_is_their_median_and_range() -> None:
    values = [0.010, 0.014, 0.011]
    run = [efficiency("linear", 512, seconds=v, replicate=n) for n, v in enumerate(values)]
    pooled = costs(join(run, [])).pooled
    (row,) = pooled[pooled["metric"] == "latency"].to_dict("records")
    assert row["value"] == median(values)
    assert (row["low"], row["high"], row["processes"]) == (0.010, 0.014, 3)


def test_a_cost_of_one_process_has_its_quartiles() -> None:
    pooled = costs(join([efficiency("linear", 512, seconds=0.02, width=0.1)], [])).pooled
    (row,) = pooled[pooled["metric"] == "latency"].to_dict("records")
    assert (row["low"], row["high"]) == pytest.approx((0.019, 0.021))


def test_a_ratio_is_to_exact_attention_of_the_same_origin_and_length() -> None:
    run = [efficiency("linear", n, seconds=0.01) for n in (512, 1024)]
    run += [efficiency(EXACT, n, seconds=0.04 * n / 512) for n in (512, 1024)]
    pooled = costs(join(run, [])).pooled
    own = pooled[(pooled["metric"] == "latency") & (pooled["mechanism"] == "linear")]
    assert own.set_index("length")["ratio"].to_dict() == pytest.approx({512: 0.25, 1024: 0.125})


def test_replicates_that_failed_are_counted_with_their_endings() -> None:
    run = [efficiency("linear", 512, seconds=0.01)]
    run += [efficiency("linear", 512, status="oom", replicate=1)]
    pooled = costs(join(run, [])).pooled
    (row,) = pooled[pooled["metric"] == "latency"].to_dict("records")
    assert (row["processes"], row["asked"]) == (1, 2)
    assert [status for status, *_ in row["endings"]] == ["oom"]


def test_calls_of_as_many_positions_are_of_one_example() -> None:
    sizes = {256: 16, 1024: 4, 4096: 1}
    run = [
        efficiency("linear", n, seconds=0.8, memory=8e8, machine=GPU, batch=b)
        for n, b in sizes.items()
    ]
    found = costs(join(run, []))
    whole = [one for one in found.settings if one.tokens == 4096]
    assert len(whole) == 1 and whole[0].batch is None
    own = found.pooled[found.pooled["setting"] == whole[0].id]
    times = own[own["metric"] == "latency"].set_index("length")["value"].to_dict()
    assert times == pytest.approx({n: 0.8 / b for n, b in sizes.items()})


def test_the_fastest_is_told_apart_by_the_range_of_processes() -> None:
    def made(name: str, values: list[float]) -> list[object]:
        return [efficiency(name, 512, seconds=v, replicate=n) for n, v in enumerate(values)]

    apart = [*made("linear", [0.010, 0.011]), *made("lstm", [0.020, 0.021])]
    close = [*made("linear", [0.010, 0.021]), *made("lstm", [0.020, 0.022])]
    for run, number in ((apart, 1), (close, 2)):
        pooled = costs(join(run, [])).pooled  # type: ignore[arg-type]
        own = pooled[pooled["metric"] == "latency"]
        assert len(least(own)) == number
        assert (fastest(own) is not None) == (number == 1)


def test_two_configurations_are_two_rows() -> None:
    run = [efficiency(mechanism("linear", x=x), 512, seconds=0.01) for x in (1, 2)]
    pooled = costs(join(run, [])).pooled
    assert pooled[pooled["metric"] == "latency"]["variant"].nunique() == 2
