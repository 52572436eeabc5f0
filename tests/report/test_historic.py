"""Records as earlier programs wrote them, in reports of today."""

from __future__ import annotations

from pathlib import Path

import lra
from lra.core.records import Record, decode
from lra.report.load.select import join
from lra.report.render import render

FOLDER = Path(__file__).parents[1] / "fixtures/records"
THEN = FOLDER / "schema-1"
FIRST, LAST = "4d094396cf31d48aa05c", "8e32141faa9c050a0184"
"""First and last record of the same timing."""


def read(id: str) -> Record:
    return decode((THEN / f"{id}.json").read_bytes())


def test_of_each_record_it_is_told_where_it_is_from() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    told = {line.split("|")[2].strip() for line in readme.splitlines() if line.startswith("| ")}
    assert {file.stem for file in FOLDER.glob("*/*.json")} <= told


def test_the_first_and_the_last_of_a_timing_are_one_question() -> None:
    """Fields that a later program added to cells default to the earlier one's behaviour."""
    first, last = read(FIRST), read(LAST)
    assert len({first.cell.id, last.cell.id, first.id, last.id}) == 4
    selection = join([first, last], [])
    assert [kept.record.id for kept in selection.measurements] == [LAST]
    assert selection.superseded == 1


def test_all_of_them_make_a_report(tmp_path: Path) -> None:
    loaded = lra.load(THEN)
    assert set(loaded["kind"]) == {"quality", "baseline", "efficiency", "error"}
    assert loaded["record"].nunique() > 10
    made = render(
        [decode(file.read_bytes()) for file in THEN.glob("*.json")], [], tmp_path, title="then"
    )
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert made.page.is_file()
    for heading in ("Test accuracy", "Time of a training step", "Time of a decoding step"):
        assert f"### {heading}" in text
