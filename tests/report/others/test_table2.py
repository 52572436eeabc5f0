"""LRA's Table 2: measured ratios, with the published ones below and nowhere else."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from lra.report.costs.tables import efficiency_tables
from lra.report.others.table2 import table2_sections
from lra.report.select import join
from lra.report.table import Section

from lra.core.records import Record
from lra.core.scales import load_scale
from lra.report.assemble import assemble
from lra.report.words import TIMES
from report.sample import GPU, efficiency, with_metrics


def step(name: str, length: int, seconds: float | None = 1.0, **more: Any) -> Record:
    """A training step of the text model."""
    sizes = {"level": "model", "task": "text", "batch": 2}
    return efficiency(name, length, "train", seconds, **{"scale": "paper", **sizes, **more})


def sections(*records: Record) -> list[Section]:
    selection = join(list(records), [])
    return table2_sections(efficiency_tables(selection), selection.busy)


def test_a_cell_is_the_measured_ratio_with_the_published_one_below() -> None:
    (section,) = sections(
        *(step("sdpa", 1000, 2.0 * slow, replicate=r) for r, slow in enumerate((1, 3))),
        *(step("performer", 1000, 0.5 * slow, replicate=r) for r, slow in enumerate((1, 3))),
        *(step("identity", 1000, 0.25 * slow, replicate=r) for r, slow in enumerate((1, 3))),
    )
    speed, memory = section.tables
    cells = {row.label: row.cells[0] for row in speed.rows}
    # 2 s over 0.5 s in one round, 6 s over 1.5 s in the other.
    assert cells["performer"].ratio == pytest.approx(4.0)
    assert cells["performer"].text == f"4.00 {TIMES}"
    # A page sorts by what is shown.
    assert cells["performer"].value == pytest.approx(4.0) and cells["sdpa"].value == 1.0
    assert cells["performer"].note == f"4.00 to 4.00; LRA 1.2 {TIMES}"
    assert cells["identity"].note == "8.00 to 8.00"
    assert cells["sdpa"].text == f"1 {TIMES}" and cells["sdpa"].note.endswith(
        "steps a second; LRA 8.1"
    )
    assert cells["sdpa"].note.startswith("0.2"), "two or six seconds a step, 4 in the middle"
    assert speed.columns == memory.columns == ("1000",)
    assert any("7 rows of LRA's not run here: block_local, " in note for note in speed.notes)


def test_memory_stands_beside_gigabytes_of_a_device() -> None:
    (section,) = sections(
        step("sdpa", 4000, memory=8e9), step("linformer", 4000, memory=2e9), step("s4d", 4000)
    )
    cells = {row.label: row.cells[0] for row in section.tables[1].rows}
    assert section.tables[1].title.endswith("in GB")
    assert (cells["linformer"].text, cells["linformer"].ratio) == ("2.00", 0.25)
    # 0.99 over 9.48.
    assert cells["linformer"].note == f"0.25 {TIMES}; LRA 0.99 GB, 0.10 {TIMES}"
    assert cells["sdpa"].note == f"1.0 {TIMES}; LRA 9.48 GB"
    assert "LRA" not in cells["s4d"].note


def test_a_figure_that_may_be_a_slip_is_marked_where_it_stands() -> None:
    (section,) = sections(
        *(step(name, n) for n in (2000, 3000) for name in ("sdpa", "synthesizer", "linformer"))
    )
    speed, memory = ({row.label: row.cells for row in t.rows} for t in section.tables)
    assert [cell.note[-3:] for cell in speed["synthesizer"]] == [f"2 {TIMES}", "(?)"]
    assert f"LRA 2.9 {TIMES} (?)" in speed["synthesizer"][1].note
    assert f"LRA 0.99 GB, 0.18 {TIMES} (?)" in memory["linformer"][1].note
    assert "(?)" not in speed["linformer"][1].note
    assert any("repeats Sinkhorn's" in note for note in section.tables[0].notes)
    assert not any("Sinkhorn" in note for note in section.tables[1].notes)
    (section,) = sections(step("sdpa", 1000), step("synthesizer", 1000))
    assert not any("(?)" in note for table in section.tables for note in table.notes)


def test_a_model_of_other_sizes_than_its_scales_is_told() -> None:
    own = load_scale("paper").model_spec("text")
    for model, told in ((own, False), (msgspec.structs.replace(own, layers=1), True)):
        (section,) = sections(step("sdpa", 1000, model=model), step("linear", 1000, model=model))
        assert ("a model of text with layers=1," in section.text[0]) == told
        assert told or "a model of text, bidirectional" in section.text[0]


def test_what_was_not_measured_has_a_word_and_the_published_figure() -> None:
    (section,) = sections(
        step("sdpa", 1000), step("sdpa", 4000, status="oom"),
        step("bigbird", 1000, status="timeout"), step("bigbird", 4000),
        step("linear", 1000),
    )  # fmt: skip
    cells = {row.label: row.cells for row in section.tables[0].rows}
    assert [cell.text for cell in cells["bigbird"]] == ["timeout", "n/a"]
    assert cells["bigbird"][0].note == f"LRA 0.9 {TIMES}"
    assert cells["linear"][1].text == "not run"
    assert cells["sdpa"][1].text == "OOM"
    assert all(cell.value is None for cell in (*cells["bigbird"][:1], cells["linear"][1]))


def test_one_replicate_has_no_interval_and_a_busy_one_a_mark() -> None:
    quiet = [step("sdpa", n) for n in (1000, 2000)]
    loud = with_metrics(step("linear", 1000, 0.5), control_after=5e-3)
    (section,) = sections(*quiet, loud, step("linear", 2000, 0.5))
    cells = {row.label: row.cells for row in section.tables[0].rows}["linear"]
    assert [cell.busy for cell in cells] == [True, False]
    assert cells[1].note == f"LRA 1.9 {TIMES}"
    assert any(note.startswith("!:") for note in section.tables[0].notes)


def test_a_ratio_is_marked_where_exact_attention_was_timed_on_a_busy_machine() -> None:
    loud = with_metrics(step("sdpa", 1000), control_after=5e-3)
    (section,) = sections(loud, step("sdpa", 2000), *(step("linear", n, 0.5) for n in (1000, 2000)))
    rows = {row.label: row.cells for row in section.tables[0].rows}
    assert [cell.marked for cell in rows["linear"]] == [f"!2.00 {TIMES}", f"2.00 {TIMES}"]
    assert [cell.note.split(";")[0] for cell in rows["sdpa"]] == [
        "!1.00 steps a second",
        "1.00 steps a second",
    ]


def test_rounds_that_were_taken_apart_are_left_out_and_counted() -> None:
    later = "2026-11-20T11:16:00Z"
    both = [step(name, 1000, s, replicate=0) for name, s in (("sdpa", 1.0), ("linear", 0.5))]
    apart = [step("sdpa", 1000, replicate=1), step("linear", 1000, 0.1, replicate=1, started=later)]
    for records, text, note in (
        ([*both, *apart], f"2.0 {TIMES}", "1 split round left out; LRA 1.1"),
        (apart, "n/a", "1 split round left out; LRA 1.1"),
    ):
        (section,) = sections(*records)
        cells = {row.label: row.cells[0] for row in section.tables[0].rows}
        assert cells["linear"].text == text
        assert cells["linear"].note.startswith(note)
        assert "split" not in cells["sdpa"].note
        assert any(n.startswith("Split round: its processes") for n in section.tables[0].notes)
    (section,) = sections(*both)
    assert not any("apart" in note for note in section.tables[0].notes)


@pytest.mark.parametrize(
    "other",
    [
        {"level": "layer", "task": ""},
        {"task": "listops"},
        {"direction": "causal"},
        {"length": 1024},
        {"mode": "forward"},
        {"scale": "mini"},
    ],
)
def test_other_cells_make_no_section(other: dict[str, Any]) -> None:
    theirs = {"length": 1000, "mode": "train", "level": "model", "task": "text", "scale": "paper"}

    def made(**asked: Any) -> Record:
        return efficiency("linear", asked.pop("length"), asked.pop("mode"), **asked)

    assert len(sections(made(**theirs))) == 1
    assert sections(made(**{**theirs, **other})) == []


def test_each_setting_has_its_own_section_and_a_reference_alone_none() -> None:
    cpu, gpu = step("linear", 1000), step("linear", 1000, machine=GPU, batch=32)
    found = sections(cpu, gpu)
    assert [one.title for one in found] == [
        "LRA's Table 2: batch 2, Example CPU 9000, 2 cores",
        "LRA's Table 2: batch 32, Example GPU 80GB, 16 cores, driver 580",
    ]
    assert len({one.id for one in found}) == 2
    assert all("batch 32 over 16 chips" in one.text[1] for one in found)
    other = efficiency("linear", 512)
    report, _ = assemble(join([other, cpu], []), "mine")
    assert [s.id for s in report.sections].count("table-2") == 1
    report, _ = assemble(join([other], [cpu]), "mine")
    assert "table-2" not in [s.id for s in report.sections]


def test_exact_attention_is_called_unfused_where_a_cpu_drops_weights() -> None:
    own = load_scale("paper").model_spec("text")
    kept = msgspec.structs.replace(own, attention_dropout=0.0)
    assert own.attention_dropout
    for more, fused in (
        ({"model": own}, False),
        ({"model": kept}, True),
        ({"model": own, "machine": GPU}, True),
    ):
        (section,) = sections(*(step(name, 1000, **more) for name in ("sdpa", "linear")))
        assert any("here it is sdpa, fused" in text for text in section.text) == fused
        assert any("so is sdpa here, on a CPU" in text for text in section.text) != fused
        notes = section.tables[0].notes
        assert any(note.startswith("sdpa: exact attention, fused,") for note in notes) == fused
        assert any("no fused kernel" in note for note in notes) != fused


def test_what_stands_behind_a_figure_is_called_so_on_a_page_and_in_markdown() -> None:
    rounds = [step(name, 1000, replicate=r) for name in ("sdpa", "linear") for r in (0, 1)]
    (section,) = sections(*rounds)
    speed, memory = section.tables
    assert "; then what LRA published" in speed.caption
    assert "; then what LRA published" in memory.caption
    interval = "After a ratio of several replicates: its Student's interval of 95 %."
    assert interval in speed.notes
    (section,) = sections(*rounds[::2])
    assert interval not in section.tables[0].notes
