"""Statistics over seeds: intervals, paired tests, ranks and luck."""

from __future__ import annotations

import msgspec
import pytest
from scipy import stats

from lra.core.records import Record
from lra.report.model import Section, Value
from lra.report.plots.ranks import joined
from lra.report.sections.statistics import leading, sections
from lra.report.statistics import Statistics, statistics
from lra.verdict.accuracy import Ranks
from report.analysed import analysed, recast, told, values
from report.sample import THERE, baseline, quality

TASKS = ("listops", "text")
LEVELS = (0.70, 0.74, 0.69)


def trained(name: str, level: float, noise: float = 0.001, number: int = 3) -> list[Record]:
    return [
        quality(name, task, level + place * 0.1 + noise * (-1) ** seed * seed, seed=seed)
        for place, task in enumerate(TASKS)
        for seed in range(number)
    ]


def by_levels(name: str, task: str, more: float = 0.0, number: int = 3) -> list[Record]:
    return [quality(name, task, one + more, seed=n) for n, one in enumerate(LEVELS[:number])]


def everything() -> list[Record]:
    return [
        *trained("sdpa", 0.80),
        *trained("performer", 0.70, 0.002),
        *trained("linear", 0.70, 0.004),
        *trained("identity", 0.50),
        *(baseline(task, majority=0.5) for task in TASKS),
    ]


def only(*records: Record, reference: tuple[Record, ...] = ()) -> Section:
    (section,) = sections(analysed(records, reference))
    return section


def intervals(*records: Record) -> dict[str, dict[str, Value]]:
    table = only(*records).tables[0]
    return {row.title: values(table, row.title) for row in table.rows}


def differences(
    *records: Record, reference: tuple[Record, ...] = ()
) -> dict[str, dict[str, Value]]:
    table = only(*records, reference=reference).tables[1]
    return {row.title: values(table, row.title) for row in table.rows}


def found(*records: Record) -> Statistics:
    analysis = analysed(records)
    one = statistics(analysis.evidence, analysis.accuracies[0])
    assert one is not None
    return one


def test_each_task_and_their_mean_have_students_interval() -> None:
    row = intervals(*by_levels("sdpa", "listops"), *by_levels("sdpa", "text", 0.1))["sdpa"]
    low, high = stats.t.interval(0.95, 2, loc=0.71, scale=stats.sem(LEVELS))
    told_as = f"{100 * low:.0f} to {100 * high:.0f}"
    assert (row["listops"].text, row["listops"].note) == (told_as, "n 3")
    assert row["mean of 2"].number == pytest.approx(0.76)
    assert row["mean of 2"].text == f"{100 * low + 5:.0f} to {100 * high + 5:.0f}"


def test_seeds_that_agree_closer_than_a_row_know_no_less_in_the_mean_too() -> None:
    made = [quality("sdpa", t, 0.7, seed=n) for t in TASKS for n in range(3)]
    row = intervals(*made)["sdpa"]
    for column, grain in (("listops", 1 / 2000), ("mean of 2", 1 / 4000)):
        margin = stats.t.ppf(0.975, 2) * grain / 3**0.5
        assert row[column].text == f"{100 * (0.7 - margin):.1f} to {100 * (0.7 + margin):.1f}"


def test_a_place_without_an_interval_is_a_word() -> None:
    records = [
        *by_levels("sdpa", "listops"), *by_levels("sdpa", "text", number=1),
        *by_levels("linear", "listops"),
        *(quality("linear", "text", status="oom", seed=n) for n in range(3)),
        *by_levels("lstm", "listops"), *by_levels("full", "listops", number=1),
        quality("full", "text", 0.7),
    ]  # fmt: skip
    rows = intervals(*records)
    assert (rows["sdpa"]["text"].text, rows["sdpa"]["text"].note) == ("n/a", "one seed")
    assert rows["sdpa"]["mean of 2"].text == "n/a"
    assert rows["linear"]["text"].text == "OOM" and rows["lstm"]["text"].text == "not run"
    assert "full" not in rows
    diverged = quality("sdpa", "listops", status="diverged", seed=3)
    assert intervals(*by_levels("sdpa", "listops"), diverged)["sdpa"]["listops"].note == "n 3"


def test_bits_have_intervals_that_may_lie_above_one() -> None:
    made = [told("sdpa", bits=bits, seed=s) for s, bits in enumerate((1.90, 1.95, 2.00))]
    # Student's at two degrees of freedom: 4.303 * 0.05 / sqrt(3).
    value = intervals(*made)["sdpa"]["bytes"]
    assert (value.text, value.note) == ("1.8 to 2.1", "n 3")


@pytest.mark.parametrize("status", ["oom", "diverged", "unsupported"])
def test_one_seed_or_none_has_no_statistics(status: str) -> None:
    names = ("sdpa", "linear", "identity")
    lost = [quality(n, "listops", status=status, seed=s) for n in names for s in range(3)]
    assert sections(analysed(lost)) == []
    single = [record for name in names for record in trained(name, 0.7, number=1)]
    assert sections(analysed(single)) == []


def test_differences_have_their_interval_and_a_probability_for_the_whole_column() -> None:
    rows = differences(*everything())
    against = rows["performer"]["against sdpa"]
    assert against.number == pytest.approx(-0.1, abs=0.002) and against.best
    assert against.text == "-10.0" and against.note.endswith("p < 0.001")
    assert rows["sdpa"]["against sdpa"].text == rows["identity"]["against identity"].text == "n/a"
    # performer and linear are alike; both are below one and above one other.
    counts = {name: row["better, worse than"].text for name, row in rows.items()}
    assert counts == {"sdpa": "3, 0", "performer": "1, 1", "linear": "1, 1", "identity": "0, 3"}


def test_the_difference_is_students_over_paired_seeds() -> None:
    pair = (*trained("sdpa", 0.80, 0.010), *trained("linear", 0.77, 0.004))
    shift = [0.03 + 0.006 * (-1) ** seed * seed for seed in range(3)]
    # Two tasks whose differences are the same, seed by seed: each has half the weight.
    error = (2 * stats.sem(shift) ** 2 / 4) ** 0.5
    mean = sum(shift) / 3
    p = 2 * stats.t.sf(mean / error, 4)
    margin = stats.t.ppf(0.975, 4) * error
    value = differences(*pair)["linear"]["against sdpa"]
    assert value.number == pytest.approx(-mean)
    bounds = f"{100 * (-mean - margin):+.1f} to {100 * (-mean + margin):+.1f}"
    assert value.note == f"{bounds}, p {p:.2g}"


def test_a_column_of_many_questions_asks_more_of_each() -> None:
    """Alone the difference counts, beside nine others it does not."""
    pair = (*trained("sdpa", 0.80, 0.010), *trained("linear", 0.77, 0.0))
    others = [r for n in range(9) for r in trained(f"m{n}", 0.80 + n / 999, 0.02 + n / 99)]
    alone = differences(*pair)["linear"]["against sdpa"]
    among = differences(*pair, *others)["linear"]["against sdpa"]
    assert alone.best and not among.best
    of = [float(value.note.split("p ")[1]) for value in (alone, among)]
    assert of[1] == pytest.approx(10 * of[0], rel=0.1)


def test_seeds_that_agree_by_chance_know_no_less_than_a_row() -> None:
    one_row = [quality("sdpa", t, 0.8005, seed=s) for t in TASKS for s in range(2)]
    other = [quality("linear", t, 0.8, seed=s) for t in TASKS for s in range(2)]
    value = differences(*one_row, *other)["linear"]["against sdpa"]
    assert value.text in ("-0.1", "-0.0") and not value.best


def test_the_text_says_who_leads_and_who_is_not_told_apart() -> None:
    assert only(*everything()).text == (leading(found(*everything())),)
    assert leading(found(*everything())).startswith("sdpa is better than 3 others")
    both = (*trained("sdpa", 0.8, 0.01), *trained("full", 0.79, 0.02), *trained("identity", 0.5))
    assert leading(found(*both)).startswith(
        "sdpa is not told apart from full, and better than 1 other"
    )


def test_who_leads_is_of_seeds_that_both_have() -> None:
    """More seeds of one, and better ones, make no lead where the shared ones say the opposite."""
    lucky = [quality("sdpa", task, 0.95, seed=s) for task in TASKS for s in (3, 4, 5)]
    rest = (*trained("performer", 0.70), *trained("identity", 0.3))
    assert leading(found(*trained("sdpa", 0.60), *lucky, *rest)).startswith("performer is better")
    # Without a seed in common there is no test, and nothing is called alike.
    apart = [quality("full", task, 0.9 + s / 999, seed=s) for task in TASKS for s in (5, 6)]
    rows = differences(*trained("sdpa", 0.8), *apart, *trained("identity", 0.5))
    assert rows["full"]["against sdpa"].text == rows["full"]["better, worse than"].text == "n/a"


def test_no_test_compares_two_versions_of_the_trainer() -> None:
    later = [quality("linear", t, 0.7, seed=s, measure=2) for t in TASKS for s in range(3)]
    rows = differences(*trained("sdpa", 0.8), *trained("identity", 0.5), *later)
    assert rows["linear"]["against sdpa"].text == rows["linear"]["better, worse than"].text == "n/a"
    assert rows["sdpa"]["better, worse than"].text == "1, 0"


def test_features_that_only_some_rows_use_set_none_apart() -> None:
    own = [
        recast(record, versions={**record.cell.versions, "train/dropout": 1})
        for record in trained("linear", 0.7)
    ]
    assert differences(*trained("sdpa", 0.8), *own)["linear"]["against sdpa"].text == "-10.0"


def test_the_runs_own_row_is_the_one_to_compare_with() -> None:
    before = "2026-11-19T10:00:00Z"
    elsewhere = tuple(
        quality("sdpa", task, 0.9 + seed / 999, seed=seed, started=before, machine=THERE)
        for task in TASKS
        for seed in range(4)
    )
    own = [*trained("sdpa", 0.8), *trained("performer", 0.7)]
    rows = differences(*own, reference=elsewhere)
    assert rows["sdpa"]["against sdpa"].text == "n/a"
    assert float(rows["sdpa (reference)"]["against sdpa"].text) > 4


def test_rows_go_from_the_best_and_ranks_are_over_tasks() -> None:
    rows, section = differences(*everything()), only(*everything())
    assert [*rows][::3] == ["sdpa", "identity"]
    # Controls have no rank.
    ranks = [rows[name]["average rank"].text for name in ("sdpa", "identity")]
    assert ranks == ["1.0", "n/a"]
    (figure,) = section.figures
    assert all(name in figure.svg for name in ("sdpa", "performer", "linear", "CD "))
    assert "identity" not in figure.svg
    # Two mechanisms have no ranks.
    two = only(*trained("sdpa", 0.8), *trained("identity", 0.5))
    assert two.figures == () and "average rank" not in two.tables[1].columns


def test_seeds_of_one_mechanism_say_how_far_two_seeds_are_apart() -> None:
    # Seeds lie at 0, -1 and +2 points: 1, 2 and 3 points from each other, on every task.
    one = found(*trained("sdpa", 0.8, 0.01), *trained("identity", 0.5, 0.01))
    assert sorted(one.seed_distances) == pytest.approx([0.01, 0.01, 0.02, 0.02, 0.03, 0.03])


def test_luck_is_counted_by_training() -> None:
    records = [
        *trained("sdpa", 0.8),
        # With 2000 rows, guessing at one half reaches 52.6 % by luck, at 40 % 42.6 %.
        *(quality("linear", task, 0.51, seed=seed) for task in TASKS for seed in range(3)),
        baseline("listops", majority=0.4),
        baseline("text", majority=0.5),
    ]
    rows = differences(*records)
    assert [rows[n]["beyond luck"].text for n in ("sdpa", "linear")] == ["6 of 6", "3 of 6"]
    assert differences(*records[:-2])["sdpa"]["beyond luck"].text == "n/a"


def test_luck_is_that_of_the_largest_class_of_the_test() -> None:
    # Half of training and a little more is of one class, which is 40 % of the test.
    simple = baseline("text", majority=0.4)
    text = msgspec.structs.replace(simple, method={"largest class of the test split": 0.6})
    guessing = [quality("linear", task, 0.6, seed=seed) for task in TASKS for seed in range(3)]
    listops = baseline("listops", majority=0.4)
    rows = differences(*trained("sdpa", 0.8), *guessing, listops, text)
    assert rows["linear"]["beyond luck"].text == "3 of 6"


def test_only_rows_with_all_tasks_and_several_seeds_are_judged() -> None:
    more = [quality("full", "text", 0.9), quality("lstm", "text", status="oom")]
    one_seed = trained("mine", 0.9, number=1)
    assert not {"full", "lstm", "mine"} & set(differences(*everything(), *more, *one_seed))


def test_bars_join_the_largest_groups_that_are_not_told_apart() -> None:
    average = {"a": 1.0, "b": 1.5, "c": 3.0, "d": 5.0}
    assert joined(Ranks(average, critical=2.0, p=0.01, tasks=9)) == [(1.0, 3.0), (3.0, 5.0)]
    assert joined(Ranks(average, critical=0.4, p=0.01, tasks=9)) == []
    # Friedman sees nothing: all are one group.
    assert joined(Ranks(average, critical=0.4, p=0.5, tasks=9)) == [(1.0, 5.0)]
