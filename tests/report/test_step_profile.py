"""Profiles of training steps, and the printed words of a run of them."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from lra.core.profile_metrics import PARTS
from lra.core.protocol import Rows
from lra.core.records import Record
from lra.report.load.select import join
from lra.report.model import Section, Table, Value
from lra.report.plots.style import COLOURS
from lra.report.sections import profile as page
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
from report.sweeps import analysed, titles, value


def sections(*records: Record) -> list[Section]:
    return page.sections(analysed(records))


def table(*records: Record) -> Table:
    (found,) = sections(*records)
    return found.tables[0]


def trained(**changes: Any) -> Any:
    return msgspec.structs.replace(TRAINING, **changes)


def test_a_row_has_rate_parts_padding_limit_the_whole_training_and_operators() -> None:
    found = table(profile("linear", "text"), ceiling())
    texts = {name: value(found, "linear", name).line for name in found.columns}
    assert texts == {
        # The quartiles are 49 and 51.
        "steps/s": "50 (20.0 ms)",
        "batch": "9.0",
        "forward": "25",
        "backward": "50",
        "clip": "2.0",
        "update": "12",
        "other": "2.0",
        "padding": "3.4",
        # 1e9 operations in 20 ms, of 1e11 a second.
        "limit": "50",
        # 300 steps of 20 ms, three validations of 1,000 rows and a test of 2,000, of 1 ms each.
        "training": "11 s",
        "most time in": "50 (addmm)",
    }
    assert value(found, "linear", "training").number == pytest.approx(11.0)


@pytest.mark.parametrize(
    "other",
    [{"threads": 1}, {"machine": THERE}, {"training": trained(precision="bfloat16")}],
)
def test_a_limit_is_of_the_same_place_and_type(other: dict[str, object]) -> None:
    found = table(profile("linear", "text", **other), ceiling())
    assert value(found, "linear", "limit") == Value("not known")


def test_shares_are_of_the_parts_which_on_a_gpu_are_more_than_a_step() -> None:
    apart = {f"{part}_seconds": 0.01 for part in PARTS}
    found = table(with_metrics(profile("linear", "text", seconds=0.02), **apart))
    shares = {name: value(found, "linear", name).number for name in ("forward", "batch", "other")}
    assert shares == pytest.approx({"forward": 1 / 8, "batch": 2 / 8, "other": 2 / 8})
    (gpu,) = sections(profile("linear", "text", device="cuda", machine=GPU))
    assert "On a GPU" in gpu.text[1]


def test_where_torch_counts_nothing_there_is_no_limit_and_one_may_be_above_a_hundred() -> None:
    uncounted = with_metrics(profile("lstm", "text"), operations=0.0)
    found = table(uncounted, with_metrics(profile("sdpa", "text"), operations=3e9), ceiling())
    assert value(found, "lstm", "limit") == Value("not counted")
    assert value(found, "sdpa", "limit") == Value("150", number=pytest.approx(1.5))


def test_steps_that_take_longer_at_a_new_length_are_named() -> None:
    usual = with_metrics(profile("linear", "text", seconds=0.02), first_step_seconds=0.0399)
    slow = with_metrics(profile("sdpa", "text", seconds=0.02), first_step_seconds=0.04)
    (note,) = table(usual, slow).notes
    assert note.endswith("sdpa 40.0 ms.") and "linear" not in note
    assert table(usual, profile("sdpa", "text")).notes == ()


@pytest.mark.parametrize(("rate", "step", "text"), [(200 / 3, 0.02, "50.0"), (50.0, 0.0, NO_VALUE)])
def test_rate_and_time_agree(rate: float, step: float, text: str) -> None:
    """Two stretches of 10 and 30 ms have a median of 20 ms, their rates one of 67."""
    uneven = with_metrics(
        profile("linear", "text", seconds=0.02), steps_per_second=rate, step_seconds=step
    )
    assert value(table(uneven), "linear", "steps/s").text == text


@pytest.mark.parametrize(
    "other",
    [
        {"training": trained(precision="bfloat16")},
        {"training": trained(execution="compiled")},
        {"training": trained(batch=64)},
        {"training": trained(steps=9)},
        {"scale": "other"},
        {"threads": 1},
        {"machine": THERE},
        {"torch": "2.12.0"},
        {"data": data("text", length=99)},
    ],
)
def test_other_tasks_types_and_sizes_are_other_sections_the_one_with_most_first(
    other: dict[str, Any],
) -> None:
    both = [profile(name, "text", **other) for name in ("linear", "sdpa")]
    first, second = sections(profile("linear", "text"), *both)
    assert titles(first.tables[0]) == ["linear", "sdpa"]
    assert titles(second.tables[0]) == ["linear"]
    assert first.setting != second.setting
    assert [section.figures != () for section in (first, second)] == [True, False]


def test_profiles_that_differ_in_a_detail_are_told_apart_in_one_table() -> None:
    found = table(
        profile("linear", "text"),
        profile("linear", "text", training=trained(micro_batches=2)),
        profile(mechanism("performer", features=8), "text"),
        profile(mechanism("performer", features=16), "text"),
    )
    assert titles(found) == [
        "linear (micro_batches=1)",
        "linear (micro_batches=2)",
        "performer (features=16)",
        "performer (features=8)",
    ]
    assert len({row.variant for row in found.rows}) == 3


def test_whole_trainings_are_summed_by_section() -> None:
    first, second = sections(
        profile("linear", "text"), profile("sdpa", "text"), profile("linear", "image")
    )
    assert first.text[0] == (
        "One seed of each of 2 trainings takes about 22 s one after the other."
    )
    assert second.text == ("One seed of linear takes about 11 s.",)
    few = msgspec.structs.replace(data("text"), rows=Rows(train=9, validation=10, test=10))
    (short,) = sections(profile("linear", "text", training=trained(steps=1), data=few))
    assert short.text[0].endswith("takes under a second.")
    assert value(short.tables[0], "linear", "training").text == "< 1 s"


def test_the_picture_has_a_bar_as_long_as_each_share_in_no_colour_of_a_mechanism() -> None:
    (section,) = sections(profile("linear", "text"), profile("sdpa", "text"))
    (figure,) = section.figures
    shapes = re.findall(
        r'<path d="M([\d.]+) [\d.]+L([\d.]+) [^"]*" clip-path[^>]* style="fill: (#\w+)', figure.svg
    )
    # The two bars of a part follow each other.
    widths = [float(end) - float(start) for start, end, _ in shapes]
    assert len(widths) == 12 and widths[::2] == pytest.approx(widths[1::2])
    shares = [width / sum(widths[::2]) for width in widths[::2]]
    assert shares == pytest.approx([0.09, 0.25, 0.5, 0.02, 0.12, 0.02], abs=1e-4)
    colours = {colour for *_, colour in shapes}
    assert len(colours) == 6 and not colours & {*COLOURS}


def test_a_run_of_profiles_alone_prints_its_trainings_and_operators() -> None:
    records = [
        with_metrics(profile("linear", "text"), kernels=312.0),
        profile("sdpa", "text"),
        profile("lstm", "text", status="oom"),
    ]
    found = page.terminal_summary(join(records, []))
    assert found is not None
    sentences, printed = found
    assert sentences == (
        "One seed of each of 2 trainings on text takes about 22 s one after the other.",
        "linear on text: most self time in addmm 50 % and softmax 25 %; 312 kernels a step.",
        "sdpa on text: most self time in addmm 50 % and softmax 25 %.",
    )
    assert printed is not None and titles(printed) == ["linear", "sdpa"]
    assert page.terminal_summary(join(records[2:], [])) == ((), None)
    assert page.terminal_summary(join([quality("linear", "text"), ceiling()], [])) is None
    assert sections(quality("linear", "text"), ceiling()) == []


def test_a_profile_measured_again_replaces_the_older_one() -> None:
    old = profile("linear", "text", seconds=0.5, started="2026-11-01T00:00:00Z")
    found = table(old, profile("linear", "text", seconds=0.02, measure=2))
    assert value(found, "linear", "steps/s").note == "20.0 ms"
