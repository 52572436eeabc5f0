"""Profiles of training steps: a section of their own, and what a run of them prints."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from lra.report.costs.profile import profile_sections
from lra.report.pictures.style import COLOURS
from lra.report.select import join
from lra.report.table import Cell, Section

from lra.core.profile_metrics import PARTS
from lra.core.protocol import Rows
from lra.core.records import Record
from lra.report.assemble import assemble, spoken
from lra.report.render import findings, render
from lra.report.words import NO_VALUE
from report.sample import (
    GPU,
    THERE,
    TRAINING,
    ceiling,
    data,
    mechanism,
    profile,
    quality,
    with_metrics,
)


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
    assert found["training"] == Cell("11 s", value=pytest.approx(11.0))
    assert [cell.text for cell in operators.rows[0].cells] == ["addmm 50 %", "softmax 25 %"]


@pytest.mark.parametrize(
    "other",
    [{"threads": 1}, {"machine": THERE}, {"training": msgspec.structs.replace(
        TRAINING, precision="bfloat16")}],
)  # fmt: skip
def test_a_limit_is_of_the_same_place_and_type(other: dict[str, object]) -> None:
    parts = section(profile("linear", "text", **other), ceiling()).tables[0]
    assert parts.rows[0].cells[parts.columns.index("limit")] == Cell("not known")


def test_shares_are_of_the_parts_which_on_a_gpu_are_more_than_a_step() -> None:
    apart = {f"{part}_seconds": 0.01 for part in PARTS}
    parts = section(with_metrics(profile("linear", "text", seconds=0.02), **apart)).tables[0]
    found = dict(zip(parts.columns, parts.rows[0].cells, strict=True))
    assert found["forward"].value == pytest.approx(1 / 8)
    assert found["batch"].value == found["other"].value == pytest.approx(2 / 8)


def test_where_torch_counts_nothing_there_is_no_limit_and_one_may_be_above_a_hundred() -> None:
    uncounted = with_metrics(profile("lstm", "text"), operations=0.0)
    above = with_metrics(profile("sdpa", "text"), operations=3e9)
    parts = section(uncounted, above, ceiling()).tables[0]
    limits = [row.cells[parts.columns.index("limit")] for row in parts.rows]
    assert limits == [Cell("not counted"), Cell("150", value=pytest.approx(1.5))]
    assert any("Above 100: " in note for note in parts.notes)


def of_new_lengths(*records: Record) -> list[str]:
    return [note for note in section(*records).tables[0].notes if "length that is new" in note]


def test_steps_that_take_longer_at_a_new_length_are_named() -> None:
    usual = with_metrics(profile("linear", "text", seconds=0.02), first_step_seconds=0.0399)
    slow = with_metrics(profile("sdpa", "text", seconds=0.02), first_step_seconds=0.04)
    (told,) = of_new_lengths(usual, slow)
    assert told.endswith("which neither rate nor training counts: sdpa on text 40.0 ms.")
    assert not of_new_lengths(usual, profile("sdpa", "image"))
    half = msgspec.structs.replace(TRAINING, precision="bfloat16")
    other = with_metrics(profile("sdpa", "text", training=half), first_step_seconds=0.09)
    (told,) = of_new_lengths(slow, other)
    assert told.endswith(
        "sdpa on text in float32, eager 40.0 ms and sdpa on text in bfloat16, eager 90.0 ms."
    )


@pytest.mark.parametrize(("rate", "step", "text"), [(200 / 3, 0.02, "50.0"), (50.0, 0.0, NO_VALUE)])
def test_rate_and_time_agree(rate: float, step: float, text: str) -> None:
    """Of two stretches of 10 and 30 ms the median is 20 ms, that of their rates 67."""
    uneven = with_metrics(
        profile("linear", "text", seconds=0.02), steps_per_second=rate, step_seconds=step
    )
    parts = section(uneven).tables[0]
    assert parts.rows[0].cells[parts.columns.index("steps/s")].text == text


def test_each_type_and_execution_of_the_same_trainings_has_a_sum_of_its_own() -> None:
    half = msgspec.structs.replace(TRAINING, precision="bfloat16")
    compiled = msgspec.structs.replace(half, execution="compiled")
    whole = msgspec.structs.replace(TRAINING, execution="compiled")
    both = [profile(name, "text", training=half) for name in ("linear", "sdpa")]
    one = profile("linear", "text", training=compiled)
    usual = [profile("linear", "text"), profile("linear", "image")]
    found = section(*both, one, profile("linear", "text", training=whole), *usual)
    assert found.text == (
        "One seed of each of 2 trainings, in float32, eager, takes about 22 s in all, one after "
        "the other.",
        "One seed of each of 2 trainings, in bfloat16, eager, takes about 22 s in all, one after "
        "the other.",
        "One seed of linear on text, in float32, compiled, takes about 11 s.",
        "One seed of linear on text, in bfloat16, compiled, takes about 11 s.",
    )
    told = [(row.label, row.note) for row in found.tables[0].rows]
    assert told == [
        ("linear on image", "length 144, float32, eager"),
        ("linear on text", "length 160, float32, eager"),
        ("linear on text", "length 160, bfloat16, eager"),
        ("linear on text", "length 160, float32, compiled"),
        ("linear on text", "length 160, bfloat16, compiled"),
        ("sdpa on text", "length 160, bfloat16, eager"),
    ]
    apart = section(profile("linear", "text"), profile("linear", "image", training=half))
    assert [text.startswith("One seed of each of 2") for text in apart.text] == [True]
    wider = msgspec.structs.replace(TRAINING, batch=2 * TRAINING.batch)
    (told,) = section(profile("linear", "text"), profile("linear", "text", training=wider)).text
    assert told.startswith("One seed of each of 2 trainings takes")


def test_a_picture_tells_the_same_trainings_apart_in_few_words() -> None:
    ways = [("float32", "eager"), ("bfloat16", "eager"), ("bfloat16", "compiled")]
    changed = [
        msgspec.structs.replace(TRAINING, precision=precision, execution=execution)
        for precision, execution in ways
    ]
    found = section(
        *[profile("sparse_strided", "pathfinder", training=training) for training in changed],
        *[profile("sparse_fixed", "pathfinder", training=training) for training in changed[:2]],
        profile("linear", "text"),
    )
    labels = re.findall(r">([^<>]+ on [^<>]+)<", found.figures[0].svg)
    assert labels[:2] == [
        "sparse_fixed on pathfinder (float32)",
        "sparse_fixed on pathfinder (bfloat16)",
    ]
    assert labels[2:] == ["linear on text"], "the others are cut short"
    assert [label[-16:] for label in re.findall(r">(sparse_st[^<>]+)<", found.figures[0].svg)] == [
        "(float32, eager)",
        "bfloat16, eager)",
        "oat16, compiled)",
    ]


def test_a_training_of_a_step_takes_under_a_second() -> None:
    short = msgspec.structs.replace(TRAINING, steps=1)
    few = msgspec.structs.replace(data("text"), rows=Rows(train=9, validation=10, test=10))
    found = section(profile("linear", "text", training=short, data=few))
    assert found.text == ("One seed of linear on text takes under a second.",)
    assert found.tables[0].rows[0].cells[-1].text == "< 1 s"


def test_what_was_profiled_stands_in_the_caption_or_the_row() -> None:
    alone = section(profile("linear", "text")).tables[0]
    assert "torch 2.13.0, batch 32, length 160, float32, eager, 300 steps. " in alone.caption
    assert alone.rows[0].note == ""
    compiled = msgspec.structs.replace(
        TRAINING, execution="compiled", precision="bfloat16", steps=9, micro_batches=2
    )
    parts, operators = section(
        profile("linear", "text"),
        profile("linear", "text", training=compiled),
        profile("linear", "listops"),
    ).tables
    assert "torch 2.13.0, batch 32. " in parts.caption
    assert "the time of a step as the smaller figure or in brackets" in parts.caption
    assert sorted(row.title for row in parts.rows) == [
        "linear on listops (length 32, float32, eager, 300 steps)",
        "linear on text (length 160, bfloat16, compiled, 9 steps, micro_batches=2)",
        "linear on text (length 160, float32, eager, 300 steps, micro_batches=1)",
    ]
    assert [row.note for row in operators.rows] == [row.note for row in parts.rows]
    assert "autograd function" in operators.caption


def test_the_picture_has_a_bar_as_long_as_each_share_in_no_colour_of_a_mechanism() -> None:
    (figure,) = section(profile("linear", "text"), profile("sdpa", "text")).figures
    shapes = re.findall(
        r'<path d="M ([\d.]+) [\d.]+ \nL ([\d.]+) [^"]*" clip-path[^>]* style="fill: (#\w+)',
        figure.svg,
    )
    # The two bars of a part follow each other.
    widths = [float(end) - float(start) for start, end, _ in shapes]
    assert len(widths) == 12 and widths[::2] == pytest.approx(widths[1::2])
    drawn = [width / sum(widths[::2]) for width in widths[::2]]
    assert drawn == pytest.approx([0.09, 0.25, 0.5, 0.02, 0.12, 0.02], abs=1e-4)
    colours = {colour for *_, colour in shapes}
    assert len(colours) == 6 and not colours & {*COLOURS}
    # A window of 500 pixels shows two thirds of the figure.
    last = re.search(r'x="([\d.]+)"[^>]*>other</text>', figure.svg)
    width = re.search(r'viewBox="0 0 ([\d.]+) ', figure.svg)
    assert last and width and float(last[1]) < 0.63 * float(width[1])


def test_settings_that_differ_are_told_and_the_newest_version_counts() -> None:
    smaller = msgspec.structs.replace(TRAINING, batch=16)
    found = section(
        profile("performer", "text", seconds=9.0),
        profile("performer", "text", started="2026-11-21T00:00:00Z", measure=2),
        profile("performer", "text", training=smaller),
        profile(mechanism("linear", source="b"), "listops"),
    ).tables[0]
    assert sorted(row.title for row in found.rows) == [
        "linear on listops (batch 32, length 32)",
        "performer on text (batch 16, length 160)",
        "performer on text (batch 32, length 160)",
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
