"""The main job, end to end, on a task of seconds."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from lra.cli.data import balanced_places
from lra.core.cells import EfficiencyCell, QualityCell
from lra.core.errors import UsageError
from lra.core.records import Failure, Metric
from lra.engine.process import pool
from lra.store import Store

from .conftest import HERE, TINY
from .gate import PATIENCE

INTERRUPTED = 130
FAILED_CELLS = 4


def test_it_trains_measures_and_reports_and_a_rerun_does_only_what_is_missing(
    lra, tmp_path: Path
) -> None:
    asked = ["run", "--impl", "performer", *TINY]
    ran = lra(*asked)
    assert ran.returncode == 0, ran.stderr
    assert "tiny_suite" in ran.stderr and "5 cells to run" in ran.stderr
    assert "reports/default/index.html" in ran.stdout
    page = (tmp_path / "reports/default/index.html").read_text(encoding="utf-8")
    assert "performer" in page and "listops" in page
    for form in ("md", "csv"):
        assert (tmp_path / f"reports/default/report.{form}").is_file()
    records = Store(tmp_path / "results/runs/default").records()
    assert sorted(record.cell.__struct_config__.tag for record in records) == [
        "baseline", "efficiency", "efficiency", "efficiency", "quality",
    ]  # fmt: skip
    assert {record.status for record in records} == {"ok"}

    files = sorted((tmp_path / "results/runs/default").glob("*.json"))
    before = {file: file.read_bytes() for file in files}
    files[0].unlink()
    again = lra(*asked)
    assert again.returncode == 0
    assert "1 cell to run, 4 " in again.stderr
    after = {file: file.read_bytes() for file in files}
    assert {file for file in files if after[file] != before[file]} == {files[0]}
    assert not lra(*asked, "--quiet").stderr


@pytest.mark.parametrize(
    ("more", "due"), [((), ()), (("--baselines",), ("sdpa", "identity", "local"))]
)
def test_dry_run_writes_nothing(
    more: tuple[str, ...], due: tuple[str, ...], lra, tmp_path: Path
) -> None:
    ran = lra("run", "--impl", "linear", *TINY, "--dry-run", *more)
    assert ran.returncode == 0
    lines = [line.split()[1:] for line in ran.stdout.splitlines() if line.endswith(" listops")]
    assert lines == [["due", name, "listops"] for name in ("baselines", *due, "linear")]
    assert not (tmp_path / "results").exists()


def test_a_dry_run_for_scripts(finished, lra, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    shutil.copytree(finished.store, store.path)
    trained = next(r for r in store.records() if isinstance(r.cell, QualityCell))
    (store.path / f"{trained.id}.json").unlink()
    ran = lra("run", "--impl", "linear", *TINY, "--store", "store", "--dry-run", "--json")
    assert ran.returncode == 0
    cells = json.loads(ran.stdout)
    assert len(cells) == 5 and all(set(c) == {"id", "state", "label", "seconds"} for c in cells)
    due = [cell for cell in cells if cell["state"] == "due"]
    assert [(cell["id"], cell["label"]) for cell in due] == [(trained.id, "linear listops")]
    assert {cell["state"] for cell in cells} == {"due", "done"}
    assert ran.stderr.startswith("1 cell due")


def test_settings_reach_the_record(lra) -> None:
    ran = lra(
        "run", "--impl", "performer", *TINY, "--task", "listops", "--json",
        "--set", "features=8", "--set", "training.steps=10", "--set", "model.mlp_width=16",
    )  # fmt: skip
    trained = [r["cell"] for r in json.loads(ran.stdout) if r["cell"]["type"] == "quality"]
    assert [cell["mechanism"]["config"]["features"] for cell in trained] == [8]
    assert [cell["training"]["steps"] for cell in trained] == [10]
    assert [cell["model"]["mlp_width"] for cell in trained] == [16]


def test_a_failed_cell_is_a_row_and_exit_4(lra, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(
        "from attention_impls.dense.full import Full\n"
        "class Broken(Full):\n"
        "    def attend(self, *arguments, **more):\n"
        "        raise RuntimeError('on purpose')\n"
    )
    ran = lra("run", "--impl", "broken.py:Broken", *TINY)
    assert ran.returncode == FAILED_CELLS
    assert "Broken listops: error (RuntimeError: on purpose" in ran.stderr
    page = (tmp_path / "reports/default/index.html").read_text(encoding="utf-8")
    assert "on purpose" in page


def test_bad_data_ends_a_run_before_its_first_cell(lra, tmp_path: Path) -> None:
    """The suite has a timing, too, which needs no data."""
    (tmp_path / "bad").mkdir()
    for part in ("train", "val", "test"):
        rows = f"[MAX 1 {'5' if part == 'test' else '7'} ]\t7\n" * 60
        (tmp_path / f"bad/basic_{part}.tsv").write_text(f"Source\tTarget\n{rows}")
    asked = ("run", "--impl", "linear", *TINY, "--data", "listops=bad")
    ran = lra(*asked)
    assert ran.returncode == 2 and "Traceback" not in ran.stderr
    assert "'bad/basic_test.tsv', row 1: Target is 7, the value" in ran.stderr.splitlines()[-1]
    assert Store(tmp_path / "results/runs/default").records() == []

    (tmp_path / "bad/basic_test.tsv").write_text("Source\tTarget\n" + "[MAX 1 7 ]\t7\n" * 60)
    assert lra(*asked).returncode == 0
    assert len(Store(tmp_path / "results/runs/default").records()) > 2


@pytest.mark.parametrize("store", ["taken", "taken/below"])
def test_a_store_that_is_a_file(store: str, lra, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    ran = lra("run", "--impl", "linear", *TINY, "--store", store)
    assert ran.returncode == 2
    (line,) = (ran.stdout + ran.stderr).splitlines()
    assert f"'{store}'" in line and "--store" in line


@pytest.mark.parametrize("which", ["missing", "failed", "all", "disturbed"])
def test_rerun_says_which_cells_are_due(which: str, finished, lra, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    shutil.copytree(finished.store, store.path)
    trained = next(r for r in store.records() if isinstance(r.cell, QualityCell))
    store.save(replace(trained, status="error", failure=Failure(type="Error", message="once")))
    timed = next(r for r in store.records() if isinstance(r.cell, EfficiencyCell))
    slow = Metric(value=9.0, unit="s", samples=(9.0,), minimum=9.0, q1=9.0, q3=9.0)
    store.save(replace(timed, metrics={**timed.metrics, "control_after": slow}))
    ran = lra("run", "--impl", "linear", *TINY, "--store", "store", "--rerun", which, "--dry-run")
    assert ran.returncode == 0
    cells = dict(line.split()[:2] for line in ran.stdout.splitlines())
    due = {id for id, state in cells.items() if state == "due"}
    assert len(cells) == 5
    if which == "disturbed":
        # Timings beside real ones on a busy machine may be disturbed too.
        assert timed.id in due and trained.id not in due
    else:
        assert due == {"missing": set(), "failed": {trained.id}, "all": set(cells)}[which]


def test_jobs_and_timeout_reach_the_pool(lra, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, slots: int, timeout: float | None, **__: object) -> None:
        raise UsageError(f"{slots} side by side, {timeout} s each")

    monkeypatch.setattr(pool, "Pool", refuse)
    asked = ("run", "--impl", "linear", *TINY, "--jobs", "3")
    assert "lra: 3 side by side, None s each\n" in lra(*asked).stderr
    ran = lra(*asked, "--timeout", "2m")
    assert "lra: 3 side by side, 120.0 s each\n" in ran.stderr


def test_offline_tells_the_libraries_that_fetch(lra, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
        monkeypatch.setenv(name, "0")
    lra("run", "--impl", "linear", *TINY, "--dry-run")
    assert os.environ["HF_HUB_OFFLINE"] == os.environ["HF_DATASETS_OFFLINE"] == "0"
    lra("run", "--impl", "linear", *TINY, "--dry-run", "--offline")
    assert os.environ["HF_HUB_OFFLINE"] == os.environ["HF_DATASETS_OFFLINE"] == "1"


def test_two_runs_on_one_store(lra, tmp_path: Path) -> None:
    with Store(tmp_path / "results/runs/default").locked():
        second = lra("run", "--impl", "linear", *TINY)
    assert second.returncode == 2 and "in use" in second.stderr


def test_ctrl_c_keeps_finished_cells_and_exits_130(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """The training takes minutes; it has a checkpoint and another cell has ended by then."""
    asked = ("run", "--impl", "full", *TINY, "--set", "training.steps=1000000")
    folder = tmp_path / "results/runs/default"
    with subprocess.Popen(
        [sys.executable, "-m", "lra", *asked], cwd=tmp_path, env=environment, text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            deadline = time.monotonic() + PATIENCE
            while not (list(folder.glob("*.json")) and list(folder.glob("checkpoints/*.pt"))):
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            _, told = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == INTERRUPTED, told
    assert "again" in told and "Traceback" not in told
    done = Store(folder).records()
    assert [record.status for record in done] == ["ok"] * len(done) and done
    assert list((folder / "checkpoints").iterdir())


@pytest.mark.parametrize("records", [True, False])
def test_a_run_out_of_budget_says_only_that_cells_are_left(
    records: bool, finished, lra, tmp_path: Path
) -> None:
    if records:
        shutil.copytree(finished.store, tmp_path / "store")
    asked = ("run", "--impl", "linear", *TINY, "--store", "store")
    ran = lra(*asked, "--rerun", "all", "--budget", "0.1s")
    assert ran.returncode == 0, ran.stderr
    assert "5 cells left" in ran.stdout
    assert "without a record" not in ran.stderr and "no record" not in ran.stdout


def test_cells_left_are_told_to_scripts_too(finished, lra, tmp_path: Path) -> None:
    shutil.copytree(finished.store, tmp_path / "store")
    asked = ("run", "--impl", "linear", *TINY, "--task", "listops", "--store", "store", "--json")
    ran = lra(*asked, "--set", "training.steps=20", "--budget", "0.1s")
    assert ran.returncode == 0, ran.stderr
    assert "1 cell left" in ran.stderr
    *done, left = json.loads(ran.stdout)
    assert {record["status"] for record in done} == {"ok"} and len(done) == 4
    assert left["status"] == "left" and left["cell"]["training"]["steps"] == 20
    assert "left" not in lra(*asked).stdout


def test_a_budget_stops_cleanly(lra, tmp_path: Path) -> None:
    # No timing goes before it: on a busy machine two of them take all of the budget.
    suite = tmp_path / "one_training.toml"
    suite.write_text('title = "one"\n[[quality]]\nscale = "tiny"\ntasks = ["listops"]\n')
    asked = ("run", "--impl", "full", "--suite", str(suite), *TINY[2:])
    ran = lra(*asked, "--set", "training.steps=1000000", "--budget", "6s")
    assert ran.returncode == 0, ran.stderr
    assert "left" in ran.stdout and "full listops" in ran.stderr


def test_list_names_every_mechanism(lra) -> None:
    listed = json.loads(lra("list", "impls", "--json").stdout)
    assert {"full", "sdpa", "identity", "linear", "performer", "linformer", "sliding_window"} <= {
        row["name"] for row in listed
    }
    assert "mini" in lra("list", "scales").stdout
    assert "listops" in lra("list", "tasks").stdout


def test_data_show_prints_examples_and_baselines(lra) -> None:
    shown = lra("data", "show", "--task", "listops", "--scale", str(HERE / "tiny.toml")).stdout
    assert "300 examples" in shown and "majority" in shown and "folder" in shown
    labels = [line for line in shown.splitlines() if line.startswith("  label ")]
    assert len(labels) == len(set(labels)) == 2


def test_examples_shown_are_of_different_labels_while_there_are_any() -> None:
    assert balanced_places([1, 1, 0, 1, 2], 2) == [0, 2]
    assert balanced_places([1, 1, 0, 1, 2], 4) == [0, 2, 4, 1]
    assert balanced_places([1, 1], 2) == [0, 1]
    assert balanced_places([1], 2) == [0]
    assert balanced_places([], 2) == []
