"""Latency and memory tables."""

from __future__ import annotations

import msgspec
import pytest
from lra.report.costs.estimate import Assumptions
from lra.report.costs.sections import cost_sections
from lra.report.costs.tables import EfficiencyTables, efficiency_tables
from lra.report.pictures.style import looks
from lra.report.select import join
from lra.report.table import Cell, Table, one_line

from lra.core.protocol import Machine
from lra.core.records import Metric, Record
from lra.report.words import TIMES
from report.sample import GPU, HERE, MODEL, THERE, edited, efficiency, with_metrics


def _tables(records: list[Record], reference: list[Record] | None = None) -> list[EfficiencyTables]:
    return efficiency_tables(join(records, reference or []))


def _latency(records: list[Record], mode: str = "forward") -> Table:
    (tables,) = _tables(records)
    return tables.latency[mode]


def _cell(table: Table, row: str, column: str) -> Cell:
    found = next(r for r in table.rows if r.label == row)
    return found.cells[table.columns.index(column)]


def test_a_cell_is_the_median_and_the_ratio_to_exact_attention_at_its_length() -> None:
    table = _latency(
        [
            efficiency("performer", 512, seconds=0.003),
            efficiency("sdpa", 512, seconds=0.002),
            efficiency("performer", 1024, seconds=0.006),
            efficiency("sdpa", 1024, seconds=0.012),
        ]
    )
    assert table.title == "Time of a forward pass, in ms"
    assert table.columns == ("512", "1024")
    assert (_cell(table, "performer", "512").text, _cell(table, "performer", "512").note) == (
        "3.00",
        f"1.50 {TIMES}",
    )
    assert _cell(table, "performer", "1024").ratio == pytest.approx(0.5)
    assert [row.label for row in table.rows] == ["performer", "sdpa"]


def test_exact_attention_out_of_memory_leaves_every_other_row_whole() -> None:
    others = [efficiency(name, n) for name in ("performer", "linear") for n in (512, 1024)]
    table = _latency([*others, efficiency("sdpa", 512), efficiency("sdpa", 1024, status="oom")])
    assert _cell(table, "sdpa", "1024") == Cell("OOM")
    for name in ("performer", "linear"):
        assert _cell(table, name, "512").note == f"1.00 {TIMES}"
        assert _cell(table, name, "1024").text == "10.0"
        assert _cell(table, name, "1024").note == "n/a"
    assert "n/a: no ratio, because sdpa has no figure at 1024 (OOM)." in table.notes


def test_without_exact_attention_the_ratio_is_not_available() -> None:
    table = _latency([efficiency("performer", 512)])
    assert _cell(table, "performer", "512").note == "n/a"
    assert "n/a: no ratio, because sdpa has no figure at 512 (not run)." in table.notes


def test_two_machine_classes_never_share_a_table() -> None:
    here = [efficiency(name, 512, seconds=0.01) for name in ("performer", "sdpa")]
    there = [efficiency(n, 512, seconds=0.001, machine=THERE) for n in ("linear", "sdpa")]
    ours, theirs = _tables(here, there)
    assert "Example CPU 9000, 2 cores" in ours.parts and not ours.reference_only
    assert "Other CPU 1, 8 cores" in theirs.parts and theirs.reference_only
    assert [row.label for row in ours.latency["forward"].rows] == ["performer", "sdpa"]
    assert [row.label for row in theirs.latency["forward"].rows] == ["linear", "sdpa"]
    assert all(row.note == "reference" for row in theirs.latency["forward"].rows)


def test_two_machine_classes_in_one_store_are_two_tables_as_well() -> None:
    tables = _tables([efficiency("performer", 512, machine=m) for m in (HERE, THERE, GPU)])
    assert sorted(t.entries[0].machine for t in tables) == [
        "Example CPU 9000, 2 cores",
        "Example GPU 80GB, 16 cores, driver 580",
        "Other CPU 1, 8 cores",
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "bfloat16"},
        {"batch": 8},
        {"heads": 2},
        {"head_width": 32},
        {"level": "attention"},
        {"direction": "causal"},
        {"execution": "compiled"},
        {"measure": 2},
    ],
)
def test_other_sizes_and_other_profilers_are_other_tables(change: dict[str, object]) -> None:
    assert len(_tables([efficiency("sdpa", 512), efficiency("linear", 512, **change)])) == 2


def test_versions_of_the_measuring_code_are_named_where_nothing_else_tells_tables_apart() -> None:
    records = [efficiency(f"m{n}", 512, measure=n) for n in (1, 2)]
    records.append(efficiency("a", 512, measure=3, batch=8))
    selection = join(records, [])
    sections = cost_sections(efficiency_tables(selection), selection, looks([]), Assumptions())
    assert [s.title for s in sections if s.title.startswith("Latency")] == [
        "Latency: batch 1, measured by time 1",
        "Latency: batch 1, measured by time 2",
        "Latency: batch 8",
    ]


def test_other_models_are_other_tables_named_by_what_differs() -> None:
    deep = msgspec.structs.replace(MODEL, layers=8, dropout=0.1)
    # A shipped scale has a model of its own that these would be compared with too.
    whole = {"level": "model", "task": "text", "scale": "mine"}
    records = [efficiency("sdpa", 512, model=model, **whole) for model in (MODEL, deep)]
    selection = join([*records, efficiency("sdpa", 512)], [])
    tables = efficiency_tables(selection)
    named = {
        "a model of text with dropout=0.0, layers=2",
        "a model of text with dropout=0.1, layers=8",
    }
    assert {one.parts[0] for one in tables} == {"one layer", *named}
    assert all(one.parts[0] in one.setting for one in tables)
    (alone,) = efficiency_tables(join(records[:1], []))
    assert alone.parts[0] == "a model of text"


def test_ratios_of_reference_rows_are_to_their_own_run() -> None:
    old = "2026-11-01T00:00:00Z"
    run = [efficiency("performer", 512, seconds=0.02), efficiency("sdpa", 512, seconds=0.04)]
    reference = [
        efficiency("linear", 512, seconds=0.02, started=old),
        efficiency("sdpa", 512, seconds=0.01, started=old),
    ]
    (tables,) = _tables(run, reference)
    table = tables.latency["forward"]
    assert _cell(table, "performer", "512").note == f"0.50 {TIMES}"
    assert _cell(table, "linear", "512").note == f"2.00 {TIMES}"
    assert [row.title for row in table.rows] == ["performer", "sdpa", "linear (reference)"]


def test_an_edited_mechanism_stands_beside_its_reference() -> None:
    run = [efficiency(edited("performer"), 512), efficiency("sdpa", 512)]
    (tables,) = _tables(run, [efficiency("performer", 512)])
    titles = [row.title for row in tables.latency["forward"].rows]
    assert titles == ["performer", "sdpa", "performer (reference)"]


def test_digits_stop_at_the_spread_and_wide_quartiles_are_marked() -> None:
    table = _latency(
        [
            efficiency("a", 512, seconds=0.012345, width=0.01),
            efficiency("b", 512, seconds=0.012345, width=0.09),
            efficiency("c", 512, seconds=0.012345, width=0.3),
        ]
    )
    assert [_cell(table, name, "512").text for name in "abc"] == ["12.3", "12", "~12"]
    assert any(note.startswith("~:") for note in table.notes)


@pytest.mark.parametrize("wide", ["a", "sdpa"])
def test_a_ratio_has_the_mark_of_either_figure(wide: str) -> None:
    table = _latency(
        [efficiency(name, 512, width=0.3 if name == wide else 0.01) for name in ("a", "sdpa")]
    )
    assert _cell(table, "a", "512").note.startswith("~")
    assert _cell(table, "a", "512").text.startswith("~") == (wide == "a")
    assert any(note.startswith("~:") and "either figure" in note for note in table.notes)


def test_replicates_give_their_median() -> None:
    seconds = (0.010, 0.011, 0.030)
    table = _latency([efficiency("a", 512, seconds=s, replicate=n) for n, s in enumerate(seconds)])
    assert _cell(table, "a", "512").value == 0.011
    assert _cell(table, "a", "512").spread == pytest.approx(0.02)


def _timed(name: str, length: int, *seconds: float) -> list[Record]:
    return [efficiency(name, length, seconds=s, replicate=n) for n, s in enumerate(seconds)]


def _bold(*records: Record) -> list[tuple[str, int]]:
    table = _latency([*records])
    assert any(note.startswith("Bold:") for note in table.notes) == any(
        cell.strong for row in table.rows for cell in row.cells
    )
    return [(r.label, n) for r in table.rows for n, c in enumerate(r.cells) if c.strong]


def test_the_fastest_is_bold_where_its_processes_lie_apart_and_the_floor_never() -> None:
    assert _bold(
        *_timed("identity", 512, 0.001, 0.001),
        *_timed("linear", 512, 0.005, 0.006),
        *_timed("sdpa", 512, 0.010, 0.011),
        *_timed("identity", 1024, 0.001, 0.001),
        *_timed("linear", 1024, 0.0100, 0.0102),
        *_timed("sdpa", 1024, 0.0101, 0.0103),
    ) == [("linear", 0)]


def test_what_is_next_by_its_median_is_not_the_only_one_to_be_apart_from() -> None:
    near, wide = _timed("sdpa", 512, 0.02, 0.02, 0.02), _timed("wide", 512, 0.004, 0.03, 0.03)
    assert _bold(*_timed("a", 512, 0.005, 0.005, 0.006), *near) == [("a", 0)]
    assert _bold(*_timed("a", 512, 0.005, 0.005, 0.006), *near, *wide) == []


def test_of_one_process_and_of_some_processes_nothing_is_bold() -> None:
    slow = _timed("sdpa", 512, 0.1, 0.1)
    assert _bold(*_timed("a", 512, 0.001, 0.001), *slow) == [("a", 0)]
    assert _bold(*_timed("a", 512, 0.001), *slow) == []
    assert _bold(*_timed("a", 512, 0.001, 0.001), *slow[:1]) == []
    lost = efficiency("a", 512, status="timeout", replicate=2)
    assert _bold(*_timed("a", 512, 0.001, 0.001), lost, *slow) == []


def test_a_figure_of_some_replicates_says_of_how_many_and_how_the_others_ended() -> None:
    lost = [efficiency("a", 512, status="timeout", replicate=n) for n in (1, 2)]
    table = _latency([*_timed("a", 512, 0.01), *lost, *_timed("sdpa", 512, 0.02, 0.02, 0.02)])
    assert one_line(_cell(table, "a", "512")) == f"10.0 (0.500 {TIMES}; 1 of 3; timeout)"
    assert _cell(table, "a", "512").ratio == pytest.approx(0.5)
    assert any(note.startswith("1 of 3: so many of the processes") for note in table.notes)
    whole = _latency([*_timed("a", 512, 0.01), *_timed("sdpa", 512, 0.02)])
    assert not any(note.startswith("1 of 3") for note in whole.notes)


def test_notes_tell_of_how_many_processes_and_of_whose_samples_figures_are() -> None:
    one = _latency([*_timed("a", 512, 0.01)])
    assert one.notes[0] == "3 samples a figure."
    several = _latency([*_timed("a", 512, 0.01, 0.02), *_timed("sdpa", 512, 0.01)])
    assert one_line(_cell(several, "a", "512")).startswith("15 ")
    assert several.notes[0] == (
        "1 to 2 processes a figure: their median, in no more digits than their range allows; 3 "
        "samples in each."
    )
    assert not any(note.startswith("~") for note in several.notes)
    decoded = efficiency("a", 512, "decode", direction="causal")
    prompt = Metric(value=0.02, unit="s", samples=(0.02,) * 7)
    metrics = {**decoded.metrics, "prefill": prompt}
    (tables,) = _tables([msgspec.structs.replace(decoded, metrics=metrics)])
    assert "7 samples a figure." in tables.prefill["decode"].notes
    assert "3 samples a figure." in tables.latency["decode"].notes


def test_memory_on_a_cpu_is_resident() -> None:
    (tables,) = _tables([efficiency("a", 512, memory=50e6), efficiency("sdpa", 512, memory=1e8)])
    table = tables.memory["forward"]
    assert table.title == "Peak memory of a forward pass, in MB"
    assert "resident" in table.caption
    assert (_cell(table, "a", "512").text, _cell(table, "a", "512").note) == (
        "50.0",
        f"0.500 {TIMES}",
    )


def test_a_gap_in_memory_is_told_in_words_and_what_only_a_gpu_has_is_none() -> None:
    (tables,) = _tables([efficiency("a", 512), efficiency("sdpa", 512)])
    assert not any("allocated" in note for note in tables.memory["forward"].notes)
    small = efficiency("a", 512)
    why = "below 0.26 MB, which the system's counting can tell"
    gap = {
        "peak_resident_bytes": Metric(value=None, unit="B", why_null=why),
        "peak_device_bytes": Metric(value=None, unit="B", why_null="no GPU"),
    }
    (tables,) = _tables([msgspec.structs.replace(small, metrics={**small.metrics, **gap})])
    found = [note for note in tables.memory["forward"].notes if "not measured (" in note]
    assert found == [
        "peak resident bytes: not measured (below 0.26 MB, the least that the system's counting "
        "can tell)."
    ]


def test_on_a_gpu_its_own_gaps_are_told_and_what_only_a_cpu_has_is_none() -> None:
    made = efficiency("a", 512, machine=GPU)
    lost = Metric(value=None, unit="B", why_null="memory of the device was given back meanwhile")
    metrics = {**made.metrics, "peak_device_bytes": lost}
    (tables,) = _tables([msgspec.structs.replace(made, metrics=metrics)])
    found = [note for note in tables.memory["forward"].notes if "not measured (" in note]
    assert found == [
        "peak device bytes: not measured (memory of the device was given back meanwhile)."
    ]


def test_memory_on_a_gpu_is_what_tensors_hold() -> None:
    (tables,) = _tables([efficiency("a", 512, memory=2.5e9, machine=GPU)])
    assert "live tensors" in tables.memory["forward"].caption
    assert _cell(tables.memory["forward"], "a", "512").text == "2.50"


def test_a_null_memory_is_words_with_its_reason_in_a_note() -> None:
    (tables,) = _tables([efficiency("a", 512, memory=None)])
    table = tables.memory["forward"]
    assert _cell(table, "a", "512") == Cell("not measured")
    assert "peak resident bytes: not measured (no counter)." in table.notes


def test_an_absent_latency_is_words_and_its_memory_stays() -> None:
    (tables,) = _tables([efficiency("a", 512, seconds=None)])
    table = tables.latency["forward"]
    assert _cell(table, "a", "512") == Cell("not measured")
    assert "latency: not measured (not in the record)." in table.notes
    assert _cell(tables.memory["forward"], "a", "512").text == "50.0"


def test_the_control_says_whether_the_machine_held_still() -> None:
    table = _latency([efficiency("a", 512)])
    assert any("1.02 ms, up to 4 % apart" in note for note in table.notes)


def test_no_table_averages_over_lengths() -> None:
    (tables,) = _tables([efficiency("a", n) for n in (512, 1024, 2048)])
    assert tables.latency["forward"].columns == ("512", "1024", "2048")


def test_the_drift_of_the_control_is_of_both_origins_of_one_cell() -> None:
    """A cell measured again has the id of the committed one."""
    drifted = with_metrics(efficiency("sdpa", 512), control_after=1.5e-3)
    old = "2026-11-01T00:00:00Z"
    quiet = [efficiency("sdpa", n, started=old) for n in (512, 1024)]
    assert drifted.id == quiet[0].id
    (tables,) = _tables([drifted, efficiency("a", 1024)], quiet)
    (note,) = (n for n in tables.latency["forward"].notes if n.startswith("Control"))
    assert "up to 50 % apart" in note


UNFUSED = "sdpa: exact attention; on a CPU with dropout on its weights torch has no fused kernel"
FUSED = "sdpa: exact attention, fused, the one to beat. identity: no mixing, the floor."


@pytest.mark.parametrize(
    ("machine", "mode", "dropout", "fused"),
    [
        (HERE, "train", 0.1, False),
        (HERE, "train", 0.0, True),
        (HERE, "forward", 0.1, True),
        (GPU, "train", 0.1, True),
    ],
)
def test_exact_attention_is_called_fused_only_where_it_is(
    machine: Machine, mode: str, dropout: float, fused: bool
) -> None:
    model = msgspec.structs.replace(MODEL, attention_dropout=dropout)
    whole = {"level": "model", "task": "text", "scale": "mine", "model": model, "machine": machine}
    lengths, names = (256, 512, 1024), ("sdpa", "a")
    (one,) = _tables([efficiency(name, n, mode, **whole) for name in names for n in lengths])
    assert one.growth is not None and one.crossover is not None
    assert (FUSED in one.latency[mode].notes) == fused
    for table in (one.latency[mode], one.memory[mode], one.growth, one.crossover):
        assert any(note.startswith(UNFUSED) for note in table.notes) != fused


def test_a_layer_is_named_without_a_scale_unless_nothing_else_tells_it_apart() -> None:
    def titles(*records: Record) -> list[str]:
        selection = join([*records], [])
        sections = cost_sections(efficiency_tables(selection), selection, looks([]), Assumptions())
        return sorted(one.title for one in sections if one.title.startswith("Latency"))

    layer = efficiency("a", 512)
    model = efficiency("a", 512, level="model", task="text", scale="mine", model=MODEL)
    assert titles(layer, model) == [
        "Latency: a model of text, scale mine",
        "Latency: one layer",
    ]
    wide = efficiency("a", 512, head_width=32, scale="small")
    assert titles(layer, wide) == [
        "Latency: 4 heads of width 32",
        "Latency: 4 heads of width 64",
    ]
    twin = efficiency("a", 512, scale="small")
    assert titles(layer, twin) == ["Latency: scale mini", "Latency: scale small"]
