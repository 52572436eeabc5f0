"""Answers that models wrote by themselves: means over seeds, and a reason where there are none."""

from __future__ import annotations

import msgspec
import pytest

from lra.core.records import Record
from lra.report.model import Table
from lra.report.sections import decoding_by_use
from lra.report.sections.written import sections

from .across import across, wrote
from .analysed import analysed, lines, recast
from .sample import quality

WHY = "performer keeps no | state"


def table(*records: Record) -> Table:
    (section,) = sections(analysed(records))
    (found,) = section.tables
    return found


def crashed(record: Record) -> Record:
    """The same training, whose writing ended with an error."""
    return msgspec.structs.replace(record, method={"decode_failed": "RuntimeError: no shape"})


def test_answers_are_means_over_seeds_beside_their_longest_common_part() -> None:
    found = table(
        wrote(across("sdpa", "copy", 0.9), 0.5, 0.75),
        wrote(across("sdpa", "copy", 0.9, seed=1), 0.25, 0.5),
        wrote(across("linear", "reverse", 0.9), 0.0, 0.125),
    )
    assert found.columns == ("copy", "reverse")
    assert lines(found) == [
        ["linear", "n/a", "0.0 (R-L 12.5)"],
        ["sdpa", "37.5 (R-L 62.5)", "n/a"],
    ]
    assert found.rows[1].values[0].number == pytest.approx(0.375)


def test_a_mechanism_that_cannot_write_has_its_reason_once_below() -> None:
    cannot = [
        wrote(across("performer", task, 0.9), None, None, WHY) for task in ("copy", "reverse")
    ]
    found = table(wrote(across("sdpa", "copy", 0.9), 1.0, 1.0), *cannot)
    assert lines(found)[0] == ["performer", "n/a", "n/a"]
    assert [WHY in note for note in found.notes] == [True]


def test_writing_that_failed_is_told_from_a_mechanism_that_cannot() -> None:
    found = table(
        crashed(across("linear", "copy", 0.9)),
        wrote(across("sdpa", "copy", 0.9), 1.0, 1.0),
        crashed(across("sdpa", "copy", 0.9, seed=1)),
    )
    assert lines(found) == [["linear", "failed"], ["sdpa", "100.0 (R-L 100.0, 1 failed)"]]
    assert found.notes == ()
    assert decoding_by_use.sections(analysed([crashed(across("linear", "copy", 0.9))])) == []


def test_slots_scales_and_tracks_have_a_section_each() -> None:
    kinds = [
        across("linear", "copy", 0.9),
        across("linear", "copy", 0.9, named=("cross", "decoder")),
        across("linear", "copy", 0.9, scale="small"),
        recast(across("linear", "copy", 0.9), track="tuned"),
    ]
    records = [wrote(record, n / 8, 0.5) for n, record in enumerate(kinds)]
    found = sections(analysed(records))
    shown = {one.setting: one.tables[0].rows[0].values[0].number for one in found}
    assert sorted(number or 0.0 for number in shown.values()) == [0.0, 0.125, 0.25, 0.375]
    assert len({one.tables[0].id for one in found}) == len(shown) == 4


def test_without_answers_there_is_no_section() -> None:
    assert sections(analysed([quality("sdpa", "text"), across("sdpa", "copy")])) == []
