"""Published tables as they are printed, and files that are none."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import pytest

from lra.core import catalogue, published
from lra.core.errors import LraError


def test_table_2_is_whole_and_its_ratios_are_those_of_its_steps() -> None:
    table = published.efficiency("lra_table2")
    assert table.lengths == (1000, 2000, 3000, 4000)
    assert set(table.rows) <= set(catalogue.names("mechanism"))
    assert len(table.rows) == 9, "Sparse and Longformer were left out there"
    base = table.rows[table.exact].steps
    for name, row in table.rows.items():
        for place, printed in enumerate(row.ratios):
            # Both steps are rounded to a tenth, and the ratio is printed with one decimal.
            low = (row.steps[place] - 0.05) / (base[place] + 0.05) - 0.05
            high = (row.steps[place] + 0.05) / (base[place] - 0.05) + 0.05
            assert low <= printed <= high, name


def test_the_suspect_cells_are_marked() -> None:
    table = published.efficiency("lra_table2")
    # What is said of them holds of the figures.
    assert table.rows["synthesizer"].steps[2] == table.rows["sinkhorn"].steps[2]
    assert table.rows["linformer"].gigabytes[2] == table.rows["linformer"].gigabytes[3]
    marked = [
        (name, length, figure)
        for name in table.rows
        for length in table.lengths
        for figure in ("steps", "gigabytes")
        if table.suspect(name, length, figure) is not None  # type: ignore[arg-type]
    ]
    assert marked == [("linformer", 3000, "gigabytes"), ("synthesizer", 3000, "steps")]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("steps = [8.1, 4.9, 2.3, 1.4]", "steps = [8.1]"), "row 'sdpa' needs 4"),
        (('exact = "sdpa"', 'exact = "full"'), "there is no row 'full'"),
        (('row = "linformer"', 'row = "linfomer"'), "there is no row 'linfomer'"),
        (("length = 3000", "length = 3001"), "there is no length 3001"),
        (("gigabytes = [0.85", "gigabyte = [0.85"), "gigabyte"),
    ],
)
def test_a_mistake_names_the_file(
    change: tuple[str, str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (published._FOLDER / "lra_table2.toml").read_text(encoding="utf-8")
    assert change[0] in text
    (tmp_path / "lra_table2.toml").write_text(text.replace(*change), encoding="utf-8")
    monkeypatch.setattr(published, "_FOLDER", tmp_path)
    with pytest.raises(LraError, match=f"lra_table2.toml: .*{told}") as caught:
        published.efficiency("lra_table2")
    assert "\n" not in str(caught.value)


def test_the_tables_of_accuracies_are_whole() -> None:
    papers = {paper.name: paper for paper in published.qualities()}
    known = set(catalogue.names("mechanism"))
    assert {name: len(paper.rows) for name, paper in papers.items()} == {
        "LRA": 13,
        "Mega": 7,
        "Nyströmformer": 5,
        "S4": 1,
        "Skyformer": 9,
        "xFormers": 7,
    }
    for paper in papers.values():
        assert {row.mechanism for row in paper.rows} - {""} <= known
        for row in paper.rows:
            assert not set(row.failed) & set(row.accuracy)
    assert len(papers["LRA"].of("performer")) == 1 and papers["S4"].of("s4d") == ()


def test_printed_averages_are_those_of_the_tasks_they_have() -> None:
    """All but two: a copying slip here would show."""
    off = {
        f"{paper.name}: {row.model}": round(fmean(row.accuracy.values()) - row.average, 2)
        for paper in published.qualities()
        for row in paper.rows
        if row.average is not None and abs(fmean(row.accuracy.values()) - row.average) > 0.011
    }
    # The five of Sinkhorn make 51.48, not 51.29; xFormers rounds one to a tenth.
    assert off == {"LRA: Sinkhorn Trans.": 0.19, "xFormers: Linformer n/4": 0.04}


def test_a_task_has_the_shared_settings_where_it_says_nothing() -> None:
    (paper,) = (paper for paper in published.qualities() if paper.name == "xFormers")
    text, image = paper.settings("text"), paper.settings("image")
    assert (text.model["width"], image.model["width"]) == (256, 64)
    assert text.model["dropout"] == image.model["dropout"] == 0.1
    assert (text.training["batch"], text.training["learning_rate"]) == (32, 1e-4)
    assert paper.settings("listops").training.get("batch") is None


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ((" width = 64", " widht = 64"), "a ModelSpec has no field 'widht'"),
        (("text = 65.02", "txt = 65.02"), r"row 'Standard': there is no \[tasks.txt\]"),
        (("text = 65.02", "text = 650.2"), "row 'Standard': text = 650.2 is no percent"),
        (("text = 65.02", "text = nan"), "text = NaN is no percent"),
        (("text = 65.02", "text = "), "Invalid value"),
        (("seeds = 1", "seed = 1"), "seed"),
    ],
)
def test_a_mistake_in_accuracies_names_the_file(
    change: tuple[str, str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (published._FOLDER / "accuracy/nystromformer.toml").read_text(encoding="utf-8")
    assert change[0] in text
    (tmp_path / "accuracy").mkdir()
    (tmp_path / "accuracy/nystromformer.toml").write_text(text.replace(*change), encoding="utf-8")
    monkeypatch.setattr(published, "_FOLDER", tmp_path)
    with pytest.raises(LraError, match=f"nystromformer.toml: .*{told}") as caught:
        published.qualities()
    assert "\n" not in str(caught.value)


def test_distances_of_attention_have_the_lengths_of_the_released_configurations() -> None:
    found = published.spans("lra_spans")
    (lra,) = (paper for paper in published.qualities() if paper.name == "LRA")
    assert found.lengths == {task: lra.settings(task).length for task in found.tasks}


def test_a_distance_without_a_length_is_refused() -> None:
    with pytest.raises(ValueError, match="'text', not both"):
        published.Spans(source="", note="", tasks={"text": 350}, lengths={})
