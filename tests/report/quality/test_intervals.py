"""The interval of each accuracy over seeds."""

from __future__ import annotations

import pytest
from lra.report.quality.intervals import interval_table
from lra.report.quality.standing import standing
from lra.report.quality.tables import quality_tables
from lra.report.select import join
from lra.report.table import Cell, Table
from scipy import stats

from lra.core.records import Record
from report.sample import quality

LEVELS = (0.70, 0.74, 0.69)


def made(*records: Record) -> Table | None:
    selection = join(list(records), [])
    (table,) = quality_tables(selection)
    return interval_table(table, selection)


def trained(name: str, task: str, more: float = 0.0, number: int = 3) -> list[Record]:
    return [quality(name, task, one + more, seed=n) for n, one in enumerate(LEVELS[:number])]


def cells(table: Table | None, label: str) -> dict[str, Cell]:
    assert table is not None
    (row,) = (row for row in table.rows if row.label == label)
    return dict(zip(table.columns, row.cells, strict=True))


def test_each_task_and_their_mean_have_students_interval() -> None:
    both = (*trained("sdpa", "listops"), *trained("sdpa", "text", 0.1))
    found = cells(made(*both), "sdpa")
    low, high = stats.t.interval(0.95, 2, loc=0.71, scale=stats.sem(LEVELS))
    assert (found["listops"].text, found["listops"].note) == (
        f"{100 * low:.0f} to {100 * high:.0f}", "n 3"
    )  # fmt: skip
    assert found["listops"].spread == pytest.approx(high - low)
    assert found["mean of 2"].value == pytest.approx(0.76)
    assert found["mean of 2"].spread == pytest.approx(high - low)


def test_seeds_that_agree_closer_than_a_row_know_no_less_in_the_mean_too() -> None:
    rows = [quality("sdpa", t, 0.7, seed=n) for t in ("listops", "text") for n in range(3)]
    found = cells(made(*rows), "sdpa")
    for column, grain in (("listops", 1 / 2000), ("mean of 2", 1 / 4000)):
        margin = stats.t.ppf(0.975, 2) * grain / 3**0.5
        assert found[column].spread == pytest.approx(2 * margin)
        low, high = 100 * (0.7 - margin), 100 * (0.7 + margin)
        assert found[column].text == f"{low:.1f} to {high:.1f}"


def test_an_interval_is_called_one_and_not_a_probability() -> None:
    table = made(*trained("sdpa", "listops"))
    assert table is not None and "the 95 % interval of the mean" in table.caption


def test_what_has_no_interval_is_a_word() -> None:
    records = [
        *trained("sdpa", "listops"), *trained("sdpa", "text", number=1),
        *trained("linear", "listops"), *(quality("linear", "text", status="oom", seed=n) for n in
        range(3)), *trained("lstm", "listops"), *trained("full", "listops", number=1),
        quality("full", "text", 0.7),
    ]  # fmt: skip
    table = made(*records)
    assert (cells(table, "sdpa")["text"].text, cells(table, "sdpa")["text"].note) == (
        "n/a",
        "one seed",
    )
    assert cells(table, "sdpa")["mean of 2"].text == "n/a"
    assert cells(table, "linear")["text"].text == "OOM"
    assert cells(table, "lstm")["text"].text == "not run"
    assert table is not None and "full" not in {row.label for row in table.rows}


def test_seeds_that_diverged_leave_the_interval_of_the_others() -> None:
    records = [*trained("sdpa", "listops"), quality("sdpa", "listops", status="diverged", seed=3)]
    assert cells(made(*records), "sdpa")["listops"].note == "n 3"


@pytest.mark.parametrize("status", ["oom", "diverged", "unsupported"])
def test_where_nothing_was_trained_there_is_neither_interval_nor_test(status: str) -> None:
    records = [
        quality(name, "listops", status=status, seed=n)
        for name in ("sdpa", "linear", "identity")
        for n in range(3)
    ]
    assert made(*records) is None
    selection = join(records, [])
    (table,) = quality_tables(selection)
    assert standing(table, selection) is None
    assert made(*trained("sdpa", "listops", number=1)) is None


def test_seeds_that_tie_are_no_best_of_their_own() -> None:
    """Two seeds that agree to the last row are not without error."""
    records = [
        quality(name, "listops", level, seed=n)
        for name, level in (("sdpa", 0.7005), ("linear", 0.7000))
        for n in range(2)
    ]
    (table,) = quality_tables(join(records, []))
    assert not any(cell.strong for row in table.table.rows for cell in row.cells)
