"""How sure differences of accuracy are: tests over seeds, ranks over tasks, and luck."""

from __future__ import annotations

import msgspec
import pytest
from lra.report.pictures.ranks import joined, ranks_figure
from lra.report.pictures.style import looks
from lra.report.quality.standing import Standing, standing
from lra.report.quality.tables import quality_tables
from lra.report.select import join
from lra.report.table import Cell

from lra.core.records import Record
from lra.report.assemble import assemble
from lra.verdict.accuracy import Ranks
from report.sample import THERE, baseline, quality

TASKS = ("listops", "text")
NOISE = ("the same mechanism twice", "the same, another seed")


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
    assert (performer["better, worse than"].text, performer["better, worse than"].note) == (
        "1, 1",
        "of 3",
    )
    assert rows["linear"]["better, worse than"].text == "1, 1"
    assert rows["sdpa"]["better, worse than"].text == "3, 0"
    assert rows["identity"]["better, worse than"].text == "0, 3"


def test_the_answer_says_who_leads_and_who_is_not_told_apart() -> None:
    one = found(*everything())
    assert one is not None
    assert (
        one.leading
        == "sdpa was tested against 3 rows: better than all (paired over seeds, Holm-corrected)."
    )
    both = (*trained("sdpa", 0.8, 0.01), *trained("full", 0.79, 0.02))
    alike = found(*both, *trained("identity", 0.5))
    assert alike is not None and alike.leading == (
        "sdpa was tested against 2 rows: not told apart from full, better than 1 other (paired "
        "over seeds, Holm-corrected)."
    )
    report, _ = assemble(join(everything(), []), "t")
    assert one.leading in report.answer
    single = found(*trained("sdpa", 0.8, number=1), *trained("identity", 0.5, number=1))
    assert single is not None and single.leading == ""


def test_who_leads_is_said_of_seeds_that_both_have() -> None:
    """More seeds of one, and better ones, make no lead where the shared ones say the opposite."""
    lucky = [quality("sdpa", task, 0.95, seed=s) for task in TASKS for s in (3, 4, 5)]
    one = found(
        *trained("sdpa", 0.60), *lucky, *trained("performer", 0.70), *trained("identity", 0.3)
    )
    assert one is not None and one.leading.startswith("performer was tested against 2 rows")
    assert one.leading.endswith("better than all (paired over seeds, Holm-corrected).")
    # Without a seed in common there is no test, and nothing is called alike.
    apart = found(
        *trained("sdpa", 0.8),
        *(quality("full", task, 0.9 + s / 999, seed=s) for task in TASKS for s in (5, 6)),
        *trained("identity", 0.5),
    )
    assert apart is not None and "full" not in apart.leading
    assert cells(apart)["full"]["against sdpa"].note == "no shared seed"


def test_no_test_compares_two_versions_of_the_trainer() -> None:
    later = [quality("linear", t, 0.7, seed=s, measure=2) for t in TASKS for s in range(3)]
    one = found(*trained("sdpa", 0.8), *trained("identity", 0.5), *later)
    assert one is not None
    rows = cells(one)
    assert (rows["linear"]["against sdpa"].text, rows["linear"]["against sdpa"].note) == (
        "n/a",
        "another version",
    )
    assert rows["sdpa"]["better, worse than"].note == "of 1"
    assert rows["linear"]["better, worse than"].text == "n/a"
    assert any("several versions of the measuring code (train)" in n for n in one.table.notes)


def test_features_that_only_some_rows_use_set_none_apart() -> None:
    def dropping(record: Record) -> Record:
        cell = msgspec.structs.replace(
            record.cell, versions={**record.cell.versions, "train/dropout": 1}
        )
        return msgspec.structs.replace(record, id=cell.id, cell=cell)

    one = found(*trained("sdpa", 0.8), *map(dropping, trained("linear", 0.7)))
    assert one is not None
    assert cells(one)["linear"]["against sdpa"].text == "-10.0"
    assert not any("versions of the measuring code" in note for note in one.table.notes)


def test_a_column_of_many_questions_asks_more_of_each() -> None:
    """Alone the difference counts, beside nine others it does not."""
    pair = (*trained("sdpa", 0.80, 0.010), *trained("linear", 0.77, 0.0))
    alone = cells(found(*pair))["linear"]["against sdpa"]
    others = [
        record
        for number in range(9)
        for record in trained(f"m{number}", 0.80 + number / 999, 0.02 + number / 99)
    ]
    among = cells(found(*pair, *others))["linear"]["against sdpa"]
    assert alone.strong and not among.strong
    assert float(among.note.split("p ")[1]) == pytest.approx(
        10 * float(alone.note.split("p ")[1]), rel=0.1
    )


def test_seeds_that_agree_by_chance_know_no_less_than_a_row() -> None:
    one_row = [quality("sdpa", t, 0.8005, seed=s) for t in TASKS for s in range(2)]
    other = [quality("linear", t, 0.8, seed=s) for t in TASKS for s in range(2)]
    cell = cells(found(*one_row, *other))["linear"]["against sdpa"]
    assert cell.text == "-0.1" or cell.text == "-0.0"
    assert not cell.strong


def test_the_runs_own_row_is_the_one_to_compare_with() -> None:
    own = [*trained("sdpa", 0.8), *trained("performer", 0.7)]
    before = "2026-11-19T10:00:00Z"
    elsewhere = [
        quality("sdpa", task, 0.9 + seed / 999, seed=seed, started=before, machine=THERE)
        for task in TASKS
        for seed in range(4)
    ]
    selection = join(own, elsewhere)
    (table,) = quality_tables(selection)
    stands = standing(table, selection)
    assert stands is not None
    by_title = {row.title: row.cells for row in stands.table.rows}
    assert by_title["sdpa"][1].text == "n/a"
    assert float(by_title["sdpa (reference)"][1].text) > 4


def test_rows_go_from_the_best_and_ranks_are_over_tasks() -> None:
    one = found(*everything())
    assert one is not None and one.ranks is not None
    assert list(cells(one)) == ["sdpa", "linear", "performer", "identity", *NOISE]
    assert [row.label for row in one.rows][::3] == ["sdpa", "identity"]
    assert cells(one)["sdpa"]["average rank"].text == "1.0"
    assert cells(one)["identity"]["average rank"].text == "4.0"
    (note,) = (note for note in one.table.notes if note.startswith("Average rank: over 2 tasks"))
    assert note.endswith(": with so few tasks, ranks say little about other tasks.")


def test_what_is_beyond_luck_is_said_in_words() -> None:
    one = found(*everything())
    assert one is not None
    assert (
        "Beyond luck: how many trainings are more accurate than always answering the test split's "
        "largest class is in 99 of 100 tests of as many rows."
    ) in one.table.notes


def test_seeds_of_one_mechanism_say_what_a_difference_of_two_seeds_is_worth() -> None:
    twice = cells(found(*trained("sdpa", 0.8, 0.01), *trained("identity", 0.5, 0.01)))
    # Seeds lie at 0, -1 and +2 points: 1, 2 and 3 points from each other, on every task.
    cell = twice["the same, another seed"]["against sdpa"]
    assert (cell.text, cell.note) == ("±2.0", "at most 3.0")


def test_the_same_mechanism_twice_is_judged_as_two_mechanisms_are() -> None:
    """The second two seeds of one, under the numbers of the first, as another mechanism."""
    again = [
        quality("full", record.cell.data.task, record.metrics["test_accuracy"].value, seed=seed - 2)  # type: ignore[union-attr]
        for record in trained("sdpa", 0.8, 0.01, number=4)
        if (seed := record.cell.seed) >= 2  # type: ignore[union-attr]
    ]
    both = (*trained("sdpa", 0.8, 0.01, number=2), *trained("identity", 0.5, 0.01, number=2))
    as_two = cells(found(*both, *again))["full"]["against sdpa"]
    whole = cells(found(*trained("sdpa", 0.8, 0.01, 4), *trained("identity", 0.5, 0.01, 4)))
    twice = whole["the same mechanism twice"]["against sdpa"]
    assert (twice.text, twice.note.split(", p")[0]) == (as_two.text, as_two.note.split(", p")[0])
    # Each stands in a column of two questions.
    assert twice.note == as_two.note and not twice.strong
    assert whole["the same mechanism twice"]["against no mixing"].note.startswith("-")
    few = cells(found(*trained("sdpa", 0.8, 0.01), *trained("identity", 0.5, 0.01)))
    assert few["the same mechanism twice"]["against sdpa"] == Cell(
        "-1.0", "one pair", few["the same mechanism twice"]["against sdpa"].value
    )


def test_one_seed_has_a_difference_and_no_test() -> None:
    one = found(*trained("sdpa", 0.8, number=1), *trained("identity", 0.5, number=1))
    rows = cells(one)
    assert (rows["sdpa"]["against no mixing"].text, rows["sdpa"]["against no mixing"].note) == (
        "+30.0",
        "one seed",
    )
    assert not rows["sdpa"]["against no mixing"].strong
    assert "better, worse than" not in rows["sdpa"] and "average rank" not in rows["sdpa"]
    assert not set(NOISE) & set(rows)


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


def test_luck_is_that_of_the_class_that_is_the_largest_where_it_is_tested() -> None:
    # Half of training and a little more is of one class, which is 40 % of the test.
    simple = baseline("text", majority=0.4)
    text = msgspec.structs.replace(simple, method={"largest class of the test split": 0.6})
    listops = baseline("listops", majority=0.4)
    guessing = [
        quality("linear", task, 0.6, seed=seed) for task in TASKS for seed in range(3)
    ]  # fmt: skip
    rows = cells(found(*trained("sdpa", 0.8), *guessing, listops, text))
    assert rows["linear"]["beyond luck"].text == "3 of 6"


def test_a_training_that_failed_did_not_beat_luck() -> None:
    records = [
        *trained("sdpa", 0.8), *trained("linear", 0.8, number=2),
        quality("linear", "text", status="diverged", seed=2),
        baseline("listops", majority=0.5), baseline("text", majority=0.5),
    ]  # fmt: skip
    cell = cells(found(*records))["linear"]["beyond luck"]
    assert (cell.text, cell.note) == ("4 of 5", "1 diverged")


def test_only_rows_with_all_tasks_are_judged() -> None:
    one = found(*everything(), quality("full", "text", 0.9), quality("lstm", "text", status="oom"))
    assert "full" not in cells(one) and "lstm" not in cells(one)
    assert found(*trained("sdpa", 0.8), quality("full", "text", 0.9)) is None


def test_the_report_has_the_table_and_the_diagram() -> None:
    report, _ = assemble(join(everything(), []), "t")
    (section,) = (one for one in report.sections if one.id == "quality")
    assert [table.id for table in section.tables] == ["quality-1", "interval-1", "standing-1"]
    assert [figure.id for figure in section.figures] == ["quality-1", "ranks-1"]
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
