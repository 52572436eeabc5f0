"""Published tables as they are printed, and files that are none."""

from statistics import fmean

import pytest

from lra.core import catalogue, published
from lra.core.errors import LraError


def test_table_2_is_whole_and_its_ratios_are_those_of_its_steps():
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


def test_the_suspect_cells_are_marked():
    table = published.efficiency("lra_table2")
    # The note on each holds of the figures.
    assert table.rows["synthesizer"].steps[2] == table.rows["sinkhorn"].steps[2]
    assert table.rows["linformer"].gigabytes[2] == table.rows["linformer"].gigabytes[3]
    figures = ("steps", "gigabytes")
    cells = [(name, n, fig) for name in table.rows for n in table.lengths for fig in figures]
    marked = [cell for cell in cells if table.suspect(*cell) is not None]
    assert marked == [("linformer", 3000, "gigabytes"), ("synthesizer", 3000, "steps")]


TABLE2, ACCURACY = "lra_table2.toml", "accuracy/nystromformer.toml"


@pytest.mark.parametrize(
    ("name", "before", "after", "says"),
    [
        (TABLE2, "steps = [8.1, 4.9, 2.3, 1.4]", "steps = [8.1]", "row 'sdpa' needs 4"),
        (TABLE2, 'exact = "sdpa"', 'exact = "full"', "there is no row 'full'"),
        (TABLE2, 'row = "linformer"', 'row = "linfomer"', "there is no row 'linfomer'"),
        (TABLE2, "length = 3000", "length = 3001", "there is no length 3001"),
        (TABLE2, "gigabytes = [0.85", "gigabyte = [0.85", "gigabyte"),
        (ACCURACY, " width = 64", " widht = 64", "no field 'widht'"),
        (ACCURACY, "text = 65.02", "txt = 65.02", r"row 'Standard': there is no \[tasks.txt\]"),
        (ACCURACY, "text = 65.02", "text = 650.2", "row 'Standard': text = 650.2 is no percent"),
        (ACCURACY, "text = 65.02", "text = nan", "text = NaN is no percent"),
        (ACCURACY, "text = 65.02", "text = ", "Invalid value"),
        (ACCURACY, "seeds = 1", "seed = 1", "seed"),
        (ACCURACY, 'tested = "best"', 'tested = "best step"', "tested"),
    ],
)
def test_a_mistake_names_the_file(name, before, after, says, tmp_path, monkeypatch):
    text = (published._FOLDER / name).read_text(encoding="utf-8")
    assert before in text
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text.replace(before, after), encoding="utf-8")
    monkeypatch.setattr(published, "_FOLDER", tmp_path)
    file = name.rpartition("/")[2]
    with pytest.raises(LraError, match=f"{file}: .*{says}") as caught:
        published.efficiency("lra_table2") if name == TABLE2 else published.qualities()
    assert "\n" not in str(caught.value)


def papers():
    return {paper.name: paper for paper in published.qualities()}


def test_the_tables_of_accuracies_are_whole():
    rows = {"LRA": 13, "Mega": 7, "Nyströmformer": 5, "S4": 1, "Skyformer": 9, "xFormers": 7}
    found, known = papers(), set(catalogue.names("mechanism"))
    assert {name: len(paper.rows) for name, paper in found.items()} == rows
    for paper in found.values():
        assert {row.mechanism for row in paper.rows} - {""} <= known
        assert not any(set(row.failed) & set(row.accuracy) for row in paper.rows)
    assert len(found["LRA"].of("performer")) == 1 and found["S4"].of("s4d") == ()


def test_printed_averages_are_those_of_the_tasks_they_have():
    """All but two: a copying slip here would show."""
    rows = [(paper.name, row) for paper in published.qualities() for row in paper.rows]
    off = {
        f"{name}: {row.model}": round(fmean(row.accuracy.values()) - row.average, 2)
        for name, row in rows
        if row.average is not None and abs(fmean(row.accuracy.values()) - row.average) > 0.011
    }
    # The five of Sinkhorn make 51.48, not 51.29; xFormers rounds one to a tenth.
    assert off == {"LRA: Sinkhorn Trans.": 0.19, "xFormers: Linformer n/4": 0.04}


def test_a_task_has_the_shared_settings_where_it_says_nothing():
    text, image, listops = map(papers()["xFormers"].settings, ("text", "image", "listops"))
    assert (text.model["width"], image.model["width"]) == (256, 64)
    assert text.model["dropout"] == image.model["dropout"] == 0.1
    assert (text.training["batch"], text.training["learning_rate"]) == (32, 1e-4)
    assert listops.training.get("batch") is None


def test_distances_of_attention_have_the_lengths_of_the_released_configurations():
    found, lra = published.spans("lra_spans"), papers()["LRA"]
    assert found.lengths == {task: lra.settings(task).length for task in found.tasks}
    with pytest.raises(ValueError, match="'text', not both"):
        published.Spans(source="", note="", tasks={"text": 350}, lengths={})
