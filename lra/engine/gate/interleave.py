"""Two builds timed in turns: A, B, B, A, A, B, ..., each time by processes of their own.

A pair is a turn of A and its neighbour of B: a slow spell of the machine falls on both, and each
comes first as often as the other. A build runs by its own command line and interpreter, so that
nothing of one reaches the other; its records are read as any store's.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from lra.core.cells import EfficiencyCell
from lra.core.errors import LraError
from lra.core.records import Record
from lra.engine.gate.revision import Build, torch_version
from lra.engine.machine.provenance import last_line
from lra.engine.process.temporary import temporary_folder
from lra.store import Store

AT_ONCE = 4
"""Mechanisms timed by one command: with more, the two sides of a pair lie further apart."""
_ENDED = (0, 4)
"""Exit codes of a sweep that stored all its cells; failed cells are findings."""

Told = Callable[[str], None]
Sides = tuple[Build, Build]


def time_interleaved(
    sides: Sides,
    mechanisms: Sequence[str],
    *,
    suite: Path,
    device: str,
    turns: range,
    folder: Path,
    log: Told,
) -> None:
    """Time mechanisms in both builds, a turn a replicate; `stores_of` has the stores in `folder`.

    Raises `LraError` with a build's own words where it cannot be timed.
    """
    gathered = stores_of(folder)
    for first in range(0, len(mechanisms), AT_ONCE):
        some = mechanisms[first : first + AT_ONCE]
        for turn in turns:
            order = (0, 1) if turn % 2 == 0 else (1, 0)
            for side in order:
                log(f"pair {turn - turns.start + 1} of {len(turns)}: {sides[side].name}, "
                     f"{', '.join(some)}")  # fmt: skip
                with temporary_folder() as scratch:
                    # A sweep leaves its report in the current folder.
                    found = Store(scratch / "store")
                    _sweep(sides[side], some, suite, device, found.path)
                    _copy_records(found, gathered[side], turn)


def differences(sides: Sides) -> str:
    """Return why times of the two builds cannot be compared; empty where they can."""
    one, other = map(torch_version, sides)
    if one == other:
        return ""
    made = [str(side.python.parents[1]) for side in sides if side.commit]
    return (
        f"{sides[0].name} has torch {one} and {sides[1].name} torch {other}: figures of another "
        "kind; where both ask for the same, tell pip of the same index, as by PIP_EXTRA_INDEX_URL, "
        f"and delete {' and '.join(made)}"
    )


def stores_of(folder: Path) -> tuple[Store, Store]:
    """Return the stores of the two builds: `A` and `B` in the folder."""
    return Store(folder / "A"), Store(folder / "B")


def _sweep(build: Build, mechanisms: Sequence[str], suite: Path, device: str, store: Path) -> None:
    command = [
        str(build.python), "-m", "lra", "sweep", "--impl", ",".join(mechanisms),
        "--suite", str(suite.resolve()), "--device", device, "--store", str(store.resolve()),
        "--quiet",
    ]  # fmt: skip
    done = subprocess.run(
        command, cwd=store.parent, env=_build_environment(build), capture_output=True, text=True
    )
    if done.returncode not in _ENDED:
        why = last_line(done).removeprefix("lra: ")
        raise LraError(f"{build.name} cannot be timed: {why}")


def _build_environment(build: Build) -> dict[str, str]:
    """Environment with the build's sources first; a build from a commit has no others."""
    sources = os.environ.get("PYTHONPATH", "") if not build.commit else ""
    path = os.pathsep.join([str(build.root), *([sources] if sources else [])])
    return {**os.environ, "PYTHONPATH": path}


def _copy_records(turn_store: Store, into: Store, turn: int) -> None:
    """Copy a turn's records into the store of its side, as replicates of that number."""
    with into.locked():
        for record in turn_store.records():
            into.save(_as_replicate(record, turn))


def _as_replicate(record: Record, turn: int) -> Record:
    cell = record.cell
    assert isinstance(cell, EfficiencyCell), "a sweep of timings has no others"
    cell = msgspec.structs.replace(cell, replicate=turn)
    return msgspec.structs.replace(record, cell=cell, id=cell.id)
