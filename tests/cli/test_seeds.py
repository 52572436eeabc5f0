"""`--seeds` and `--track`: which trainings there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from lra.core.cells import QualityCell
from lra.core.errors import UsageError
from lra.engine.jobs import Job
from lra.engine.process import pool

from .conftest import HERE, TINY

ASKED = ("run", "--impl", "linear", *TINY)


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    """Trainings handed to a pool, which starts nothing."""
    given: list[Job] = []

    def refuse(self: pool.Pool, jobs: list[Job]) -> None:
        given.extend(job for job in jobs if isinstance(job.cell, QualityCell))
        raise UsageError("nothing is started here")

    monkeypatch.setattr(pool.Pool, "run", refuse)
    return given


def test_each_seed_is_a_training(lra, trainings: list[Job]) -> None:
    lra(*ASKED, "--seeds", "2")
    assert [job.cell.seed for job in trainings] == [0, 1]


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ((), [("matched", 1e-2)]),
        (("--track", "tuned"), [("tuned", 5e-3), ("tuned", 2e-2)]),
    ],
)
def test_the_tuned_track_tries_the_rates_of_the_scale(
    flags: tuple[str, ...],
    told: list[tuple[str, float]],
    lra,
    trainings: list[Job],
    tmp_path: Path,
) -> None:
    scale = (HERE / "tiny.toml").read_text(encoding="utf-8")
    (tmp_path / "rated.toml").write_text(f"rates = [0.5, 2.0]\n{scale}")
    lra(*ASKED[:-1], "rated.toml", *flags)
    assert [(job.cell.track, job.cell.training.learning_rate) for job in trainings] == told
