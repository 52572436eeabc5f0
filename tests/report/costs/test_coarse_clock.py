"""A clock that is too coarse for a call finds 0 s: no figure, and nothing is divided by it."""

from __future__ import annotations

import pytest
from lra.report.select import Selection, join

from lra.core.records import Record
from lra.report.assemble import assemble
from report.sample import ceiling, efficiency, with_metrics

LENGTHS = (1000, 2000, 3000, 4000)


def selection(coarse: str) -> Selection:
    """Both mechanisms at four lengths, one of them with times of 0 s at all but the longest."""

    def timed(name: str, length: int, **more: str) -> Record:
        seconds = 0.0 if name == coarse and length < LENGTHS[-1] else 0.01
        made = efficiency(name, length, "train", seconds, batch=2, **more)
        return with_metrics(made, operations=1e8, minimum_bytes=1e6)

    model = {"level": "model", "task": "text", "scale": "paper"}
    return join(
        [
            ceiling(),
            *(timed(name, n, **more) for name in ("sdpa", "linear") for n in LENGTHS
              for more in ({}, model)),
        ],
        [],
    )  # fmt: skip


@pytest.mark.parametrize("coarse", ["sdpa", "linear"])
@pytest.mark.parametrize("noun", ["latency-train", "limit-train", "table-2-speed", "crossover"])
def test_such_a_time_is_no_figure_in_any_table(coarse: str, noun: str) -> None:
    report, _ = assemble(selection(coarse), "mine")
    tables = [t for s in report.sections for t in s.tables if t.id.startswith(f"{noun}-")]
    assert tables
    for table in tables:
        rows = {row.label: row.cells for row in table.rows}
        if noun == "crossover":
            assert "not measured" in rows["linear"][0].note
        else:
            assert [cell.text for cell in rows[coarse][:-1]] == ["not measured"] * 3
            assert rows[coarse][-1].value is not None


def test_the_table_says_why() -> None:
    report, _ = assemble(selection("linear"), "mine")
    (table,) = (t for s in report.sections for t in s.tables if t.id == "latency-train-1")
    assert "latency: not measured (0 s by a clock that is too coarse)." in table.notes
