"""A baseline really taken of the cheapest mechanism there is, and checks that do not measure."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from lra.core.records import Record
from lra.store import Store

FLAGS = ("--impl", "identity", "--deterministic", "--device", "cpu")
PLACES = ("--baselines", "baselines", "--store", "store")
PATIENCE = 300
"""Seconds for a command: its timings wait for those of other runs on the machine."""


@dataclass(frozen=True)
class Taken:
    """A baseline of `identity` and the records that it is of."""

    folder: Path
    told: str

    def records(self) -> list[Record]:
        return Store(self.folder / "store").records()


def take(folder: Path, environment: dict[str, str]) -> Taken:
    """Take it with the command line."""
    ran = subprocess.run(
        [sys.executable, "-m", "lra", "baseline", "update", *FLAGS, *PLACES,
         "--reason", "the first\none", "--quiet"],
        cwd=folder, env=environment, text=True, capture_output=True, timeout=PATIENCE,
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout
    return Taken(folder, ran.stdout)


def here(taken: Taken, folder: Path) -> None:
    """Put a copy of the baseline where it is looked for."""
    shutil.copytree(taken.folder / "baselines", folder / "baselines")
