"""Profiles of training steps: a section of their own, and what a run of them prints."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from lra.core.records import Record
from lra.report.assemble import assemble, spoken
from lra.report.costs.profile import profile_sections
from lra.report.render import findings, render
from lra.report.select import join
from lra.report.table import Cell, Section
from report.sample import GPU, THERE, TRAINING, ceiling, mechanism, profile, quality


def section(*records: Record) -> Section:
    (found,) = profile_sections(join(records, []))
    return found


def test_a_row_has_rate_parts_padding_limit_and_the_whole_training() -> None:
    parts, operators = section(profile("linear", "text"), ceiling()).tables
    (row,) = parts.rows
    assert row.label == "linear on text"
    found = dict(zip(parts.columns, row.cells, strict=True))
    # The quartiles are 49 and 51.
    assert (found["steps/s"].text, found["steps/s"].note) == ("50", "20.0 ms")
    shares = {name: found[name].text for name in ("batch", "forward", "backward", "clip")}
    assert shares == {"batch": "9.0", "forward": "25", "backward": "50", "clip": "2.0"}
    assert (found["update"].text, found["other"].text) == ("12", "2.0")
    assert found["padding"].text == "3.4"
    # 1e9 operations in 20 ms, of 1e11 a second.
    assert found["limit"].value == pytest.approx(0.5)
    # 300 steps of 20 ms, three validations of 1,000 rows and a test of 2,000, of 1 ms each.
    assert found["training"] == Cell("11 s")
    assert [cell.text for cell in operators.rows[0].cells] == ["addmm 50 %", "softmax 25 %"]


@pytest.mark.parametrize(
    "other",
    [{"threads": 1}, {"machine": THERE}, {"training": msgspec.structs.replace(
        TRAINING, precision="bfloat16")}],
)  # fmt: skip
def test_a_limit_is_of_the_same_place_and_type(other: dict[str, object]) -> None:
    parts = section(profile("linear", "text", **other), ceiling()).tables[0]
    assert parts.rows[0].cells[parts.columns.index("limit")] == Cell("not known")


def test_settings_that_differ_are_told_and_the_newest_version_counts() -> None:
    smaller = msgspec.structs.replace(TRAINING, batch=16)
    found = section(
        profile("performer", "text", seconds=9.0),
        profile("performer", "text", started="2026-11-21T00:00:00Z", measure_hash="f2"),
        profile("performer", "text", training=smaller),
        profile(mechanism("linear", source="b"), "listops"),
    ).tables[0]
    assert sorted(row.title for row in found.rows) == [
        "linear on listops",
        "performer on text (batch=16)",
        "performer on text (batch=32)",
    ]
    assert {row.cells[0].text for row in found.rows} == {"50"}


def test_each_machine_has_a_section() -> None:
    gpu = profile("linear", "text", machine=GPU, device="cuda", kernels=312.0)
    found = profile_sections(join([profile("linear", "text"), gpu], []))
    assert [one.title for one in found] == [
        "Where a training step's time goes: Example CPU 9000, 2 cores, 2 threads",
        "Where a training step's time goes: Example GPU 80GB, 16 cores, driver 580",
    ]
    assert len({one.id for one in found}) == 2
    assert any("waited for" in note for note in found[1].tables[0].notes)


def test_a_run_of_profiles_prints_its_table_and_what_went_wrong() -> None:
    records = [
        profile("linear", "text", kernels=312.0),
        profile("linear", "listops"),
        profile("lstm", "text", status="oom"),
    ]
    told = findings(records, [], [*records, ceiling()])
    assert told.table.splitlines()[0].startswith("A training step and its parts. At scale mini, ")
    assert "linear on text" in told.table
    assert "not known" not in told.table, "the limit is another record of the store"
    assert told.headline[0] == (
        "One seed of each of 2 trainings takes about 22 s in all, one after the other."
    )
    assert told.headline[1:3] == (
        "linear on listops: most self time in addmm 50 % and softmax 25 %.",
        "linear on text: most self time in addmm 50 % and softmax 25 %; 312 kernels a step.",
    )
    assert told.headline[-1] == "1 of 3 profiles is not ok: 1 OOM."
    failed = findings(records[2:], [], records)
    assert (failed.table, failed.headline) == ("", ("1 of 1 profile is not ok: 1 OOM.",))


def test_the_page_has_the_section_with_a_picture_and_is_without_where_there_is_none(
    tmp_path: Path,
) -> None:
    trained = [quality("linear", "text"), quality("sdpa", "text")]
    before, _ = assemble(join(trained, []), "linear")
    assert not any(one.id.startswith("profile") for one in before.sections)
    profiled = [profile("linear", "text"), profile("lstm", "text", status="oom")]
    report, _ = assemble(join([*trained, *profiled], []), "linear")
    added = [one.id for one in report.sections if one.id.startswith("profile")]
    assert added == ["profile"]
    alone = render(profiled, [], tmp_path, title="linear")
    page = alone.page.read_text(encoding="utf-8")
    assert "Where a training step&#39;s time goes" in page
    assert "profile of a training step on text" in page, "among what did not end well"
    assert (tmp_path / "plots/profile.svg").is_file()


def test_without_profiles_nothing_is_said_of_them() -> None:
    assert spoken(join([], []))[0][0].startswith("There is no record")
    assert profile_sections(join([quality("linear", "text"), ceiling()], [])) == []
