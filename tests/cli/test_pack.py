"""A packed store is to every verb as it was loose; one word packs it."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

import lra as package
from lra.core.records import encode
from lra.store import Store, StoreWarning, reference

from .conftest import SHORT
from .test_bad_stores import SWEEP

USAGE = 2


@pytest.fixture
def twins(finished, tmp_path: Path) -> tuple[Path, Path]:
    """Two copies of the records of a run."""
    for name in ("loose", "packed"):
        shutil.copytree(finished.store, tmp_path / name / "store")
    return tmp_path / "loose" / "store", tmp_path / "packed" / "store"


def test_a_packed_store_is_loaded_reported_and_compared_alike(
    lra, twins: tuple[Path, Path]
) -> None:
    loose, packed = twins
    number = len(Store(packed).loose())
    ran = lra("pack", str(packed))
    assert ran.returncode == 0 and ran.stderr == ""
    (line,) = ran.stdout.splitlines()
    packs = sorted(packed.glob("*.jsonl.gz"))
    assert line.startswith(f"{number} records packed; {len(packs)} packs: ")
    assert not list(packed.glob("*.json")) and list(loose.glob("*.json"))
    assert [encode(one) for one in Store(packed).records()] == [
        encode(one) for one in Store(loose).records()
    ]
    assert package.load(packed).equals(package.load(loose))
    for store in twins:
        assert lra("report", "--store", str(store), "--out", f"{store}-out").returncode == 0
    for name in ("report.md", "report.csv", "index.html"):
        pages = [Path(f"{store}-out", name).read_bytes() for store in twins]
        assert pages[0] == pages[1]
    ran = lra("compare", str(loose), str(packed), "--json")
    assert ran.returncode == 0, ran.stderr
    again = lra("pack", str(packed))
    assert again.stdout.startswith(f"0 records packed; {len(packs)} packs: ")


def test_packed_cells_are_not_due_again_and_new_ones_are_loose(lra, tmp_path: Path) -> None:
    (tmp_path / "short.toml").write_text(SHORT)
    assert lra(*SWEEP).returncode == 0
    store = Store(tmp_path / "store")
    before = store.records()
    assert lra("pack", "store").returncode == 0
    ran = lra(*SWEEP, "--dry-run", "--json")
    assert {one["state"] for one in json.loads(ran.stdout)} == {"done"}
    assert lra(*SWEEP).returncode == 0
    assert store.records() == before and store.loose() == {}
    assert lra(*SWEEP, "--rerun", "all").returncode == 0
    assert len(store.loose()) == len(before) == len(store.records())
    assert store.records() != before


def test_a_store_that_cannot_be_packed_is_refused_in_one_line(
    lra, twins: tuple[Path, Path]
) -> None:
    _, packed = twins

    def refused(store: object, word: str) -> None:
        ran = lra("pack", str(store))
        (line,) = ran.stderr.splitlines()
        assert ran.returncode == USAGE and f"'{store}'" in line and word in line

    with Store(packed).locked():
        refused(packed, "in use")
    refused("none", "no store")
    assert not Path("none").exists()
    (folder := Path("sources")).mkdir()
    refused("sources", "no records")
    assert not list(folder.iterdir())
    (packed / "quality.jsonl.gz").write_bytes(b"{")
    refused(packed, "quality.jsonl.gz")


@pytest.mark.filterwarnings("default::lra.store.StoreWarning")
def test_a_torn_line_is_told_once_by_a_report_and_by_a_frame(lra, twins: tuple[Path, Path]) -> None:
    _, packed = twins
    assert lra("pack", str(packed)).returncode == 0
    file = packed / "efficiency.jsonl.gz"
    first, *others = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
    file.write_bytes(gzip.compress(b"".join([first[:50] + b"\n", *others])))
    ran = lra("report", "--store", str(packed))
    assert ran.returncode == 0
    assert ran.stderr.count("line 1 of efficiency.jsonl.gz") == ran.stderr.count("\n") == 1
    with pytest.warns(StoreWarning, match=r"line 1 of efficiency\.jsonl\.gz"):
        frame = package.load(packed)
    assert frame["record"].nunique() > 0


def test_reference_records_may_be_packed(
    lra, finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "results/reference/one-machine"
    with Store(place).locked() as committed:
        for one in Store(finished.store).records():
            committed.save(replace(one, seconds=one.seconds + 1))
    before = len(committed.records())
    assert lra("pack", str(place)).returncode == 0
    monkeypatch.setattr(reference, "__file__", str(tmp_path / "lra/store/reference.py"))
    assert len(reference.reference_records()) == before > 0
