"""A report is made of records alone, with the committed ones beside them."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from lra.cli.report import MARK
from lra.core.cells import EfficiencyCell, QualityCell
from lra.core.errors import LONGEST
from lra.core.hashing import value_hash
from lra.core.protocol import Mechanism
from lra.core.records import Metric
from lra.store import Store, reference

from .conftest import TINY


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
    with Store(tmp_path / "results/reference/one-machine").locked() as committed:
        committed.save(replace(trained, cell=cell, id=cell.id))
    asked = ("report", "--store", str(finished.store), "--out")
    assert lra(*asked, "without").returncode == 0
    monkeypatch.setattr(reference, "__file__", str(tmp_path / "lra/store/reference.py"))
    assert lra(*asked, "with").returncode == 0
    text = {out: Path(out, "report.md").read_text(encoding="utf-8") for out in ("without", "with")}
    assert "elsewhere" not in text["without"]
    assert "| elsewhere (reference)" in text["with"]


def test_what_is_stated_of_electricity_makes_an_estimate(lra, finished, tmp_path) -> None:
    """CO2e and cost come from the energy that the board of a GPU counts."""
    timed = next(r for r in Store(finished.store).records() if isinstance(r.cell, EfficiencyCell))
    cell = replace(timed.cell, device="cuda")
    energy = {"energy": Metric(value=3.6, unit="J"), "energy_seconds": Metric(value=0.1, unit="s")}
    metrics = {**timed.metrics, **energy}
    with Store(tmp_path / "powered").locked() as store:
        store.save(replace(timed, id=cell.id, cell=cell, metrics=metrics))
    stated = ("--grid-intensity", "400", "--price", "0.3")
    ran = lra("report", "--store", "powered", *stated)
    assert ran.returncode == 0, ran.stderr
    text = (tmp_path / "reports/powered/report.md").read_text(encoding="utf-8")
    assert "Estimate: CO2e" in text and "400 g of CO2e per kWh" in text and "0.3 per kWh" in text
    ran = lra("report", "--store", "powered", "--grid-intensity", "-1")
    assert ran.returncode == 2 and ran.stderr.count("\n") == 1
    assert "--grid-intensity -1" in ran.stderr


def two_of_one_name(finished: Path, folder: Path) -> tuple[str, str]:
    """Two stores in folders of their own, so that their last names are one."""
    for place in ("here", "there"):
        shutil.copytree(finished, folder / place / "mine")
    return "here/mine", "there/mine"


def written(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_report_is_not_written_over_that_of_another_store(lra, finished, tmp_path: Path) -> None:
    here, there = two_of_one_name(finished.store, tmp_path)
    for _ in range(2):
        ran = lra("report", "--store", here)
        assert (ran.returncode, ran.stderr) == (0, "")
    before = written(tmp_path / "reports")
    ran = lra("report", "--store", there)
    assert ran.returncode == 2
    (line,) = ran.stderr.splitlines()
    assert f"'{here}'" in line and f"'{there}'" in line and "--out FOLDER" in line
    assert written(tmp_path / "reports") == before
    ran = lra("report", "--store", there, "--out", "own")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert (tmp_path / "own" / MARK).read_text() == "../there/mine"
    assert written(tmp_path / "reports") == before


def test_a_folder_that_is_asked_for_is_written_with_a_word(lra, finished, tmp_path: Path) -> None:
    here, there = two_of_one_name(finished.store, tmp_path)
    lra("report", "--store", here)
    ran = lra("report", "--store", there, "--out", "reports/mine")
    assert ran.returncode == 0
    (line,) = ran.stderr.splitlines()
    assert f"'{here}'" in line and f"'{there}'" in line
    assert lra("report", "--store", there).stderr == ""
    assert lra("report", "--store", here).returncode == 2


def test_a_folder_that_two_stores_are_given_is_written_over_with_a_word(
    lra, finished, tmp_path: Path
) -> None:
    here, there = two_of_one_name(finished.store, tmp_path)
    told = [lra("report", "--store", store, "--out", "shared") for store in (here, there, there)]
    assert [ran.returncode for ran in told] == [0, 0, 0]
    assert [len(ran.stderr.splitlines()) for ran in told] == [0, 1, 0]
    assert f"'{here}'" in told[1].stderr and f"'{there}'" in told[1].stderr


def test_a_mark_names_nobody(
    lra, finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_of_one_name(finished.store, tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "here"))
    for store in ("here/mine", "there/mine", "here/mine"):
        ran = lra("report", "--store", store, "--out", "out")
        assert ran.returncode == 0 and (not ran.stderr or "'out'" in ran.stderr)
        assert ("mine" in (tmp_path / "out" / MARK).read_text()) == store.startswith("there")


@pytest.mark.parametrize("name", ["index.html", "report.md", MARK])
def test_a_pipe_in_place_of_a_file_is_not_waited_for(
    name: str, lra, finished, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    os.mkfifo(tmp_path / "out" / name)
    ran = lra("report", "--store", str(finished.store), "--out", "out")
    assert ran.returncode == 2
    assert f"{name} is a pipe" in ran.stderr.splitlines()[-1]


def test_a_mark_says_no_more_than_the_way_to_the_store(lra, finished, tmp_path: Path) -> None:
    here, _ = two_of_one_name(finished.store, tmp_path)
    lra("report", "--store", str(tmp_path / here))
    mark = tmp_path / "reports/mine" / MARK
    assert mark.read_text() == "../../here/mine"
    assert lra("report", "--store", here).returncode == 0


def test_a_mark_that_cannot_be_written_is_one_line(lra, finished, tmp_path: Path) -> None:
    here, _ = two_of_one_name(finished.store, tmp_path)
    (tmp_path / "reports/mine" / MARK).mkdir(parents=True)
    ran = lra("report", "--store", here)
    assert ran.returncode == 2
    assert MARK in ran.stderr.splitlines()[-1]


def test_a_mark_that_was_damaged_is_another_stores(lra, finished, tmp_path: Path) -> None:
    here, _ = two_of_one_name(finished.store, tmp_path)
    folder = tmp_path / "reports/mine"
    folder.mkdir(parents=True)
    (folder / "loop").symlink_to("loop")
    for mark in (b"", b"\xff\xfe", b"x" * 5000, b"two\nlines", b"loop", b"a\0b"):
        (folder / MARK).write_bytes(mark)
        ran = lra("report", "--store", here)
        assert ran.returncode == 2
        (line,) = ran.stderr.splitlines()
        assert f"'{here}'" in line and len(line) <= len("lra: ") + LONGEST
    ran = lra("report", "--store", here, "--out", "reports/mine")
    assert ran.returncode == 0
    (line,) = ran.stderr.splitlines()
    assert f"'{here}'" in line and len(line) <= LONGEST
    assert (folder / MARK).read_text() == "../../here/mine"


def test_a_mark_that_cannot_be_read_is_one_line(
    lra, finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, _ = two_of_one_name(finished.store, tmp_path)
    assert lra("report", "--store", here).returncode == 0
    read = Path.read_text

    def refusing(path: Path, *arguments: str, **more: str) -> str:
        if path.name == MARK:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return read(path, *arguments, **more)

    monkeypatch.setattr(Path, "read_text", refusing)
    ran = lra("report", "--store", here)
    assert ran.returncode == 2
    (line,) = ran.stderr.splitlines()
    assert MARK in line and "permission denied" in line


@pytest.mark.parametrize(("place", "code"), [("here", 0), ("there", 2)])
def test_a_mark_of_an_earlier_version_is_understood(
    place: str, code: int, lra, finished, tmp_path: Path
) -> None:
    two_of_one_name(finished.store, tmp_path)
    folder = tmp_path / "reports/mine"
    folder.mkdir(parents=True)
    (folder / MARK).write_text(value_hash(str((tmp_path / "here/mine").resolve())))
    assert lra("report", "--store", f"{place}/mine").returncode == code


def test_a_run_whose_report_has_no_place_says_so_and_ends_as_it_would(
    lra, finished, tmp_path: Path
) -> None:
    _, there = two_of_one_name(finished.store, tmp_path)
    folder = tmp_path / "reports/mine"
    folder.mkdir(parents=True)
    (folder / MARK).write_text("../../here/mine")
    ran = lra("run", "--impl", "linear", *TINY, "--store", there)
    assert ran.returncode == 0, ran.stderr
    assert "--out FOLDER" in ran.stderr and "report:" not in ran.stdout
    assert "records:" in ran.stdout
    assert {file.name for file in folder.iterdir()} == {MARK}
