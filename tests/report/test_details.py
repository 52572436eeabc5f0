"""Endings, protocol, parameters and provenance."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from lra.report.answer.sentences import caveats
from lra.report.endings import not_ok_table
from lra.report.entries import measured
from lra.report.frame import frame
from lra.report.protocol import parameter_table, protocol_table
from lra.report.provenance import footer, measuring, provenance_table
from lra.report.quality.tables import quality_tables
from lra.report.select import Selection, join
from lra.report.table import Table, one_line
from lra.report.versions import data_hash

from lra.core.records import Provenance, Record
from lra.report.assemble import assemble

from .mechanisms.checks import check
from .sample import MODEL, THERE, TRAINING, ceiling, efficiency, quality, shown, store


def _lines(table: Table) -> list[list[str]]:
    return [[row.title, *map(one_line, row.cells)] for row in table.rows]


def _both(*records: Record) -> tuple[Selection, Table, Table]:
    selection = join(records, [])
    (table,) = quality_tables(selection)
    return selection, protocol_table(table, selection), parameter_table(table, selection)


def test_every_cell_that_is_not_ok_is_listed_with_its_reason() -> None:
    records = [
        quality("a", "text"),
        quality("a", "image", status="crash", seed=2),
        efficiency("b", 512, "train", status="oom"),
    ]
    table = not_ok_table(join(records, [efficiency("c", 512, "train", status="skipped")]))
    assert table is not None
    assert _lines(table) == [
        ["b", "train at 512", "OOM", "timing", "asked for 4.3 GB, 2 GB allowed"],
        ["a", "image, seed 2", "crash (SIGSEGV)", "training", "the worker died"],
        ["c (reference)", "train at 512", "skipped: a shorter length failed", "n/a", "oom at 1024"],
    ]


def test_cells_that_differ_in_length_alone_and_ended_alike_share_a_row() -> None:
    def at(length: int, mode: str = "train", **more: Any) -> Record:
        return efficiency("b", length, mode, **{"status": "oom", **more})

    table = not_ok_table(join([at(512), at(1024), at(2048, status="skipped")], []))
    assert table is not None
    assert [line[:3] for line in _lines(table)] == [
        ["b", "train at 512 and 1024", "OOM"],
        ["b", "train at 2048", "skipped: a shorter length failed"],
    ]
    many = [at(2**k, replicate=r) for k in range(5, 10) for r in (0, 1)]
    one = not_ok_table(join([*many, at(64, "forward")], []))
    assert one is not None
    assert sorted(line[1] for line in _lines(one)) == [
        "forward at 64",
        "train at 32 to 512 (5 lengths, 10 cells)",
    ]


def _asked(*records: Record) -> list[str]:
    table = not_ok_table(join(list(records), []))
    assert table is not None
    return sorted(line[1] for line in _lines(table))


@pytest.mark.parametrize(
    ("change", "here", "there"),
    [
        ({"batch": 8}, "batch 1", "batch 8"),
        ({"dtype": "bfloat16"}, "float32", "bfloat16"),
        ({"heads": 8}, "4 heads of width 64", "8 heads of width 64"),
        ({"head_width": 32}, "4 heads of width 64", "4 heads of width 32"),
        ({"direction": "causal"}, "bidirectional", "causal"),
        ({"execution": "compiled"}, "", "by torch.compile"),
        ({"scale": "small"}, "scale mini", "scale small"),
        ({"machine": THERE}, "Example CPU 9000, 2 cores", "Other CPU 1, 8 cores"),
    ],
)
def test_cells_of_other_settings_never_share_a_row_and_say_what_differs(
    change: dict[str, Any], here: str, there: str
) -> None:
    own = [efficiency("b", 512, status="oom"), efficiency("b", 512, status="oom", **change)]
    beside = ", ".join(part for part in ("forward at 512", here) if part)
    assert _asked(*own) == sorted([beside, f"forward at 512, {there}"])
    assert _asked(own[0]) == ["forward at 512"]


def test_levels_models_and_trainings_are_told_apart_too() -> None:
    whole = {"status": "oom", "level": "model", "task": "text"}
    deep = msgspec.structs.replace(MODEL, layers=8)
    assert _asked(
        efficiency("b", 512, status="oom"),
        efficiency("b", 512, status="oom", level="attention"),
        efficiency("b", 512, model=MODEL, **whole),
        efficiency("b", 512, model=deep, **whole),
    ) == [
        "forward at 512",
        "forward of a model of text at 512, layers=2",
        "forward of a model of text at 512, layers=8",
        "forward of the attention alone at 512",
    ]
    longer = msgspec.structs.replace(TRAINING, steps=600)
    assert _asked(
        quality("a", "text", status="oom"),
        quality("a", "text", status="oom", training=longer),
        quality("a", "image", status="oom"),
    ) == ["image, seed 0", "text, seed 0, steps=300", "text, seed 0, steps=600"]


def test_checks_pictures_and_ceilings_that_failed_are_listed_and_counted() -> None:
    limits = msgspec.structs.replace(ceiling(), status="timeout", metrics={})
    bad = [
        check("x", "2026", {}, status="error"),
        check("x", "2025", {}, status="crash", source="older"),
        check("x", "2024", {}, status="crash", torch="2.12.0", machine=THERE, threads=8),
        shown("y", status="error"),
        limits,
    ]
    records = [quality("a", "text"), check("y", "2026", {"causality": "held"}), *bad]
    selection = join(records, [ceiling(machine=THERE)])
    table = not_ok_table(selection)
    assert table is not None
    assert [line[:3] for line in _lines(table)] == [
        ["x", "short check", "error (X)"],
        ["y", "picture at 16", "error (ValueError)"],
        ["the machine", "large product and copy in float32", "timeout"],
    ]
    told = caveats(selection, [])
    assert "1 of 2 checks is not ok: 1 error." in told
    assert "1 of 1 picture is not ok: 1 error." in told
    assert "1 of 1 ceiling is not ok: 1 timeout." in told
    for kept in (records, bad):
        report, _ = assemble(join(kept, []), "title")
        (section,) = (one for one in report.sections if one.id == "not-ok")
        assert len(section.tables) == 1


def test_there_is_no_such_table_where_all_ended_well() -> None:
    assert not_ok_table(join([quality("a", "text")], [])) is None


def test_the_protocol_lists_what_differs_by_task_and_says_the_rest_once() -> None:
    longer = msgspec.structs.replace(TRAINING, steps=600)
    trained = quality("a", "text")
    _, protocol, _ = _both(trained, quality("a", "image", training=longer))
    assert protocol.columns == (
        "length",
        "rows: train / validation / test",
        "data hash",
        "steps",
        "generator",
    )
    text = next(line for line in _lines(protocol) if line[0] == "text")
    assert text[1:5] == ["160", "20,000 / 1,000 / 2,000", data_hash(measured(trained))[:12], "300"]
    assert any("learning rate 0.002" in note for note in protocol.notes)
    assert not any(" steps " in note for note in protocol.notes)


def test_the_protocol_says_what_a_tied_start_is_where_there_is_one() -> None:
    tied = msgspec.structs.replace(MODEL, query_key_start="tied")
    told = (
        "Query key start: tied, each layer starts with its keys equal to its queries; independent, "
        "each of the two from draws of its own."
    )
    assert told in _both(quality("a", "text", model=tied), quality("a", "image"))[1].notes
    assert told not in _both(quality("a", "text"))[1].notes


def test_unequal_parameters_are_marked_against_exact_attention() -> None:
    records = [
        quality("sdpa", "text", parameters=70_000),
        quality("linear", "text", parameters=75_000),
        quality("linformer", "text", parameters=88_000),
        quality("mine", "text", parameters=None),
    ]
    _, _, parameters = _both(*records)
    assert _lines(parameters) == [
        ["linear", "75,000"],
        ["linformer", "88,000 (+26 %)"],
        ["mine", "n/a"],
        ["sdpa", "70,000"],
    ]


def test_provenance_has_a_row_per_machine_version_and_commit() -> None:
    other = msgspec.structs.replace(
        quality("sdpa", "text", machine=THERE),
        provenance=Provenance(git_commit="f" * 40, git_dirty=True),
    )
    selection = join([quality("performer", "text")], [other])
    lines = _lines(provenance_table(selection))
    assert [line[0] for line in lines] == ["this run", "reference"]
    assert lines[0][1:] == [
        "Example CPU 9000, 2 cores",
        "2.13.0",
        "1",
        "lra 0.1.0, numpy 2.4.6",
        "0123456789ab",
        "1",
        "2026-11-20",
    ]
    assert lines[1][5] == "ffffffffffff with changes"


def test_provenance_counts_what_was_left_out() -> None:
    new = quality("performer", "text", started="2026-11-25T00:00:00Z", measure=2)
    images = [quality("sdpa", "image", measure=n, started=f"2026-11-2{n}") for n in range(3)]
    selection = join([quality("performer", "text"), new], images)
    notes = provenance_table(selection).notes
    assert notes == (
        "1 older record of this run is left out: a newer one answers the same question.",
        "2 older records of the reference are left out: a newer one answers the same question.",
        "1 reference record is left out: no cell of the run shares the protocol.",
    )


def test_the_footer_names_machine_versions_cells_and_dates() -> None:
    assert footer(join(*store())) == (
        "28 cells and 23 reference cells, measured 2026-11-20 on Example CPU 9000, 2 cores "
        "with torch 2.13.0; commit 0123456789ab."
    )


def test_the_method_is_told_by_kind_in_words_and_without_what_a_reader_has_no_use_for() -> None:
    def said(record: Record, **method: Any) -> Record:
        return msgspec.structs.replace(record, method=method)

    pass_ = {"timed_region": "one forward pass", "steady": True, "declared_time": "O(n)"}
    records = [
        said(efficiency("a", 512), timer="perf_counter_ns", threads=2, **pass_),
        said(efficiency("a", 512, "train"), timer="perf_counter_ns", timed_region="one step"),
        said(quality("a", "text"), continued=False, compile="eager", device="cpu"),
        said(quality("a", "image"), continued=True),
    ]
    assert measuring(join(records, [])) == (
        "Timings. Timed: one forward pass; or one step. Clock: perf_counter_ns. Threads: 2.",
        "Trainings. Execution: eager. Device: cpu.",
    )
    assert measuring(join(records[3:], records[:3])) == ()


def test_the_frame_has_one_metric_a_row_and_a_reason_where_there_is_no_value() -> None:
    selection = join([efficiency("a", 512), efficiency("b", 512, status="oom")], [])
    table = frame(selection.entries)
    assert len(table) == len(selection.entries)
    assert not table.duplicated(["record", "metric"]).any()
    missing = table[table["value"].isna()]
    assert sorted(zip(missing["label"], missing["metric"], missing["word"], strict=True)) == [
        ("a", "peak_allocated_bytes", "not measured"),
        ("b", "latency", "OOM"),
        ("b", "peak_resident_bytes", "OOM"),
    ]
    assert missing["reason"].notna().all()
    assert table[table["value"].notna()]["word"].isna().all()
