"""Published accuracies beside ours, and what differs between the protocols."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from lra.report.others.published import _mean, published_sections
from lra.report.quality.tables import quality_tables
from lra.report.select import join
from lra.report.table import Cell, Section, Table

from lra.core.protocol import ModelSpec, TrainSpec
from lra.core.records import Record
from lra.report.assemble import assemble
from report.sample import data, quality


def sections(*records: Record) -> list[Section]:
    selection = join(list(records), [])
    return published_sections(quality_tables(selection), selection)


def shown(table: Table) -> dict[str, list[str]]:
    return {row.label: [cell.text for cell in row.cells] for row in table.rows}


def test_published_rows_stand_below_the_mechanism_they_are_of() -> None:
    (section,) = sections(
        quality("performer", "listops", 0.4),
        quality("performer", "text", 0.6),
        quality("sdpa", "listops", 0.5),
        quality("s4d", "listops", 0.9),
        quality("identity", "listops", 0.2),
    )
    table = section.tables[0]
    assert [row.label for row in table.rows if row.group == "performer"] == [
        "performer",
        "LRA: Performer",
        "Nyströmformer: Performer",
        "Skyformer: Performer",
        "xFormers: Favor-256",
    ]
    found = shown(table)
    # Two tasks here: the published mean is over these two, whatever the paper averages.
    assert found["LRA: Performer"] == ["18.01", "65.40", "41.71"]
    assert found["performer"] == ["40.0", "60.0", "50.0"]
    assert found["LRA: Transformer"][:2] == ["36.37", "64.27"]
    assert found["xFormers: Standard"][:2] == ["37.5", "62.66"], "as it is printed there"
    # What no paper has, and the floor, are in the accuracy table alone.
    assert "s4d" not in found and not any("identity" in label for label in found)
    notes = " ".join(table.notes)
    variants = "Variants used in those publications: LRA: Performer (ReLU features without draws"
    assert variants in notes
    assert "15 published rows of models that are no mechanism here: IGLOO" in notes
    (of_three,) = (row for row in table.rows if row.label == "Skyformer: Performer")
    assert of_three.cells[0].note == "n 3"


def test_a_mean_is_of_all_tasks_or_of_none() -> None:
    one = {"text": Decimal("50.00"), "listops": Decimal("36.05")}
    assert _mean(one, ["text", "listops"]).text == "43.03", "43.025, by decimal halves"
    assert _mean(one, ["text", "listops", "image"]) == Cell("n/a", "2 of 3")


def test_a_setting_counts_as_different_only_where_a_paper_states_another() -> None:
    model = ModelSpec(layers=2, width=64, qkv_width=64, heads=2, mlp_width=128, dropout=0.1)
    training = TrainSpec(steps=5000, batch=32, learning_rate=1e-4, warmup=7, evaluate_every=10)
    more: dict[str, Any] = {"model": model, "training": training}
    one = data("listops", length=2048)
    (section,) = sections(
        *(quality("linformer", "listops", 0.4, seed=s, data_spec=one, **more) for s in range(3))
    )
    table = section.tables[1]
    rows = {row.label: dict(zip(table.columns, row.cells, strict=True)) for row in table.rows}
    here, there = rows["listops, here"], rows["Nyströmformer"]
    assert (here["length"].text, here["seeds"].text) == ("2048", "3")
    assert here["tested"].text == "best validation"
    differing = {k: c.text for k, c in there.items() if c.text not in ("=", "?")}
    assert differing == {
        "differs": "7/21",
        "data": "LRA release",
        "attention dropout": "0.1",
        "positions": "learned",
        "schedule": "linear",
        "warm-up": "1000",
        "precision": "mixed float16",
        "seeds": "1",
    }
    assert (there["tested"].text, there["clip"].text) == ("=", "=")
    more["training"] = msgspec.structs.replace(training, tested="last")
    last = quality("linformer", "listops", 0.4, seed=0, data_spec=one, **more)
    rows = _distances(last)
    assert rows["listops, here"]["tested"] == "last step"
    assert rows["Nyströmformer"]["tested"] == "best validation"
    # S4 has no row of this mechanism: nothing of it is compared.
    assert "S4" not in rows


def _distances(*records: Record) -> dict[str, dict[str, str]]:
    table = sections(*records)[0].tables[1]
    return {
        label: dict(zip(table.columns, row, strict=True)) for label, row in shown(table).items()
    }


def test_seeds_are_those_of_each_mechanism() -> None:
    three = [quality("sdpa", "text", 0.5, seed=n) for n in range(3)]
    one = [quality("linformer", "text", 0.5, seed=7)]
    failed = quality("linformer", "text", status="oom", seed=8)
    rows = _distances(*three, *one, failed)
    assert rows["text, here"]["seeds"] == "1 to 3"
    assert (rows["Skyformer"]["seeds"], rows["LRA"]["seeds"]) == ("3", "1")
    rows = _distances(*three)
    assert (rows["text, here"]["seeds"], rows["Skyformer"]["seeds"]) == ("3", "=")


def test_files_may_be_the_release_or_not() -> None:
    (generated, files) = (
        _distances(quality("sdpa", "text", data_spec=data("text", source=source)))["LRA"]
        for source in ("generated", "file")
    )
    assert (generated["data"], files["data"]) == ("LRA release", "?")
    assert [row["differs"].partition("/")[2] for row in (generated, files)] == ["21", "20"]


def test_attention_dropout_clipping_and_precision_are_compared() -> None:
    training = TrainSpec(steps=5000, batch=32, learning_rate=1e-4, evaluate_every=10, clip=1.0)
    columns = ("attention dropout", "clip", "precision")
    rows = _distances(*(quality("sdpa", t, training=training) for t in ("image", "path_x")))
    assert [rows["image, here"][column] for column in columns] == ["0.0", "1.0", "float32"]
    assert [rows["LRA"][column] for column in columns] == ["0.1", "=", "="], "of path_x"
    rows = _distances(quality("sdpa", "image"))
    assert [rows["LRA"][column] for column in columns] == ["0.2", "=", "="], "neither clips"
    assert [rows["Skyformer"][column] for column in columns] == ["0.1", "1 by value", "?"]


def test_no_name_of_a_model_that_is_not_shown_looks_like_two() -> None:
    (note,) = (n for n in sections(quality("sdpa", "text"))[0].tables[0].notes if "Not shown" in n)
    names = re.split(", | and ", note.partition(": IGLOO")[2].rstrip("."))
    assert "S4-v2 (re-run)" in names and "re-run" not in names


@pytest.mark.parametrize("name", ["s4d", "identity"])
def test_without_a_published_row_there_is_no_section(name: str) -> None:
    assert sections(quality(name, "listops", 0.4)) == []


def test_a_task_of_ones_own_has_no_published_figure() -> None:
    assert sections(quality("sdpa", "mine", 0.4)) == []


def test_it_stands_right_after_the_learning_curves() -> None:
    report, _ = assemble(join([quality("sdpa", "text", 0.7)], []), "t")
    titles = [section.title for section in report.sections]
    assert titles.index("Published numbers") == titles.index("Learning curves") + 1
