"""`lra identity audit`, on records that a run of this machine has just made."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from lra.cli.exit_codes import REGRESSION
from lra.identity import edits

from .conftest import TINY


def test_an_audit_names_the_figures_that_are_not_what_they_were(
    lra, finished, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    shutil.copytree(finished.store, store)
    told = {}
    for file in store.glob("*.json"):
        record = json.loads(file.read_text(encoding="utf-8"))
        if record["cell"]["type"] == "quality" and not told:
            record["metrics"]["test_loss"]["value"] += 1e-6
            file.write_text(json.dumps(record), encoding="utf-8")
            told[record["id"]] = "test_loss"
    ran = lra("identity", "audit", "--store", str(store), "--records", "2")
    assert ran.returncode == REGRESSION
    *lines, last = ran.stdout.splitlines()
    found = {line.partition("(")[2].partition(")")[0]: line.rpartition(": ")[2] for line in lines}
    assert len(found) == 2 and told.items() <= found.items()
    assert [words for id, words in found.items() if id not in told] == ["the same"]
    assert last.startswith("2 ") and " 1 " in last


def test_a_store_without_records_is_one_line(lra, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    ran = lra("identity", "audit", "--store", str(tmp_path / "store"))
    assert ran.returncode == 2 and len(ran.stderr.splitlines()) == 1


def test_cells_of_an_edited_clone_stand_apart_and_a_run_says_so(
    lra, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("run", "--impl", "linear", *TINY, "--dry-run", "--json")
    plain = lra(*asked)
    monkeypatch.setattr(edits, "unchecked_edits", lambda root: {"lra/training/loop.py": "e1"})
    ran = lra(*asked)
    assert (plain.stderr.count("loop.py"), ran.stderr.count("loop.py")) == (0, 1)
    ids = [{cell["id"] for cell in json.loads(one.stdout)} for one in (plain, ran)]
    assert len(ids[0]) == len(ids[1]) > 2 and not ids[0] & ids[1]
