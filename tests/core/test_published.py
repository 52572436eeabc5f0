"""LRA's Table 2 as it is printed, and a file that is none."""

from __future__ import annotations

from pathlib import Path

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
