"""The protocol behind accuracies, and sizes of models."""

from __future__ import annotations

import msgspec

from lra.core.records import Record
from lra.report.load.measurement import measured
from lra.report.load.versions import data_hash
from lra.report.model import Section
from lra.report.sections.protocol import sections
from report.analysed import analysed, bit_costs, lines, recast, texts, told, values
from report.sample import TRAINING, data, quality


def only(*records: Record) -> Section:
    (section,) = sections(analysed(records))
    return section


def test_tasks_list_what_differs_and_the_text_says_the_rest_once() -> None:
    longer = msgspec.structs.replace(TRAINING, steps=600)
    trained = quality("a", "text")
    section = only(trained, quality("a", "image", training=longer))
    tasks = section.tables[0]
    rows = "rows: train / validation / test"
    assert tasks.columns == ("length", rows, "data hash", "steps", "generator")
    assert texts(tasks)["text"] == [
        "160",
        "20,000 / 1,000 / 2,000",
        data_hash(measured(trained))[:12],  # type: ignore[arg-type]
        "300",
        "defaults",
    ]
    model, training = section.text
    assert "layers 2" in model and "learning rate 0.002" in training and "steps" not in training


def test_rows_are_those_that_there_were_and_real_data_has_no_generator() -> None:
    spec = data("text", source="file", rows=msgspec.structs.replace(data("text").rows, test=7))
    row = values(only(quality("a", "text", data_spec=spec)).tables[0], "text")
    assert row["rows: train / validation / test"].text == "20,000 / 1,000 / 7"
    assert row["generator"].text == "none: real data"
    given = data("text", parameters={"noise": 5, "off": None})
    assert values(only(quality("a", "text", data_spec=given)).tables[0], "text")[
        "generator"
    ].text == ("noise 5")


def test_a_tuned_rate_is_the_best_of_those_tried() -> None:
    records = []
    for rate in (1e-3, 4e-3):
        training = msgspec.structs.replace(TRAINING, learning_rate=rate)
        records.append(recast(quality("a", "text", 0.5 + rate, training=training), track="tuned"))
    text = only(*records).text[1]
    assert "learning rate the best by validation of 0.001, 0.004" in text


def test_only_models_of_other_sizes_than_exact_attentions_are_listed() -> None:
    records = [
        quality("sdpa", "text", parameters=70_000),
        quality("same", "text", parameters=70_000),
        quality("linear", "text", parameters=75_000),
        quality("linformer", "text", parameters=88_000),
        quality("mine", "text", parameters=None),
        quality("gone", "text", status="oom", parameters=None),
    ]
    sizes = only(*records).tables[1]
    assert lines(sizes) == [
        ["gone", "OOM"],
        ["linear", "75,000"],
        ["linformer", "88,000 (+26 %)"],
        ["mine", "n/a"],
    ]
    assert "70,000 of sdpa" in sizes.caption
    assert len(only(*records[:2]).tables) == 1


def test_sizes_over_tasks_are_a_range_with_the_largest_difference() -> None:
    sizes = {"text": (70_000, 70_000, 60_000), "image": (80_000, 100_000, 84_000)}
    records = [
        quality(name, task, parameters=own[place])
        for task, own in sizes.items()
        for place, name in enumerate(("sdpa", "wide", "narrow"))
    ]
    assert lines(only(*records).tables[1]) == [
        ["narrow", "60,000 to 84,000 (-14 %)"],
        ["wide", "70,000 to 100,000 (+25 %)"],
    ]
    without = only(*(record for record in records if record.cell.mechanism.name == "wide"))  # type: ignore[union-attr]
    assert lines(without.tables[1]) == [["wide", "70,000 to 100,000"]]


def test_where_only_bytes_were_trained_the_protocol_is_whole() -> None:
    section = only(told("sdpa", bits=1.9), told("linear", bits=2.5), bit_costs(majority=4.9))
    assert section.setting.endswith("bits per byte")
    assert [row.label for row in section.tables[0].rows] == ["bytes"]
    assert "steps 300" in section.text[1]
