"""A run is killed at random moments, again and again: whatever it said was done is there."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from drivers import long_seconds

import lra as package
from lra.core.cells import EfficiencyCell
from lra.store import Store

from .conftest import HERE, SAME_AGAIN, TIMED

SUITE = SAME_AGAIN + TIMED.partition("\n")[2].partition("\n")[2]
RUN = (
    "run", "--impl", "performer", "--suite", "kills.toml", "--scale", str(HERE / "tiny.toml"),
    "--set", "training.steps=200",
)  # fmt: skip
DONE = re.compile(r"^\[\d+/\d+[],](?!.* forward ).*$", re.MULTILINE)
"""A line of progress. Timings are left out: a round that was begun is measured once more."""
LATEST = 8.0
"""Seconds after its start within which a run is killed; alone it takes about as long."""


@dataclass
class Killer:
    """Runs of one command in one folder, each killed, until one is not."""

    folder: Path
    environment: dict[str, str]
    kept: dict[str, bytes] = field(default_factory=dict)
    """Records that a killed run has left, by id."""
    kills: int = 0
    completed: int = 0

    def run(self, store: str, seconds: float | None) -> bool:
        """Run it, kill it after so long, and return whether it came to its end first."""
        log = self.folder / "log"
        with log.open("w") as stream:
            process = subprocess.Popen(
                [sys.executable, "-m", "lra", *RUN, "--store", store],
                cwd=self.folder, env=self.environment, stdout=stream, stderr=stream,
                start_new_session=True,
            )  # fmt: skip
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.kills += 1
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self.look(self.folder / store, log.read_text())
        if process.returncode == -signal.SIGKILL:
            return False
        assert process.returncode == 0, log.read_text()
        return True

    def look(self, store: Path, told: str) -> None:
        """Read the store as any command does, and hold it against what there was and was told."""
        assert "Traceback" not in told, told
        if not store.is_dir():
            assert not DONE.search(told) and not self.kept
            return
        package.load(store)
        records = Store(store).records()
        assert all(record.status == "ok" for record in records)
        assert len(records) == len(list(store.glob("*.json")))
        found = {
            record.id: (store / f"{record.id}.json").read_bytes()
            for record in records
            if not isinstance(record.cell, EfficiencyCell)
        }
        assert {name: found.get(name) for name in self.kept} == self.kept
        assert len(found) >= len(self.kept) + len(DONE.findall(told)), told
        self.kept = found


def kill(folder: Path, environment: dict[str, str], seconds: float, seed: int) -> Killer:
    """Kill runs for so many seconds, and let the last one end."""
    draw = random.Random(seed)
    (folder / "kills.toml").write_text(SUITE)
    killer = Killer(folder, environment)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if killer.run(f"store{killer.completed}", draw.uniform(0.2, LATEST)):
            # Nothing is left to be killed in this one.
            killer.completed += 1
            killer.kept = {}
    assert killer.run(f"store{killer.completed}", None)
    killer.completed += 1
    sizes = {len(list((folder / f"store{n}").glob("*.json"))) for n in range(killer.completed)}
    assert len(sizes) == 1, "a run that was killed has as many records as any"
    assert killer.kills > 0
    return killer


def test_a_killed_run_loses_nothing(environment: dict[str, str], tmp_path: Path) -> None:
    kill(tmp_path, environment, 8.0, seed=1)


@pytest.mark.slow
def test_a_run_that_is_killed_for_long_loses_nothing(
    environment: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = random.randrange(1 << 32)
    with capsys.disabled():
        print(f"\nkills: seed {seed}")
        killer = kill(tmp_path, environment, long_seconds(), seed)
        print(f"kills: {killer.kills}, runs that came to their end: {killer.completed}")
