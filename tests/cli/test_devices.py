"""`--devices`: each training is shared, which its record and the report say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lra.core.cells import QualityCell
from lra.engine.machine import host
from lra.engine.plan import devices
from lra.store import Store

from .conftest import HERE

USAGE = 2
TRAINED = f"""
title = "one training"
[[quality]]
scale = "{HERE / "tiny.toml"}"
tasks = ["listops"]
"""


@pytest.fixture
def asked(tmp_path: Path) -> list[str]:
    (tmp_path / "trained.toml").write_text(TRAINED)
    return ["run", "--impl", "identity", "--suite", "trained.toml", "--device", "cpu"]


@pytest.mark.skipif(host.cores_allowed() < 2, reason="a process needs a core")
def test_a_training_on_two_devices_is_one_record_that_says_so(
    asked: list[str], lra, tmp_path: Path
) -> None:
    asked += ["--task", "listops", "--set", "training.steps=20", "--devices", "2"]
    ran = lra(*asked)
    assert ran.returncode == 0, ran.stderr
    records = Store(tmp_path / "results/runs/default").records()
    (trained,) = (record for record in records if isinstance(record.cell, QualityCell))
    assert trained.status == "ok" and trained.method["devices"] == 2
    page = (tmp_path / "reports/default/report.md").read_text(encoding="utf-8")
    assert "identity on listops (2)" in page
    again = lra(*asked)
    assert "0 cells to run, 2 " in again.stderr
    # The same cell, however many share it.
    alone = lra(*asked[:-2], "--dry-run", "--json")
    assert [cell["state"] for cell in json.loads(alone.stdout)] == ["done", "done"]


def test_a_dry_run_says_which_cells_are_shared(
    asked: list[str], lra, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "cores_allowed", lambda: 4)
    ran = lra(*asked, "--devices", "2", "--dry-run")
    labels = [line.split(maxsplit=2)[2] for line in ran.stdout.splitlines()]
    assert labels == ["baselines listops", "identity listops on 2 devices"]


def test_more_processes_than_cores_are_refused(
    asked: list[str], lra, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(host, "cores_allowed", lambda: 4)
    for more, number, needed, most in (("", 5, 5, 4), ("threads = 3\n", 2, 6, 1)):
        (tmp_path / "trained.toml").write_text(TRAINED + more)
        ran = lra(*asked, "--devices", str(number), "--dry-run")
        (line,) = ran.stderr.splitlines()
        assert ran.returncode == USAGE and f"--devices {number}: " in line
        assert f"{needed} cores, and 4 " in line and line.endswith(f"ask for {most}")


def test_more_gpus_than_there_are_are_refused(
    asked: list[str], lra, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = {"name": "Example GPU", "memory_bytes": 1, "driver": "580.1"}
    for module in (host, devices):
        monkeypatch.setattr(module, "gpus", lambda: [card, card])
    asked[-1] = "cuda"
    assert lra(*asked, "--devices", "2", "--dry-run").returncode == 0
    ran = lra(*asked, "--devices", "3", "--dry-run")
    (line,) = ran.stderr.splitlines()
    assert ran.returncode == USAGE and "--devices 3: " in line and ": 2; " in line
