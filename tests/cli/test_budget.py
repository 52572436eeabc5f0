"""A budget on the command line: what is told of it, and that stretches add up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lra.cli import execute
from lra.cli.budget_lines import budget_reach, warn_too_short
from lra.core.cells import BaselineCell, QualityCell
from lra.core.protocol import DataSpec, Machine, Rows
from lra.engine.jobs import Job
from lra.engine.process import pool
from lra.store import Store

from .conftest import TINY

ASKED = ("run", "--impl", "linear", *TINY, "--baselines", "--seeds", "2", "--store", "store")
TRAINED = ("sdpa", "identity", "local", "linear")
PLAN = [
    "baselines listops",
    *(f"{name} listops seed {n}" for name in TRAINED for n in (0, 1)),
    *(f"{name} forward 32" for name in ("identity", "sdpa", "linear")),
]
SECONDS = {"baseline": 100.0, "quality": 50.0, "efficiency": 200.0}


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kind of cell takes its time; `linear` trains a little faster."""

    def expected(missing: list[Job], *_: object) -> dict[str, float]:
        faster = {job.cell.id: "linear" in job.label for job in missing}
        return {
            job.cell.id: SECONDS[job.cell.__struct_config__.tag] - faster[job.cell.id]
            for job in missing
        }

    monkeypatch.setattr(execute, "_expected", expected)


def labels(printed: str) -> list[str]:
    return [line.split(maxsplit=2)[2] for line in printed.splitlines()]


def test_a_dry_run_lists_the_cells_as_a_budget_runs_them(known: None, lra, tmp_path: Path) -> None:
    assert labels(lra(*ASKED, "--dry-run").stdout) == PLAN
    ran = lra(*ASKED, "--dry-run", "--budget", "9m", "--jobs", "1")
    first, again = ([f"{name} listops seed {n}" for name in TRAINED] for n in (0, 1))
    turn = ["baselines listops", *first, *PLAN[-3:], *again]
    assert labels(ran.stdout) == turn
    # 100 + 3 * 50 + 49, of 530; one timing; then one second seed is too many.
    assert "9 min is enough for about 6 " in ran.stderr
    assert "cannot be resumed" not in ran.stderr

    cells = [line.split()[0] for line in ran.stdout.splitlines()]
    checkpoint = Store(tmp_path / "store").checkpoint(cells[-1])
    checkpoint.parent.mkdir(parents=True)
    checkpoint.touch()
    begun = lra(*ASKED, "--dry-run", "--budget", "9m")
    assert labels(begun.stdout) == [turn[-1], *turn[:-1]]


def test_what_is_done_is_listed_last(finished, lra) -> None:
    store = ("--store", str(finished.store))
    asked = ("run", "--impl", "linear", *TINY, "--seeds", "2", *store)
    lines = lra(*asked, "--dry-run", "--budget", "9m").stdout.splitlines()
    assert [line.split()[1] for line in lines] == ["due", *["done"] * 5]


def test_it_runs_them_in_that_order(known: None, lra, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[list[str]] = []

    def listed(self: pool.Pool, jobs: list[Job]) -> list[object]:
        tried.append([job.label for job in jobs])
        return []

    monkeypatch.setattr(pool.Pool, "run", listed)
    foretold = labels(lra(*ASKED, "--dry-run", "--budget", "9m").stdout)
    lra(*ASKED, "--budget", "9m")
    lra(*ASKED)
    assert tried == [foretold, PLAN]


def test_cells_that_fit_into_no_such_budget_are_named(known: None, lra) -> None:
    """Before and after; they are not started, and no fault of the run."""
    asked = ("run", "--impl", "linear", *TINY, "--budget", "60s", "--json")
    foretold = lra(*asked, "--dry-run")
    assert json.loads(foretold.stdout)[0]["label"] == "linear listops", "the one that fits"
    (told,) = (one for one in foretold.stderr.splitlines() if "resumed" in one)
    assert told.startswith("4 cells ") and "60 s: baselines listops (about 2 min), " in told
    assert told.endswith("and 1 more; give --budget 4m")
    ran = lra(*asked)
    assert ran.returncode == 0, ran.stderr
    assert told in ran.stderr and "4 cells left" in ran.stderr
    trained = Store(Path("results/runs/default")).records()
    assert [type(record.cell) for record in trained] == [QualityCell]


def test_what_was_lost_is_noted_and_is_to_have_longer(
    lra, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("run", "--impl", "linear", *TINY, "--store", "store", "--budget", "9m")

    def lost(self: pool.Pool, jobs: list[Job]) -> list[object]:
        job = next(job for job in jobs if job.label == "linear forward 32")
        self.watcher.started(job)
        self.watcher.left(job)
        return []

    monkeypatch.setattr(pool.Pool, "run", lost)
    lra(*asked)
    (note,) = (tmp_path / "store/checkpoints").iterdir()
    note.write_text("800.0\n")
    ran = lra(*asked, "--dry-run")
    assert "9 min: linear forward 32 (about 17 min)" in ran.stderr


def test_a_budget_without_room_for_a_first_cell_says_so(lra) -> None:
    ran = lra("run", "--impl", "linear", *TINY, "--budget", "0.001s")
    assert "before the first cell" in ran.stderr and "--budget" in ran.stderr


def test_warnings_of_one_cell_and_none_where_nothing_is_known_or_left() -> None:
    rows = Rows(train=1, validation=1, test=1)
    cell = BaselineCell(
        machine=Machine(processor="toy", cores=1), torch="0", threads=1, versions={}, scale="toy",
        data=DataSpec(task="listops", hash="0", length=8, rows=rows),
    )  # fmt: skip
    job = Job(cell=cell, cache="")
    for left, jobs in ((50.0, []), (50.0, [job]), (0.0, [])):
        assert warn_too_short(60.0, left, jobs, {}) is None
    reach = budget_reach(60.0, 50.0, [job], {}, slots=1, together=False)
    assert reach is not None and "not known" in reach
    told = warn_too_short(540.0, 528.0, [job], {cell.id: 840.0})
    assert told is not None and told.startswith("1 cell ") and told.endswith("--budget 15m")
    assert "9 min: baselines listops (about 14 min)" in told
