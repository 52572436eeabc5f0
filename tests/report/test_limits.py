"""The share of the machine's limit, and declared operations beside counted ones."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lra.core.records import Metric, Record
from lra.report.model import Section, Table, Value
from lra.report.sections import limit
from lra.report.sections.operations import agreement, declared_operations
from lra.report.words import TIMES
from report.sample import GPU, THERE, ceiling, efficiency, with_metrics
from report.sweeps import OLD, analysed, tables, texts, value


def sections(*records: Record, reference: Any = ()) -> list[Section]:
    return limit.sections(analysed(records, reference))


def shares(*records: Record, reference: Any = ()) -> Table:
    return tables(sections(*records, reference=reference))["limit-1"]


def counted(name: str, length: int, operations: float, moved: float, **more: Any) -> Record:
    made = efficiency(name, length, **more)
    return with_metrics(made, operations=operations, minimum_bytes=moved)


def test_the_share_is_the_least_time_over_the_median_and_says_which_limit() -> None:
    # 1e11 operations and 1e10 bytes a second; a call takes 10 ms.
    table = shares(
        ceiling(),
        counted("linear", 512, operations=5e8, moved=2e7),
        counted("linear", 1024, operations=5e8, moved=9e7),
        counted("sdpa", 512, operations=1e9, moved=0.0),
        efficiency("sdpa", 1024, status="oom"),
        efficiency("identity", 512),
        efficiency("lost", 512, status="oom"),
    )
    found = {row.label: row.values[0] for row in table.rows}
    assert found["linear"] == Value("90", "bytes", pytest.approx(0.9))
    # At the longest length that it has.
    assert found["sdpa"] == Value("100", "at 512", pytest.approx(1.0))
    assert (found["identity"], found["lost"]) == (Value("not counted"), Value("OOM"))


def test_a_ceiling_holds_for_its_machine_and_dtype_alone_and_the_highest_counts() -> None:
    timed = counted("linear", 512, operations=5e8, moved=0.0)
    for other in (ceiling(machine=THERE), ceiling(machine=GPU), ceiling(dtype="bfloat16")):
        assert sections(other, timed) == []
    table = shares(ceiling(started="2026-11-21"), timed, reference=[ceiling(2e11)])
    assert value(table, "linear", "forward pass").number == pytest.approx(0.25)
    half = ceiling()
    del half.metrics["copy_rate"]
    assert sections(half, timed) == []
    (section,) = sections(ceiling(1e10), timed)
    assert value(section.tables[0], "linear", "forward pass").number == pytest.approx(5.0)
    assert "Above 100" in section.tables[0].legend[0]


def test_of_replicates_the_median_counts_and_bytes_may_be_unknown() -> None:
    def timed(replicate: int, seconds: float) -> Record:
        return counted("linear", 512, 5e8, 0.0, seconds=seconds, replicate=replicate)

    table = shares(ceiling(), timed(0, 0.04), timed(1, 0.01), timed(2, 0.02))
    assert value(table, "linear", "forward pass").number == pytest.approx(0.25)
    made = efficiency("linear", 512, "train", level="model", task="text")
    (section,) = sections(ceiling(), with_metrics(made, operations=5e8))
    assert "bytes of these calls are not known" in section.text[2]


def test_each_mode_is_a_column_and_the_dots_are_of_the_longest_length_best_first() -> None:
    def shared(name: str, length: int, share: float, mode: str = "forward") -> Record:
        # At 1e11 operations a second a call of 10 ms could do 1e9.
        return with_metrics(efficiency(name, length, mode), operations=1e9 * share)

    (section,) = sections(
        ceiling(),
        *(shared("linear", n, 0.2) for n in (512, 1024)),
        *(shared("sdpa", n, share) for n, share in ((512, 0.1), (1024, 0.6))),
        shared("short", 512, 0.9),
        shared("linear", 1024, 0.7, "train"),
        shared("sdpa", 1024, 0.3, "train"),
    )
    (table,), (figure,) = section.tables, section.figures
    assert table.columns == ("training step", "forward pass")
    assert value(table, "short", "forward pass").note == "at 512"
    assert value(table, "short", "training step") == Value("")
    written = texts(figure)
    assert [t for t in written if t in ("linear", "sdpa", "short")] == ["linear", "sdpa"]
    assert {"forward pass", "training step"} <= set(written)
    assert "forward pass: sdpa 60 %" in figure.alt


def said(name: str, length: int, declared: float, operations: float, **fields: Any) -> Record:
    made = efficiency(name, length, **fields)
    return with_metrics(made, operations=operations, declared_operations=declared)


def silent(name: str, length: int) -> Record:
    made = with_metrics(efficiency(name, length), operations=1e6)
    null = Metric(value=None, unit="count", why_null="declares no operations")
    return msgspec.structs.replace(made, metrics={**made.metrics, "declared_operations": null})


def operations(*records: Record, reference: Any = ()) -> Any:
    costs = analysed(records, reference).costs
    return declared_operations(costs, costs.settings[0].id)


def test_formulas_that_agree_make_a_sentence_and_no_table() -> None:
    records = said("linear", 512, 1e6, 1e6), said("sdpa", 512, 2e6, 2.001e6)
    (section,) = sections(*records)
    assert section.tables == () and "all 2 compared" in section.text[0]


def test_what_differs_has_a_row_with_the_multiple() -> None:
    found = sections(
        said("linear", 512, 1e6, 1e6),
        said("linear", 1024, 1.25e6, 1e6),
        said("sdpa", 512, 2e6, 2e6),
        said("sdpa", 1024, 2e6, 2e6),
    )
    (row,) = tables(found)["declared-1"].rows
    assert (row.label, row.values) == (
        "linear",
        (Value(f"1.000{TIMES}", number=1.0), Value(f"1.250{TIMES}", number=1.25)),
    )
    assert any("1 of 2" in text for text in found[0].text)


def test_what_is_not_counted_or_not_declared_is_named_and_not_compared() -> None:
    records = said("linear", 512, 1e6, 1e6), said("lstm", 512, 1e6, 0.0), silent("mine", 512)
    (sentence,) = agreement(operations(*records))
    assert "all 1 compared" in sentence
    assert "no product: lstm." in sentence and "declared by mine." in sentence


def test_records_that_declare_nothing_and_other_modes_say_nothing() -> None:
    old = with_metrics(efficiency("linear", 512), operations=1e6)
    assert operations(old).empty and sections(old) == []
    assert operations(said("linear", 512, 1e6, 9e6, mode="train")).empty


def test_a_cell_measured_again_is_compared_with_its_own_count() -> None:
    """It has the id of the committed one."""
    run = [said("linear", 512, 1e6, 1e6), said("sdpa", 1024, 2e6, 2e6)]
    old = [said("linear", n, 3e6, 2e6, started=OLD) for n in (512, 1024)]
    assert run[0].id == old[0].id
    found = tables(sections(*run, reference=old))["declared-1"]
    ratios = {row.title: row.values[0].number for row in found.rows}
    assert ratios == pytest.approx({"linear": 1.0, "linear (reference)": 1.5})


def test_both_stand_in_one_section() -> None:
    (section,) = sections(ceiling(), said("linear", 512, 2e6, 1e6), said("sdpa", 512, 1e6, 1e6))
    assert [table.id for table in section.tables] == ["limit-1", "declared-1"]
    assert len(section.figures) == 1
