"""Output of a run before it trains, or instead: the estimate, refusals, a profile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lra.cli import execute
from lra.engine.jobs import Job
from lra.engine.process import pool
from lra.store import Store

from .conftest import TINY


@pytest.fixture
def estimate(lra, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """The estimate of five cells, some of known length: three are timings, which run alone."""
    monkeypatch.setattr(pool, "default_slots", lambda jobs: 4)
    jobs = 'system = "slurm"\njobs = {}\n[job]\nprocesses = {}\n'
    (tmp_path / "one.toml").write_text(jobs.format(1, 1))
    (tmp_path / "four.toml").write_text(jobs.format(2, 2))

    def ask(*flags: str, known: int = 5, seconds: float = 600.0) -> str:
        def expected(missing: list[Job], *_: object) -> dict[str, float]:
            return {job.cell.id: seconds for job in missing[:known]}

        monkeypatch.setattr(execute, "_expected", expected)
        ran = lra("run", "--impl", "linear", *TINY, "--device", "cpu", "--dry-run", *flags)
        told = str(ran.stderr).splitlines()[-1]
        assert "5 cells due" in told
        return told

    return ask


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ((), "35 min"),
        (("--jobs", "1"), "50 min"),
        (("--cluster", "local:1"), "50 min"),
        (("--cluster", "one.toml"), "50 min"),
        (("--cluster", "four.toml"), "35 min"),
    ],
)
def test_the_estimate_is_of_as_many_cells_side_by_side(
    flags: tuple[str, ...], told: str, estimate: Callable[..., str]
) -> None:
    if "--cluster" in flags:
        pytest.importorskip("distributed", reason="needs the extra cluster")
    assert f"5 cells due, about {told}" in estimate(*flags)


def test_an_estimate_of_less_than_a_second_says_so(estimate: Callable[..., str]) -> None:
    assert "under a second" in estimate("--jobs", "1", seconds=0.05)


@pytest.mark.parametrize(
    ("known", "told"),
    [
        (0, ["due; no earlier record"]),
        (1, ["due; no earlier record", "4 of these", "other 1", "10 min"]),
        (2, ["due; no earlier record", "3 of these", "other 2", "20 min"]),
        (3, ["due, about 30 min", "2 of these", "not counted"]),
    ],
)
def test_an_estimate_of_some_cells_is_not_read_as_one_of_all(
    known: int, told: list[str], estimate: Callable[..., str]
) -> None:
    line = estimate("--jobs", "1", known=known)
    assert all(words in line for words in told)


def test_a_profile_says_where_a_step_goes_and_how_long_trainings_take(lra, tmp_path: Path) -> None:
    asked = ("run", "--impl", "linear", *TINY, "--set", "training.steps=20")
    ran = lra(*asked, "--profile")
    assert ran.returncode == 0, ran.stderr
    assert "2 cells to run" in ran.stderr
    assert "linear on listops" in ran.stdout and "backward" in ran.stdout
    records = Store(tmp_path / "results/runs/default").records()
    assert sorted(r.cell.__struct_config__.tag for r in records) == ["ceiling", "profile"]
    page = (tmp_path / "reports/default/index.html").read_text(encoding="utf-8")
    assert "Where a training step goes" in page
    foretold = lra(*asked, "--seeds", "3", "--dry-run")
    assert "(3 trainings by measured steps per second)" in foretold.stderr
