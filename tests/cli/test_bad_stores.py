"""Stores with records that cannot be used: what a sweep, a picture and a report do in them."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import lra as package
from lra.cli.exit_codes import FAILED_CELLS, INCONCLUSIVE
from lra.core.records import SCHEMA, Failure, Record
from lra.engine.jobs import Job
from lra.engine.process import pool
from lra.store import Store, StoreWarning

from .conftest import SHORT
from .gate import FLAGS, PLACES, Taken, here

USAGE = 2
SWEEP = ("sweep", "--impl", "linear", "--suite", "short.toml", "--store", "store")
SHOW = ("show", "--impl", "linear", "--length", "8", "--store", "store", "--quiet")


@pytest.fixture
def swept(lra, tmp_path: Path) -> list[Path]:
    """The records of three timings."""
    (tmp_path / "short.toml").write_text(SHORT)
    ran = lra(*SWEEP)
    assert ran.returncode == 0, ran.stderr
    files = sorted((tmp_path / "store").glob("*.json"))
    assert len(files) == 3
    return files


def made_newer(file: Path) -> bytes:
    file.write_text(json.dumps(json.loads(file.read_text()) | {"schema": SCHEMA + 1}))
    return file.read_bytes()


def test_a_sweep_does_not_write_over_what_a_newer_version_wrote(lra, swept: list[Path]) -> None:
    before = [made_newer(file) for file in swept[:2]]
    for more in ((), ("--dry-run",), ("--rerun", "all")):
        ran = lra(*SWEEP, *more)
        assert ran.returncode == USAGE
        (line,) = ran.stderr.splitlines()
        assert "'store': 2 cells" in line and "newer" in line and "--store" in line
    assert [file.read_bytes() for file in swept[:2]] == before


@pytest.mark.filterwarnings("default::lra.store.StoreWarning")
def test_a_sweep_replaces_what_is_torn_and_keeps_the_rest(lra, swept: list[Path]) -> None:
    whole = swept[2].read_bytes()
    swept[0].write_bytes(swept[0].read_bytes()[:100])
    swept[1].write_bytes(b"")
    told = lra(*SWEEP, "--dry-run")
    assert "2 cells due" in told.stderr
    ran = lra(*SWEEP)
    assert ran.returncode == 0, ran.stderr
    warned = [line for line in ran.stderr.splitlines() if "is left out" in line]
    assert sorted(line.split()[3] for line in warned) == [file.name for file in swept[:2]]
    assert swept[2].read_bytes() == whole
    assert len(Store(swept[0].parent).records()) == 3


def test_a_picture_does_not_write_over_what_a_newer_version_wrote(lra, tmp_path: Path) -> None:
    assert lra(*SHOW).returncode == 0
    (file,) = (tmp_path / "store").glob("*.json")
    before = made_newer(file)
    ran = lra(*SHOW)
    assert ran.returncode == USAGE
    assert "newer" in ran.stderr and file.read_bytes() == before


@pytest.mark.parametrize("verb", [("verify",), ("show", "--length", "8")])
def test_a_record_that_is_gone_again_is_told_and_the_others_are_shown(
    verb: tuple[str, ...], lra, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(self: pool.Pool, jobs: list[Job]) -> Iterator[Record]:
        for job in jobs[1:]:
            record = Record(
                id=job.cell.id, cell=job.cell, status="unsupported", seconds=1.0,
                started_at="2026-11-20T10:00:00Z",
                failure=Failure(type="UnsupportedError", message="not here"),
            )  # fmt: skip
            self.store.save(record)
            yield record

    monkeypatch.setattr(pool.Pool, "run", run)
    ran = lra(*verb, "--impl", "full,identity", "--store", "store", "--quiet")
    assert ran.returncode == FAILED_CELLS
    assert "1 cell " in ran.stderr
    assert ran.stdout.startswith("identity: unsupported: ") and "full" not in ran.stdout


@pytest.mark.parametrize(
    ("verb", "code"),
    [(("check",), INCONCLUSIVE), (("baseline", "update", "--reason", "new laws"), FAILED_CELLS)],
)
def test_the_gate_passes_nothing_that_left_no_record(
    verb: tuple[str, ...],
    code: int,
    lra,
    taken: Taken,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here(taken, tmp_path)
    baselines = tmp_path / "baselines"
    before = {file: file.read_bytes() for file in baselines.rglob("*.json")}
    monkeypatch.setattr(pool.Pool, "run", lambda self, jobs: iter(()))
    ran = lra(*verb, *FLAGS, *PLACES)
    assert ran.returncode == code, ran.stdout + ran.stderr
    assert re.search(r"\d cells .* record", ran.stdout + ran.stderr)
    assert {file: file.read_bytes() for file in baselines.rglob("*.json")} == before


@pytest.mark.parametrize("verb", [("check",), ("baseline", "update", "--reason", "new laws")])
def test_the_gate_does_not_write_over_what_a_newer_version_wrote(
    verb: tuple[str, ...], lra, taken: Taken, tmp_path: Path
) -> None:
    here(taken, tmp_path)
    shutil.copytree(taken.folder / "store", tmp_path / "store")
    files = sorted((tmp_path / "store").glob("*.json"))
    before = [made_newer(file) for file in files]
    ran = lra(*verb, *FLAGS, *PLACES)
    assert ran.returncode == USAGE
    (line,) = ran.stderr.splitlines()
    assert f"'store': {len(files)} cells" in line and "newer" in line
    assert [file.read_bytes() for file in files] == before


@pytest.mark.filterwarnings("default::lra.store.StoreWarning")
def test_what_can_be_read_is_reported_compared_and_loaded(lra, swept: list[Path]) -> None:
    made_newer(swept[0])
    told = f"{swept[0].name} .*newer"
    for words in (("report", "--store", "store"), ("compare", "store", "./store")):
        ran = lra(*words)
        assert ran.returncode == 0 and re.search(told, ran.stderr)
    with pytest.warns(StoreWarning, match=told):
        loaded = package.load(swept[0].parent)
    assert set(loaded["record"]) == {file.stem for file in swept[1:]}
