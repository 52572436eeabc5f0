"""LRA's Table 2: measured ratios, with the published ones below and nowhere else."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lra.core.records import Record
from lra.core.scales import load_scale
from lra.report.model import Section, Value
from lra.report.sections.table2 import sections
from lra.report.words import TIMES
from report.analysed import analysed
from report.sample import GPU, efficiency, with_metrics


def step(name: str, length: int, seconds: float | None = 1.0, **more: Any) -> Record:
    """A training step of the text model."""
    sizes = {"level": "model", "task": "text", "batch": 2}
    return efficiency(name, length, "train", seconds, **{"scale": "paper", **sizes, **more})


def only(*records: Record) -> Section:
    (section,) = sections(analysed(records))
    return section


def rows(section: Section, place: int) -> dict[str, tuple[Value, ...]]:
    return {row.label: row.values for row in section.tables[place].rows}


def test_a_place_is_the_measured_ratio_with_the_published_one_below() -> None:
    section = only(
        *(step("sdpa", 1000, 2.0 * slow, replicate=r) for r, slow in enumerate((1, 3))),
        *(step("performer", 1000, 0.5 * slow, replicate=r) for r, slow in enumerate((1, 3))),
        *(step("identity", 1000, 0.25 * slow, replicate=r) for r, slow in enumerate((1, 3))),
    )
    found = {name: values[0] for name, values in rows(section, 0).items()}
    assert found["performer"].number == pytest.approx(4.0)
    assert found["performer"].note == "1.2" and found["identity"].note == ""
    assert found["identity"].number == pytest.approx(8.0)
    # 2 and 6 s a step, 4 in the middle.
    assert (found["sdpa"].text, found["sdpa"].number) == ("1", 1.0)
    assert found["sdpa"].note == "0.25 a second; LRA 8.1"
    assert [table.columns for table in section.tables] == [("1,000",)] * 2
    assert any("block_local" in note for note in section.tables[0].notes)


def test_memory_stands_beside_gigabytes_of_a_device() -> None:
    section = only(
        step("sdpa", 4000, memory=8e9), step("linformer", 4000, memory=2e9), step("s4d", 4000)
    )
    found = {name: values[0] for name, values in rows(section, 1).items()}
    assert section.tables[1].title.endswith("in GB")
    # 0.99 over 9.48.
    assert found["linformer"].text == "2.00"
    assert found["linformer"].note == f"0.25{TIMES}; 0.99 GB 0.10{TIMES}"
    assert found["sdpa"].note == "9.48 GB" and "GB" not in found["s4d"].note


def test_a_figure_that_may_be_a_slip_is_marked_where_it_stands() -> None:
    section = only(
        *(step(name, n) for n in (2000, 3000) for name in ("sdpa", "synthesizer", "linformer"))
    )
    speed, memory = rows(section, 0), rows(section, 1)
    assert [value.note[-1:] for value in speed["synthesizer"]] == ["2", "?"]
    assert speed["synthesizer"][1].note == "2.9?"
    assert f"0.99 GB 0.18{TIMES}?" in memory["linformer"][1].note
    assert "?" not in speed["linformer"][1].note
    notes = [" ".join(table.notes) for table in section.tables]
    assert "Synthesizer" in notes[0] and "Synthesizer" not in notes[1] and "?:" in notes[1]
    section = only(step("sdpa", 1000), step("synthesizer", 1000))
    assert not any("?:" in note for table in section.tables for note in table.notes)


def test_a_place_that_was_not_measured_has_a_word_and_the_published_figure() -> None:
    found = rows(
        only(
            step("sdpa", 1000), step("sdpa", 4000, status="oom"),
            step("bigbird", 1000, status="timeout"), step("bigbird", 4000),
            step("linear", 1000),
        ), 0
    )  # fmt: skip
    assert [value.text for value in found["bigbird"]] == ["timeout", "n/a"]
    assert found["bigbird"][0].note == "0.9"
    assert (found["linear"][1].text, found["sdpa"][1].text) == ("not run", "OOM")
    assert found["bigbird"][0].number is found["linear"][1].number is None


def test_a_busy_timing_marks_its_ratio_and_exact_attentions_marks_all() -> None:
    loud = with_metrics(step("linear", 1000, 0.5), control_after=5e-3)
    quiet = [step("sdpa", n) for n in (1000, 2000)]
    values = rows(only(*quiet, loud, step("linear", 2000, 0.5)), 0)["linear"]
    assert [value.disturbed for value in values] == [True, False]
    loud = with_metrics(step("sdpa", 1000), control_after=5e-3)
    found = rows(only(loud, quiet[1], *(step("linear", n, 0.5) for n in (1000, 2000))), 0)
    assert [value.disturbed for value in found["linear"]] == [True, False]
    assert [value.disturbed for value in found["sdpa"]] == [True, False]


@pytest.mark.parametrize(
    "other",
    [
        {"level": "layer", "task": ""},
        {"task": "listops"},
        {"direction": "causal"},
        {"length": 1024},
        {"mode": "forward"},
        {"scale": "mini"},
    ],
)
def test_other_cells_make_no_section(other: dict[str, Any]) -> None:
    theirs = {"length": 1000, "mode": "train", "level": "model", "task": "text", "scale": "paper"}

    def made(**asked: Any) -> Record:
        return efficiency("linear", asked.pop("length"), asked.pop("mode"), **asked)

    assert only(made(**theirs))
    assert sections(analysed([made(**{**theirs, **other})])) == []


def test_each_setting_has_its_own_section_and_a_reference_alone_none() -> None:
    cpu, gpu = step("linear", 1000), step("linear", 1000, machine=GPU, batch=32)
    found = sections(analysed([cpu, gpu]))
    assert [one.setting.partition(",")[0] for one in found] == ["batch 2", "batch 32"]
    assert len({table.id for one in found for table in one.tables}) == 4
    other = efficiency("linear", 512)
    assert only(other, cpu)
    assert sections(analysed([other], [cpu])) == []


def test_exact_attention_is_called_unfused_where_a_cpu_drops_weights() -> None:
    own = load_scale("paper").model_spec("text")
    kept = msgspec.structs.replace(own, attention_dropout=0.0)
    assert own.attention_dropout
    cases = (
        ({"model": own}, False),
        ({"model": kept}, True),
        ({"model": own, "machine": GPU}, True),
    )
    for more, fused in cases:
        section = only(*(step(name, 1000, **more) for name in ("sdpa", "linear")))
        assert ("sdpa here is fused" in section.text[1]) is fused
