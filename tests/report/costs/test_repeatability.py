"""Ratios to the control over processes, and how wide their intervals are."""

from __future__ import annotations

import msgspec
import pytest
from lra.report.costs.repeatability import RepeatTables
from lra.report.costs.tables import efficiency_tables
from lra.report.select import Selection, join

from lra.core.records import Metric, Record
from lra.report.assemble import assemble
from report.sample import efficiency


def timed(
    name: str,
    length: int,
    replicate: int,
    seconds: float,
    control: tuple[float, float] = (1e-3, 1e-3),
    mode: str = "forward",
) -> Record:
    record = efficiency(name, length, mode, seconds, replicate=replicate)
    controls = {
        metric: Metric(value=value, unit="s")
        for metric, value in zip(("control_before", "control_after"), control, strict=True)
    }
    return msgspec.structs.replace(record, metrics={**record.metrics, **controls})


def _found(records: list[Record], selection: Selection | None = None) -> RepeatTables:
    (tables,) = efficiency_tables(selection or join(records, []))
    return tables.repeatability


def test_a_place_has_the_geometric_mean_over_processes_and_its_interval() -> None:
    seconds = {0: 9e-3, 1: 10e-3, 2: 11e-3}
    (table,) = _found([timed("linear", 1024, r, s) for r, s in seconds.items()]).tables
    assert table.title == "Ratio of a forward pass to the control"
    (only,) = table.rows[0].cells
    assert only.value == pytest.approx((9 * 10 * 11) ** (1 / 3))
    # By hand: the logarithms' standard deviation is 0.1004, t of two degrees of freedom 4.303.
    assert (only.text, only.note) == ("10.0", "7.8 to 13")


def test_a_spell_that_slows_the_control_too_is_no_spread() -> None:
    records = [timed("linear", 1024, r, s * 9e-3, (s * 1e-3,) * 2) for r, s in enumerate((1, 3, 2))]
    found = _found(records)
    assert found.tables[0].rows[0].cells[0].value == pytest.approx(9.0)
    assert "are 0.0 % wide (median)" in found.text[0]
    assert "busy in 2 of 3" in found.text[0]


def test_the_control_of_a_process_is_both_of_its_timings() -> None:
    records = [timed("linear", 1024, r, 6e-3, (1e-3, 1.44e-3)) for r in range(2)]
    assert _found(records).tables[0].rows[0].cells[0].value == pytest.approx(5.0)


def test_width_is_of_1024_positions_and_more_and_told_by_mode() -> None:
    wide = [timed("linear", 512, r, s) for r, s in enumerate((1e-3, 9e-3))]
    narrow = [timed("linear", n, r, 5e-3) for n in (1024, 2048) for r in range(3)]
    train = [timed("linear", 512, r, 5e-3, mode="train") for r in range(2)]
    found = _found([*wide, *narrow, *train])
    assert found.text == (
        "Forward: at lengths of 1024 and more the 95 % intervals of 2 cells are 0.0 % wide "
        "(median); 3 cells of 2 to 3 processes, the machine busy in 0 of 8.",
        "Train: no cell has 1024 positions or more, from where on the width is stated; "
        "1 cell of 2 processes, the machine busy in 0 of 2.",
    )
    assert [table.id for table in found.tables] == [
        "repeatability-forward-1",
        "repeatability-train-1",
    ]


def test_what_has_one_process_or_none_says_so() -> None:
    records = [timed("linear", 1024, r, 5e-3) for r in range(2)]
    records += [timed("linear", 2048, 0, 5e-3), timed("full", 1024, 0, 8e-3)]
    records.append(efficiency("full", 2048, "forward", status="oom"))
    (table,) = _found(records).tables
    cells = {row.label: row.cells for row in table.rows}
    assert (cells["linear"][1].text, cells["linear"][1].note) == ("5.00", "1 process")
    assert (cells["full"][0].text, cells["full"][1].text) == ("8.00", "OOM")


def test_a_busy_process_marks_the_place() -> None:
    calm = [timed("linear", n, r, 5e-3) for n in (1024, 2048) for r in range(2)]
    busy = timed("linear", 1024, 2, 5e-3, (1e-3, 2e-3))
    (table,) = _found([*calm, busy]).tables
    first, second = table.rows[0].cells
    assert first.busy and not second.busy
    assert table.notes[0].startswith("!: the machine was busy in one of the processes")


def test_a_process_without_a_control_has_no_ratio() -> None:
    whole = [timed("linear", 1024, r, 5e-3) for r in range(2)]
    bare = efficiency("linear", 1024, "forward", 50e-3, replicate=2)
    metrics = {k: m for k, m in bare.metrics.items() if not k.startswith("control")}
    found = _found([*whole, msgspec.structs.replace(bare, metrics=metrics)])
    assert found.tables[0].rows[0].cells[0].value == pytest.approx(5.0)
    assert "1 cell of 2 processes" in found.text[0]


def test_without_replicates_there_is_no_section_and_with_them_there_is() -> None:
    single = [timed("linear", 1024, 0, 5e-3)]
    assert _found(single) == RepeatTables()
    for records, there in ((single, False), ([*single, timed("linear", 1024, 1, 5e-3)], True)):
        report, _ = assemble(join(records, []), "sweep")
        assert ("repeatability" in [section.id for section in report.sections]) is there


def test_the_sentence_is_of_the_run_alone_and_the_table_has_the_reference_too() -> None:
    def committed(name: str, seconds: float, control: float, replicate: int) -> Record:
        made = timed(name, 1024, replicate, seconds, (control, control))
        return msgspec.structs.replace(made, started_at="2026-11-01T00:00:00Z")

    run = [timed("linear", 1024, r, 5e-3) for r in range(2)]
    reference = [
        committed("full", s, c, r) for r, (s, c) in enumerate(((1e-3, 1e-3), (9e-3, 3e-3)))
    ]
    found = _found(run, join(run, reference))
    assert [row.title for row in found.tables[0].rows] == ["linear", "full (reference)"]
    assert found.text == (
        "Forward: at lengths of 1024 and more the 95 % intervals of 1 cell are 0.0 % wide "
        "(median); 1 cell of 2 processes, the machine busy in 0 of 2.",
    )
    # Of one process each nothing is said of the run.
    found = _found(run[:1], join(run[:1], reference))
    assert len(found.tables) == 1 and found.text == ()
