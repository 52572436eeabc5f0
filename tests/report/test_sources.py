"""Where records come from, how they were measured, and the line at the foot of the page."""

from __future__ import annotations

from typing import Any

import msgspec

from lra.core.records import Provenance, Record
from lra.report.sections.provenance import footer, methods, sections
from report.analysed import analysed, lines
from report.sample import THERE, efficiency, quality, store


def test_sources_have_a_row_per_machine_version_and_commit() -> None:
    other = msgspec.structs.replace(
        quality("sdpa", "text", machine=THERE),
        provenance=Provenance(git_commit="f" * 40, git_dirty=True),
    )
    (section,) = sections(analysed([quality("performer", "text")], [other]))
    run, reference = lines(section.tables[0])
    assert run == [
        "this run",
        "Example CPU 9000, 2 cores",
        "1",
        "lra 0.1.0, numpy 2.4.6",
        "0123456789ab",
        "1",
        "2026-11-20",
    ]
    assert reference[4] == "ffffffffffff with changes"
    assert "2.13.0" in section.tables[0].notes[0]


def test_records_that_were_left_out_are_counted() -> None:
    new = quality("performer", "text", started="2026-11-25T00:00:00Z", measure=2)
    images = [quality("sdpa", "image", measure=n, started=f"2026-11-2{n}") for n in range(3)]
    (section,) = sections(analysed([quality("performer", "text"), new], images))
    numbers = [note.partition(" ")[0] for note in section.tables[0].notes]
    assert numbers == ["1", "2", "1"], "of the run, of the reference, and of no protocol of the run"


def test_the_footer_names_machine_versions_cells_and_dates() -> None:
    assert footer(analysed(*store()).evidence) == (
        "28 cells and 23 reference cells, measured 2026-11-20 on Example CPU 9000, 2 cores "
        "with torch 2.13.0; commit 0123456789ab."
    )


def test_methods_are_told_by_kind_without_entries_that_no_reader_can_use() -> None:
    def said(record: Record, **method: Any) -> Record:
        return msgspec.structs.replace(record, method=method)

    step = {"timed_region": "one forward pass", "steady": True, "declared_time": "O(n)"}
    records = [
        said(efficiency("a", 512), timer="perf_counter_ns", threads=2, **step),
        said(efficiency("a", 512, "train"), timer="perf_counter_ns", timed_region="one step"),
        said(quality("a", "text"), continued=False, compile="eager", device="cpu"),
        said(quality("a", "image"), continued=True),
    ]
    assert methods(analysed(records).evidence.own) == (
        "Timings. Timed: one forward pass; or one step. Clock: perf_counter_ns. Threads: 2.",
        "Trainings. Execution: eager. Device: cpu.",
    )
    assert methods(analysed(records[3:], records[:3]).evidence.own) == ()
