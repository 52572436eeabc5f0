"""A baseline really taken of the cheapest mechanism there is, and checks that do not measure."""

from __future__ import annotations

import shutil
import signal
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from lra.cli.main import run_command_line
from lra.core.cells import EfficiencyCell
from lra.core.protocol import Machine, Mechanism
from lra.core.records import Metric, Record
from lra.store import Store

FLAGS = ("--impl", "identity", "--deterministic", "--device", "cpu")
PLACES = ("--baselines", "baselines", "--store", "store")
REASON = ("--reason", "the first\none")
PATIENCE = 300
"""Seconds for a command: its timings wait for those of other runs on the machine."""


def command(*arguments: str) -> int:
    """Run a command in this process and return its exit code; raises `TimeoutError`."""

    def late(*_: object) -> None:
        raise TimeoutError(f"{' '.join(arguments)}: no end within {PATIENCE} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(PATIENCE)
    try:
        return run_command_line(arguments)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@dataclass(frozen=True)
class Taken:
    """A baseline of `identity` and the records that it is of."""

    folder: Path
    told: str

    def records(self) -> list[Record]:
        return Store(self.folder / "store").records()


def take(folder: Path) -> Taken:
    """Take it with the command line in this folder, the current one."""
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as told:
        code = command("baseline", "update", *FLAGS, *PLACES, *REASON, "--quiet")
    assert (code, told.getvalue()) == (0, ""), out.getvalue()
    return Taken(folder, out.getvalue())


def here(taken: Taken, folder: Path) -> None:
    """Put a copy of the baseline where it is looked for."""
    shutil.copytree(taken.folder / "baselines", folder / "baselines")


def timing(name: str, replicate: int = 0, *, times: dict[str, float], **own: Any) -> Record:
    """A record of a timing, of a training step at length 512 unless `own` says otherwise."""
    usual = {
        "machine": Machine(processor="Example CPU", cores=2), "torch": "2.13.0", "threads": 2,
        "versions": {"time": 1}, "scale": "mini", "length": 512, "mode": "train", "heads": 4,
        "head_width": 64,
    }  # fmt: skip
    cell = EfficiencyCell(mechanism=Mechanism(name=name), replicate=replicate, **{**usual, **own})
    metrics = {
        name: Metric(value=s, unit="s", samples=(s,), minimum=s, q1=s, q3=s)
        for name, s in times.items()
    }
    began = "2026-11-20T10:00:00Z"
    return Record(
        id=cell.id, cell=cell, status="ok", started_at=began, seconds=1.0, metrics=metrics
    )
