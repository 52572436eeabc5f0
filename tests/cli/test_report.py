"""A report is made of records alone, with the committed ones beside them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from lra.cli import report
from lra.core.cells import EfficiencyCell, QualityCell
from lra.core.protocol import Mechanism
from lra.core.records import Metric
from lra.store import Store


def test_a_store_is_rendered_again(lra, finished, tmp_path: Path) -> None:
    ran = lra("report", "--store", str(finished.store), "--out", "again")
    assert ran.returncode == 0, ran.stderr
    assert "report: again/index.html" in ran.stdout
    assert "linear" in ran.stdout
    for name in ("index.html", "report.md", "report.csv"):
        again = (tmp_path / "again" / name).read_bytes()
        assert again == (finished.folder / "reports/default" / name).read_bytes()


def test_reference_records_of_a_clone_stand_beside_the_runs(
    lra, finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (trained,) = [
        record for record in Store(finished.store).records() if isinstance(record.cell, QualityCell)
    ]
    cell = replace(trained.cell, mechanism=Mechanism(name="elsewhere"))
    with Store(tmp_path / "results/reference/one-machine").writing() as committed:
        committed.save(replace(trained, cell=cell, id=cell.id))
    asked = ("report", "--store", str(finished.store), "--out")
    assert lra(*asked, "without").returncode == 0
    monkeypatch.setattr(report, "__file__", str(tmp_path / "lra/cli/report.py"))
    assert lra(*asked, "with").returncode == 0
    text = {out: Path(out, "report.md").read_text(encoding="utf-8") for out in ("without", "with")}
    assert "elsewhere" not in text["without"]
    (row,) = [line for line in text["with"].splitlines() if line.startswith("| elsewhere")][:1]
    assert "reference" in row


def test_what_is_stated_of_electricity_makes_an_estimate(lra, finished, tmp_path) -> None:
    """Of energy, which the board of a GPU counts."""
    timed = next(r for r in Store(finished.store).records() if isinstance(r.cell, EfficiencyCell))
    cell = replace(timed.cell, device="cuda")
    energy = {"energy": Metric(value=3.6, unit="J"), "energy_seconds": Metric(value=0.1, unit="s")}
    metrics = {**timed.metrics, **energy}
    with Store(tmp_path / "powered").writing() as store:
        store.save(replace(timed, id=cell.id, cell=cell, metrics=metrics))
    stated = ("--grid-intensity", "400", "--price", "0.3")
    ran = lra("report", "--store", "powered", *stated)
    assert ran.returncode == 0, ran.stderr
    text = (tmp_path / "reports/powered/report.md").read_text(encoding="utf-8")
    assert "Estimate: CO2e of a million forward passes, in g" in text
    assert "400 g of CO2e per kWh and a price of 0.3 per kWh, as stated" in text


def test_assumptions_that_make_no_sense_are_refused_in_one_line(lra, finished) -> None:
    ran = lra("report", "--store", str(finished.store), "--grid-intensity", "-1")
    assert ran.returncode == 2
    (line,) = ran.stderr.splitlines()
    assert "--grid-intensity -1 makes no sense" in line


def test_two_stores_of_one_name_say_that_one_report_replaced_the_other(
    lra, finished, tmp_path: Path
) -> None:
    for place in ("here", "there"):
        shutil.copytree(finished.store, tmp_path / place / "mine")
    replaced = (
        "lra: warning: reports/mine held the report of another store named 'mine' and was "
        "replaced; report --out FOLDER gives each its own\n"
    )
    for place, told in (("here", ""), ("here", ""), ("there", replaced), ("there", "")):
        assert lra("report", "--store", f"{place}/mine").stderr == told
    assert lra("report", "--store", "here/mine", "--out", "own").stderr == ""
    assert not (tmp_path / "own/.store").exists()
