"""Records left where cells or the run itself are ended: by the command line, on real cells."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lra.core.cells import EfficiencyCell, QualityCell
from lra.core.records import Record
from lra.store import Store

from .conftest import SAME_AGAIN, TIMED, TINY
from .gate import PATIENCE

FAILED_CELLS = 4

TOO_LARGE = """
import torch
from attention_impls.dense.full import Full

class TooLarge(Full):
    def attend(self, q, k, v, *arguments, **more):
        if v.shape[2] >= 64:
            torch.empty(1 << 60)
        return super().attend(q, k, v, *arguments, **more)
"""


def answers(record: Record) -> dict[str, Any]:
    """Content of a record, without when it was made and how long that took."""
    said: dict[str, Any] = msgspec.to_builtins(record)
    for name in ("started_at", "seconds"):
        del said[name]
    for name in ("training_seconds", "steps_per_second"):
        said["metrics"].pop(name, None)
    for point in said["curve"]:
        del point["seconds"]
    said["method"].pop("continued", None)
    return said


def test_a_run_that_is_killed_and_continued_ends_as_an_uninterrupted_one(
    lra, tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [
        "run", "--impl", "performer", "--suite", "both.toml", *TINY[2:],
        "--set", "training.steps=500", "--jobs", "2",
    ]  # fmt: skip
    stores = []
    for name in ("killed", "straight"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "both.toml").write_text(SAME_AGAIN)
        stores.append(Store(tmp_path / name / "results/runs/default"))
    killed = stores[0]
    before: dict[str, bytes] = {}
    with subprocess.Popen(
        [sys.executable, "-m", "lra", *asked],
        cwd=tmp_path / "killed", env=environment, text=True, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        deadline = time.monotonic() + PATIENCE
        while not (before and list(killed.path.glob("checkpoints/*.pt"))):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            before = {file.name: file.read_bytes() for file in killed.path.glob("*.json")}
            time.sleep(0.01)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    for store in stores:
        monkeypatch.chdir(store.path.parents[2])
        ran = lra(*asked)
        assert ran.returncode == 0, ran.stderr
    assert {name: (killed.path / name).read_bytes() for name in before} == before, "done twice"
    trained = [
        [r.method["continued"] for r in store.records() if isinstance(r.cell, QualityCell)]
        for store in stores
    ]
    assert trained == [[True], [False]]
    found = [[answers(record) for record in store.records()] for store in stores]
    assert len(found[1]) == 1 + 1 + 4
    assert found[0] == found[1]
    # That it was continued is in the record, and nothing in the report tells the two apart.
    reports = [store.path.parents[2] / "reports/default/report.md" for store in stores]
    one, other = (file.read_text(encoding="utf-8") for file in reports)
    assert one == other


def test_a_cell_that_runs_out_of_memory_costs_no_other_its_row(lra, tmp_path: Path) -> None:
    (tmp_path / "big.py").write_text(TOO_LARGE)
    (tmp_path / "timed.toml").write_text(TIMED)
    asked = ("sweep", "--impl", "big.py:TooLarge", "--suite", "timed.toml", "--store", "store")
    store = Store(tmp_path / "store")

    def statuses() -> dict[tuple[str, int], str]:
        return {
            (r.cell.mechanism.name, r.cell.length): r.status
            for r in store.records()
            if isinstance(r.cell, EfficiencyCell)
        }

    ran = lra(*asked)
    assert ran.returncode == FAILED_CELLS, ran.stderr
    assert "1 cell failed" in ran.stderr and "--rerun failed" in ran.stderr
    others = {(name, n): "ok" for name in ("identity", "sdpa") for n in (32, 64, 128)}
    mine = {32: "ok", 64: "oom", 128: "skipped"}
    assert statuses() == {**others, **{("TooLarge", n): status for n, status in mine.items()}}
    page = (tmp_path / "reports/store/report.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith(("| TooLarge", "| sdpa"))]
    place = next(n for n, row in enumerate(rows) if "OOM" in row)
    own, exact = rows[place : place + 2]
    assert own.split("|")[3].strip() == "OOM" and "skipped" in own.split("|")[4]
    assert all(any(map(str.isdigit, cell)) for cell in exact.split("|")[2:5]), exact
    # Another run, of a longer input: it is not tried either.
    ran = lra(*asked, "--length", "256")
    assert ran.returncode == 0, ran.stderr
    assert statuses()["TooLarge", 256] == "skipped" and statuses()["sdpa", 256] == "ok"
