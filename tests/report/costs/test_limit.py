"""The share of the machine's limit, and the tables of decoding."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from lra.report.costs.tables import EfficiencyTables, efficiency_tables
from lra.report.select import join
from lra.report.table import Cell

from lra.core.records import Metric, Record
from report.sample import GPU, THERE, ceiling, efficiency, with_metrics


def _tables(*records: Record, reference: list[Record] | None = None) -> EfficiencyTables:
    (tables,) = efficiency_tables(join(list(records), reference or []))
    return tables


def _counted(name: str, length: int, operations: float, moved: float, **more: object) -> Record:
    made = efficiency(name, length, **more)  # type: ignore[arg-type]
    return with_metrics(made, operations=operations, minimum_bytes=moved)


def test_the_share_is_the_least_time_over_the_median_and_says_which_limit() -> None:
    # 1e11 operations and 1e10 bytes a second; a call takes 10 ms.
    (table,) = _tables(
        ceiling(),
        _counted("linear", 512, operations=5e8, moved=2e7),
        _counted("linear", 1024, operations=5e8, moved=9e7),
        _counted("sdpa", 512, operations=1e9, moved=0.0),
        efficiency("sdpa", 1024, status="oom"),
        efficiency("identity", 512),
    ).limit.values()
    cells = {row.label: row.cells for row in table.rows}
    assert cells["linear"][0].value == pytest.approx(0.5)
    assert table.caption.endswith("over the median time; then which of the two is the limit.")
    assert (cells["linear"][0].text, cells["linear"][0].note) == ("50", "operations")
    assert (cells["linear"][1].text, cells["linear"][1].note) == ("90", "bytes")
    assert cells["sdpa"][0].value == pytest.approx(1.0)
    assert cells["sdpa"][1] == Cell("OOM")
    assert cells["identity"] == (Cell("not counted"), Cell("not run"))
    assert "100 billion operations" in table.notes[0] and "10 GB" in table.notes[0]


def test_a_ceiling_holds_for_its_machine_and_dtype_alone_and_the_highest_counts() -> None:
    timed = _counted("linear", 512, operations=5e8, moved=0.0)
    for other in (ceiling(machine=THERE), ceiling(machine=GPU), ceiling(dtype="bfloat16")):
        assert _tables(other, timed).limit == {}
    (table,) = _tables(
        ceiling(started="2026-11-21"), timed, reference=[ceiling(2e11)]
    ).limit.values()
    assert table.rows[0].cells[0].value == pytest.approx(0.25)
    assert not any("Above 100" in note for note in table.notes)
    half = ceiling()
    del half.metrics["copy_rate"]
    assert _tables(half, timed).limit == {}
    (table,) = _tables(ceiling(1e10), timed).limit.values()
    assert table.rows[0].cells[0].value == pytest.approx(5.0)
    assert any("Above 100" in note for note in table.notes)


def test_decoding_has_prompt_and_state_and_how_exact_it_is() -> None:
    def decoded(name: str, length: int, state: float, error: float) -> Record:
        made = efficiency(name, length, "decode", 1e-4, direction="causal")
        return with_metrics(made, prefill=0.02, state_bytes=state, decode_error=error)

    tables = _tables(
        decoded("linear", 512, 4e3, 2e-7),
        decoded("linear", 1024, 4e3, 4e-7),
        decoded("sdpa", 512, 1e6, 1e-8),
        decoded("sdpa", 1024, 2e6, 3e-8),
    )
    prompt, state = tables.prefill["decode"], tables.state["decode"]
    assert prompt.title == "Time to take in the prompt, in ms"
    assert prompt.rows[0].cells[0].text == "20.0"
    assert state.title.startswith("State kept after the prompt, in ")
    linear, exact = state.rows
    assert [cell.ratio for cell in linear.cells] == pytest.approx([0.004, 0.002])
    assert [cell.value for cell in exact.cells] == [1e6, 2e6]
    (sentence,) = tables.exactness
    assert "4e-07" in sentence and "(linear after 1024 positions)" in sentence
    assert tables.latency["decode"].title == "Time of a decoding step, in µs"


def test_a_decoding_cell_that_failed_says_how_in_every_table_of_decoding() -> None:
    def decoded(name: str, length: int, **fields: Any) -> Record:
        made = efficiency(name, length, "decode", 1e-4, direction="causal", **fields)
        return made if fields else with_metrics(made, prefill=0.02, state_bytes=1e3 * length)

    tables = _tables(
        *(decoded(name, n) for name in ("linear", "sdpa") for n in (512, 1024)),
        decoded("linear", 2048),
        decoded("sdpa", 2048, status="oom"),
        *(decoded("bigbird", n, status="unsupported") for n in (512, 1024, 2048)),
    )
    for table in (tables.prefill["decode"], tables.state["decode"]):
        cells = {row.label: row.cells for row in table.rows}
        assert cells["sdpa"][2] == Cell("OOM")
        assert cells["bigbird"] == (Cell("unsupported"),) * 3
        assert "n/a: no ratio, because sdpa has no figure at 2048 (OOM)." in table.notes


def test_a_step_whose_difference_is_no_number_is_named() -> None:
    def decoded(name: str, length: int, error: float | None) -> Record:
        made = efficiency(name, length, "decode", 1e-4, direction="causal")
        metrics = {**made.metrics, "decode_error": Metric(value=error, unit="ratio")}
        return msgspec.structs.replace(made, metrics=metrics)

    # A record has null for what is not finite.
    lost = [decoded("linear", 512, None), decoded("linear", 1024, None)]
    said = (
        "Of these steps the difference from the parallel form is not finite: linear after "
        "512 and 1024 positions."
    )
    assert _tables(*lost).exactness == (said,)
    first, second = _tables(*lost, decoded("sdpa", 512, 1e-7)).exactness
    assert "1e-07" in first and second == said


def test_without_decoding_and_without_ceilings_there_is_neither() -> None:
    tables = _tables(efficiency("linear", 512))
    assert tables.limit == tables.prefill == tables.state == {} and tables.exactness == ()


def test_of_replicates_the_median_counts_and_a_busy_one_is_marked() -> None:
    def timed(replicate: int, seconds: float) -> Record:
        return _counted("linear", 512, 5e8, 0.0, seconds=seconds, replicate=replicate)

    (table,) = _tables(ceiling(), timed(0, 0.04), timed(1, 0.01), timed(2, 0.02)).limit.values()
    assert table.rows[0].cells[0].value == pytest.approx(0.25)
    failed = efficiency("linear", 512, status="crash", replicate=3)
    (table,) = _tables(ceiling(), timed(0, 0.01), failed).limit.values()
    (cell,) = table.rows[0].cells
    assert cell.value == pytest.approx(0.5)
    assert cell.note == "operations; 1 of 2; crash (SIGSEGV)"
    assert any(note.startswith("1 of 2: ") for note in table.notes)


def test_where_bytes_are_not_known_the_limit_is_of_operations_alone() -> None:
    def model(**counted: float) -> Record:
        made = efficiency("linear", 512, "train", level="model", task="text")
        return with_metrics(made, operations=5e8, **counted)

    (table,) = _tables(ceiling(), model()).limit.values()
    assert table.rows[0].cells[0].note == "operations alone"
    assert any(note.startswith("Operations alone: ") for note in table.notes)
    (table,) = _tables(ceiling(), model(minimum_bytes=9e7)).limit.values()
    assert table.rows[0].cells[0].note == "bytes"
    assert not any(note.startswith("Operations alone: ") for note in table.notes)
