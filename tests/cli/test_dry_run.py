"""Output of a run before it trains, or instead: the estimate, refusals, a profile."""

from __future__ import annotations

from pathlib import Path

import pytest

from lra.cli import execute
from lra.engine.process import pool
from lra.store import Store

from .conftest import TINY


@pytest.mark.parametrize(("flags", "told"), [((), "35 min"), (("--jobs", "1"), "50 min")])
def test_the_estimate_is_of_as_many_cells_side_by_side(
    flags: tuple[str, ...], told: str, lra, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two cells that run beside others, and three timings that do not, of ten minutes each."""
    monkeypatch.setattr(pool, "default_slots", lambda jobs: 4)
    monkeypatch.setattr(
        execute, "_expected", lambda missing, *_: {job.cell.id: 600.0 for job in missing}
    )
    ran = lra("run", "--impl", "linear", *TINY, "--dry-run", *flags)
    assert f"5 cells due, about {told} by earlier records" in ran.stderr


@pytest.mark.parametrize(
    ("cluster", "told"), [("local:1", "50 min"), ("one.toml", "50 min"), ("four.toml", "35 min")]
)
def test_the_estimate_is_of_as_many_cells_as_a_cluster_has_workers(
    cluster: str, told: str, lra, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed", reason="needs the extra cluster")
    jobs = 'system = "slurm"\njobs = {}\n[job]\nprocesses = {}\n'
    (tmp_path / "one.toml").write_text(jobs.format(1, 1))
    (tmp_path / "four.toml").write_text(jobs.format(2, 2))
    monkeypatch.setattr(pool, "default_slots", lambda jobs: 2)
    monkeypatch.setattr(
        execute, "_expected", lambda missing, *_: {job.cell.id: 600.0 for job in missing}
    )
    asked = ("run", "--impl", "linear", *TINY, "--device", "cpu", "--cluster", cluster)
    ran = lra(*asked, "--dry-run")
    assert f"5 cells due, about {told} by earlier records" in ran.stderr


def test_an_estimate_of_less_than_a_second_says_so(lra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        execute, "_expected", lambda missing, *_: {job.cell.id: 0.05 for job in missing}
    )
    ran = lra("run", "--impl", "linear", *TINY, "--dry-run", "--jobs", "1")
    assert "5 cells due, under a second by earlier records" in ran.stderr


@pytest.mark.parametrize(
    ("known", "told"),
    [
        (0, "5 cells due; no earlier record tells how long they take\n"),
        (
            1,
            "5 cells due; no earlier record tells how long 4 of these take; the other 1 takes "
            "about 10 min by earlier records\n",
        ),
        (
            2,
            "5 cells due; no earlier record tells how long 3 of these take; the other 2 take "
            "about 20 min by earlier records\n",
        ),
        (
            3,
            "5 cells due, about 30 min by earlier records; no earlier record tells how long 2 of "
            "these take (not counted)\n",
        ),
        (5, "5 cells due, about 50 min by earlier records\n"),
    ],
)
def test_an_estimate_of_some_cells_is_not_read_as_one_of_all(
    known: int, told: str, lra, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        execute,
        "_expected",
        lambda missing, *_: {job.cell.id: 600.0 for job in missing[:known]},
    )
    ran = lra("run", "--impl", "linear", *TINY, "--dry-run", "--jobs", "1")
    assert ran.stderr.endswith(told)


def test_a_profile_says_where_a_step_goes_and_how_long_trainings_take(lra, tmp_path: Path) -> None:
    asked = ("run", "--impl", "linear", *TINY, "--set", "training.steps=20")
    ran = lra(*asked, "--profile")
    assert ran.returncode == 0, ran.stderr
    assert "2 cells to run" in ran.stderr
    assert "linear on listops" in ran.stdout and "backward" in ran.stdout
    assert "linear on listops: most self time in " in ran.stdout
    records = Store(tmp_path / "results/runs/default").records()
    assert sorted(r.cell.__struct_config__.tag for r in records) == ["ceiling", "profile"]
    page = (tmp_path / "reports/default/index.html").read_text(encoding="utf-8")
    assert "Where a training step&#39;s time goes" in page
    foretold = lra(*asked, "--seeds", "3", "--dry-run")
    assert "(3 trainings by measured steps per second)" in foretold.stderr
