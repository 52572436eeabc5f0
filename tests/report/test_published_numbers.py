"""Published accuracies beside ours, and in how many settings the protocols differ."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec
import pytest

from lra.core import published
from lra.core.protocol import ModelSpec, TrainSpec
from lra.core.records import Record
from lra.report.model import Section, Value
from lra.report.sections.published import _here, _is_same, _mean, _stated, sections
from report.analysed import analysed, texts
from report.sample import data, quality


def only(*records: Record) -> Section:
    (section,) = sections(analysed(records))
    return section


def test_published_rows_stand_below_the_mechanism_they_are_of() -> None:
    section = only(
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
    found = texts(table)
    # Two tasks here: the published mean is over these two, whatever the paper averages.
    assert found["LRA: Performer"] == ["18.01", "65.40", "41.71"]
    assert found["performer"] == ["40", "60", "50"]
    assert found["LRA: Transformer"][:2] == ["36.37", "64.27"]
    assert found["sdpa"] == ["50", "not run", "n/a"]
    assert found["xFormers: Standard"][:2] == ["37.5", "62.66"], "as it is printed there"
    # Mechanisms that no paper has, and the floor, are in the accuracy table alone.
    assert not {"s4d", "identity"} & set(found)
    assert "LRA: Performer (ReLU features without draws" in " ".join(table.notes)
    (of_three,) = (row for row in table.rows if row.label == "Skyformer: Performer")
    assert of_three.values[0].note == "n 3"


def test_a_mean_is_of_all_tasks_or_of_none() -> None:
    one = {"text": Decimal("50.00"), "listops": Decimal("36.05")}
    assert _mean(one, ["text", "listops"]).text == "43.03", "43.025, by decimal halves"
    assert _mean(one, ["text", "listops", "image"]) == Value("n/a", "2 of 3")


def apart(*records: Record, paper: str, place: int = 0) -> tuple[dict[str, Any], int]:
    """Settings that a paper states otherwise, and how many it states."""
    (scores,) = analysed(records).accuracies
    column = scores.columns[place]
    (one,) = (own for own in published.qualities() if own.name == paper)
    here, stated = _here(column, scores), _stated(one, column)
    return {k: v for k, v in stated.items() if not _is_same(here[k], v)}, len(stated)


def test_a_setting_counts_as_different_only_where_a_paper_states_another() -> None:
    model = ModelSpec(layers=2, width=64, qkv_width=64, heads=2, mlp_width=128, dropout=0.1)
    training = TrainSpec(steps=5000, batch=32, learning_rate=1e-4, warmup=7, evaluate_every=10)
    more: dict[str, Any] = {"model": model, "data_spec": data("listops", length=2048)}

    def made(**changes: Any) -> list[Record]:
        own = msgspec.structs.replace(training, **changes)
        return [
            quality("linformer", "listops", 0.4, seed=s, training=own, **more) for s in range(3)
        ]

    expected = {
        "data": "LRA release",
        "attention_dropout": 0.1,
        "position": "learned",
        "schedule": "linear",
        "warmup": 1000,
        "precision": "mixed float16",
        "seeds": 1,
    }
    found, stated = apart(*made(), paper="Nyströmformer")
    assert ({k: float(v) if isinstance(v, Decimal) else v for k, v in found.items()}) == expected
    assert stated == 21
    assert "tested" in apart(*made(tested="last"), paper="Nyströmformer")[0]
    table = only(*made()).tables[1]
    # S4 has no row of this mechanism: nothing of it is compared.
    assert texts(table)["Nyströmformer"] == ["7 of 21"] and "S4" not in texts(table)
    assert {row.label: row.values[0].note for row in table.rows}["Nyströmformer"] == "length 2,048"


def test_seeds_are_those_of_each_mechanism() -> None:
    three = [quality("sdpa", "text", 0.5, seed=n) for n in range(3)]
    one = quality("linformer", "text", 0.5, seed=7)
    failed = quality("linformer", "text", status="oom", seed=8)
    assert "seeds" in apart(*three, one, failed, paper="Skyformer")[0]
    assert "seeds" not in apart(*three, paper="Skyformer")[0]
    assert "seeds" in apart(*three, paper="LRA")[0]


def test_files_may_be_the_release_or_not() -> None:
    def of(source: str) -> tuple[dict[str, Any], int]:
        return apart(quality("sdpa", "text", data_spec=data("text", source=source)), paper="LRA")

    (generated, all_of), (files, fewer) = of("generated"), of("file")
    assert generated["data"] == "LRA release" and "data" not in files
    assert (all_of, fewer) == (21, 20)


def test_attention_dropout_clipping_and_precision_are_compared() -> None:
    names = ("attention_dropout", "clip", "precision")
    training = TrainSpec(steps=5000, batch=32, learning_rate=1e-4, evaluate_every=10, clip=1.0)

    def differing(paper: str, task: str, **more: Any) -> dict[str, str]:
        found, _ = apart(quality("sdpa", task, **more), paper=paper)
        return {name: str(found[name]) for name in names if name in found}

    assert differing("LRA", "image") == {"attention_dropout": "0.2"}, "neither clips"
    assert differing("Skyformer", "image") == {"attention_dropout": "0.1", "clip": "1 by value"}
    assert "clip" in differing("LRA", "image", training=training)


def test_a_setting_is_the_same_by_its_value_and_not_by_its_text() -> None:
    assert _is_same(0.1, 0.1) and _is_same("none", "none") and _is_same(None, "none")
    assert not any(map(_is_same, (0.1, True, None, "none"), ("0.1", "yes", "", "off")))


def test_tables_with_inputs_as_long_as_there_are_shown_and_notes_are_said_once() -> None:
    long = data("text", length=2000)
    records = [
        quality("sdpa", "text"),
        quality("lstm", "text"),
        *(quality("sdpa", "text", scale=scale, data_spec=long) for scale in ("small", "paper")),
    ]
    first, second = sections(analysed(records))
    assert {first.setting, second.setting} == {"small", "paper"}
    assert first.text and first.tables[0].notes and first.tables[1].notes
    assert not (second.text or second.tables[0].notes or second.tables[1].notes)
    # Without any as long the first table of accuracies has them.
    assert only(*records[:2], quality("sdpa", "text", scale="small")).setting == "mini"


@pytest.mark.parametrize(
    ("name", "task"), [("s4d", "listops"), ("identity", "text"), ("sdpa", "x")]
)
def test_without_a_published_figure_there_is_no_section(name: str, task: str) -> None:
    assert sections(analysed([quality(name, task, 0.4)])) == []
