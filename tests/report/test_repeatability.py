"""Ratios to the control over processes, and how wide their intervals are."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lra.core.records import Metric, Record
from lra.report.model import Section
from lra.report.sections import repeatability
from report.sample import efficiency
from report.sweeps import OLD, analysed, tables, titles, value


def timed(
    name: str,
    length: int,
    replicate: int,
    seconds: float,
    control: tuple[float, float] = (1e-3, 1e-3),
    mode: str = "forward",
    **fields: Any,
) -> Record:
    record = efficiency(name, length, mode, seconds, replicate=replicate, **fields)
    controls = {
        metric: Metric(value=value, unit="s")
        for metric, value in zip(("control_before", "control_after"), control, strict=True)
    }
    return msgspec.structs.replace(record, metrics={**record.metrics, **controls})


def section(records: list[Record], reference: list[Record] | None = None) -> Section:
    (found,) = repeatability.sections(analysed(records, reference or []))
    return found


def test_a_place_has_the_geometric_mean_over_processes_and_its_interval() -> None:
    seconds = {0: 9e-3, 1: 10e-3, 2: 11e-3}
    (table,) = section([timed("linear", 1024, r, s) for r, s in seconds.items()]).tables
    assert table.title == "Ratio of a forward pass to the control"
    (only,) = table.rows[0].values
    assert only.number == pytest.approx((9 * 10 * 11) ** (1 / 3))
    # By hand: the logarithms' standard deviation is 0.1004, t of two degrees of freedom 4.303; half
    # the interval is exp(0.2494) - 1.
    assert (only.text, only.note) == ("10.0", "±28%")


def test_a_spell_that_slows_the_control_too_is_no_spread() -> None:
    found = section(
        [timed("linear", 1024, r, s * 9e-3, (s * 1e-3,) * 2) for r, s in enumerate((1, 3, 2))]
    )
    assert found.tables[0].rows[0].values[0].number == pytest.approx(9.0)
    assert "are 0.0 % wide (median)" in found.text[0] and "busy in 2 of 3" in found.text[0]


def test_the_control_of_a_process_is_both_of_its_timings() -> None:
    found = section([timed("linear", 1024, r, 6e-3, (1e-3, 1.44e-3)) for r in range(2)])
    assert found.tables[0].rows[0].values[0].number == pytest.approx(5.0)


def test_width_is_of_1024_positions_and_more_and_told_by_mode() -> None:
    wide = [timed("linear", 512, r, s) for r, s in enumerate((1e-3, 9e-3))]
    narrow = [timed("linear", n, r, 5e-3) for n in (1024, 1500, 2048) for r in range(3)]
    train = [timed("linear", 512, r, 5e-3, mode="train") for r in range(2)]
    found = section([*wide, *narrow, *train])
    assert found.text == (
        "Training step: no cell has 1024 positions or more, from where on the width is stated; "
        "1 cell of 2 processes, the machine busy in 0 of 2.",
        "Forward pass: at lengths of 1024 and more the 95 % intervals of 3 cells are 0.0 % wide "
        "(median); 4 cells of 2 to 3 processes, the machine busy in 0 of 11.",
    )
    known = tables([found])
    assert known["repeatability-forward-1"].columns == ("1024", "2048")
    assert known["repeatability-train-1"].columns == ("512",)


def test_one_process_or_none_says_so() -> None:
    records = [timed("linear", 1024, r, 5e-3) for r in range(2)]
    records += [timed("linear", 2048, 0, 5e-3), timed("full", 1024, 0, 8e-3)]
    records.append(efficiency("full", 2048, "forward", status="oom"))
    (table,) = section(records).tables
    assert value(table, "linear", "2048").line == "5.00 (1 process)"
    assert (value(table, "full", "1024").text, value(table, "full", "2048").text) == ("8.00", "OOM")


def test_a_busy_process_marks_the_place() -> None:
    calm = [timed("linear", n, r, 5e-3) for n in (1024, 2048) for r in range(2)]
    (table,) = section([*calm, timed("linear", 1024, 2, 5e-3, (1e-3, 2e-3))]).tables
    assert [v.disturbed for v in table.rows[0].values] == [True, False]


def test_a_process_without_a_control_has_no_ratio() -> None:
    whole = [timed("linear", 1024, r, 5e-3) for r in range(2)]
    bare = efficiency("linear", 1024, "forward", 50e-3, replicate=2)
    metrics = {k: m for k, m in bare.metrics.items() if not k.startswith("control")}
    found = section([*whole, msgspec.structs.replace(bare, metrics=metrics)])
    assert found.tables[0].rows[0].values[0].number == pytest.approx(5.0)
    assert "1 cell of 2 processes" in found.text[0]


def test_without_replicates_there_is_no_section() -> None:
    assert repeatability.sections(analysed([timed("linear", 1024, 0, 5e-3)])) == []


def test_the_sentence_is_of_the_run_alone_and_the_table_has_the_reference_too() -> None:
    run = [timed("linear", 1024, r, 5e-3) for r in range(2)]
    reference = [
        timed("full", 1024, r, s, (c, c), started=OLD)
        for r, (s, c) in enumerate(((1e-3, 1e-3), (9e-3, 3e-3)))
    ]
    found = section(run, reference)
    assert titles(found.tables[0]) == ["linear", "full (reference)"]
    assert "1 cell of 2 processes, the machine busy in 0 of 2." in found.text[0]
    # One process each says nothing of the run.
    found = section(run[:1], reference)
    assert len(found.tables) == 1 and found.text == ()
