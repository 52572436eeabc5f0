"""How sure differences of accuracy are: tests over seeds, ranks over tasks, and luck."""

from __future__ import annotations

import pytest

from lra.core.records import Record
from lra.report.assemble import assemble
from lra.report.plots_ranks import joined, ranks_figure
from lra.report.quality import quality_tables
from lra.report.select import join
from lra.report.standing import Standing, standing
from lra.report.style import looks
from lra.report.table import Cell
from lra.verdict.accuracy import Ranks

from .sample import baseline, quality

TASKS = ("listops", "text")


def trained(name: str, level: float, noise: float = 0.001, number: int = 3) -> list[Record]:
    return [
        quality(name, task, level + place * 0.1 + noise * (-1) ** seed * seed, seed=seed)
        for place, task in enumerate(TASKS)
        for seed in range(number)
    ]


def found(*records: Record) -> Standing | None:
    selection = join(list(records), [])
    (table,) = quality_tables(selection)
    return standing(table, selection)


def cells(one: Standing | None) -> dict[str, dict[str, Cell]]:
    assert one is not None
    table = one.table
    return {row.label: dict(zip(table.columns, row.cells, strict=True)) for row in table.rows}


def everything() -> list[Record]:
    return [
        *trained("sdpa", 0.80),
        *trained("performer", 0.70, 0.002),
        *trained("linear", 0.70, 0.004),
        *trained("identity", 0.50),
        *(baseline(task, majority=0.5) for task in TASKS),
    ]


def test_differences_have_their_interval_and_a_probability_for_the_whole_column() -> None:
    rows = cells(found(*everything()))
    performer = rows["performer"]
    against = performer["against sdpa"]
    assert against.value == pytest.approx(-0.1, abs=0.002) and against.strong
    assert against.text == "-10.0" and against.note.endswith("p < 0.001")
    assert rows["sdpa"]["against sdpa"].text == "n/a"
    assert rows["identity"]["against no mixing"].text == "n/a"
    # performer and linear are alike; both are below one and above one other.
    assert (performer["above, below"].text, performer["above, below"].note) == ("1, 1", "of 3")
    assert rows["linear"]["above, below"].text == "1, 1"
    assert rows["sdpa"]["above, below"].text == "3, 0"
    assert rows["identity"]["above, below"].text == "0, 3"


def test_the_answer_says_who_leads_and_who_is_not_told_apart() -> None:
    one = found(*everything())
    assert one is not None and one.leading == (
        "Of 4 rows with several seeds sdpa is more accurate than all others (paired tests over "
        "seeds, Holm)."
    )
    alike = found(
        *trained("sdpa", 0.8, 0.01), *trained("full", 0.79, 0.02), *trained("identity", 0.5)
    )
    assert alike is not None and alike.leading == (
        "Of 3 rows with several seeds sdpa is not told apart from full; it is above the others "
        "(paired tests over seeds, Holm)."
    )
    report, _ = assemble(join(everything(), []), "t")
    assert one.leading in report.answer
    single = found(*trained("sdpa", 0.8, number=1), *trained("identity", 0.5, number=1))
    assert single is not None and single.leading == ""


def test_rows_go_from_the_best_and_ranks_are_over_tasks() -> None:
    one = found(*everything())
    assert one is not None and one.ranks is not None
    assert list(cells(one)) == ["sdpa", "linear", "performer", "identity", "the same, another seed"]
    assert [row.label for row in one.rows][::3] == ["sdpa", "identity"]
    assert cells(one)["sdpa"]["average rank"].text == "1.0"
    assert cells(one)["identity"]["average rank"].text == "4.0"


def test_seeds_of_one_mechanism_say_what_a_difference_of_two_seeds_is_worth() -> None:
    twice = cells(found(*trained("sdpa", 0.8, 0.01), *trained("identity", 0.5, 0.01)))
    # Seeds lie at 0, -1 and +2 points: 1, 2 and 3 points from each other, on every task.
    cell = twice["the same, another seed"]["against sdpa"]
    assert (cell.text, cell.note) == ("±2.0", "at most 3.0")


def test_one_seed_has_a_difference_and_no_test() -> None:
    one = found(*trained("sdpa", 0.8, number=1), *trained("identity", 0.5, number=1))
    rows = cells(one)
    assert (rows["sdpa"]["against no mixing"].text, rows["sdpa"]["against no mixing"].note) == (
        "+30.0",
        "one seed",
    )
    assert not rows["sdpa"]["against no mixing"].strong
    assert "above, below" not in rows["sdpa"] and "average rank" not in rows["sdpa"]
    assert "the same, another seed" not in rows


def test_luck_is_counted_by_training() -> None:
    records = [
        *trained("sdpa", 0.8),
        # Of 2000 rows; guessing at one half reaches 52.6 % by luck, at 40 % 42.6 %.
        *(quality("linear", task, 0.51, seed=seed) for task in TASKS for seed in range(3)),
        baseline("listops", majority=0.4),
        baseline("text", majority=0.5),
    ]
    rows = cells(found(*records))
    assert rows["sdpa"]["beyond luck"].text == "6 of 6"
    assert rows["linear"]["beyond luck"].text == "3 of 6"


def test_only_rows_with_all_tasks_are_judged() -> None:
    one = found(*everything(), quality("full", "text", 0.9), quality("lstm", "text", status="oom"))
    assert "full" not in cells(one) and "lstm" not in cells(one)
    assert found(*trained("sdpa", 0.8), quality("full", "text", 0.9)) is None


def test_the_report_has_the_table_and_the_diagram() -> None:
    report, _ = assemble(join(everything(), []), "t")
    (section,) = (one for one in report.sections if one.id == "quality")
    assert [table.id for table in section.tables] == ["quality-1", "standing-1"]
    assert [figure.id for figure in section.figures] == ["quality-1", "ranks-1", "learning-1"]
    svg = section.figures[1].svg
    assert all(name in svg for name in ("sdpa", "performer", "identity", "CD "))


def test_no_diagram_of_two_mechanisms() -> None:
    one = found(*trained("sdpa", 0.8), *trained("identity", 0.5))
    assert one is not None and one.ranks is None and ranks_figure(one, looks([])) is None


def test_bars_join_the_largest_groups_that_are_not_told_apart() -> None:
    average = {"a": 1.0, "b": 1.5, "c": 3.0, "d": 5.0}
    assert joined(Ranks(average, critical=2.0, p=0.01, tasks=9)) == [(1.0, 3.0), (3.0, 5.0)]
    assert joined(Ranks(average, critical=0.4, p=0.01, tasks=9)) == []
    # Friedman sees nothing: all are one group.
    assert joined(Ranks(average, critical=0.4, p=0.5, tasks=9)) == [(1.0, 5.0)]
