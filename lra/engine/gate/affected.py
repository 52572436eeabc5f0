"""Mechanisms affected by the changes between two trees of sources, found through imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec

from lra.core.errors import LraError
from lra.core.protocol import Frozen
from lra.engine.machine.provenance import last_line
from lra.engine.plan.versions import PLAIN, UNASKED

_TIMING = (
    "lra/measure", "lra/models", "lra/engine/process/worker.py", "lra/engine/process/launch.py",
    "lra/engine/work/efficiency.py", "lra/engine/work/mechanism.py",
)  # fmt: skip
"""Code of timings: a change makes their figures another kind."""
_CHECKING = (
    *_TIMING, "lra/engine/work", "lra/training", "lra/verify", "lra/scales", "tasks",
    "attention_impls/positions", "lra/engine/plan/check.py", "lra/engine/gate/figures.py",
    "lra/suites/check.toml", "lra/suites/check_quality.toml", "constraints.txt",
)  # fmt: skip
"""Code of trainings and laws besides, with suites and the packages asked for."""

# Run by each tree's own code: all that it imports there exists in every tree.
_ASK = """
import json, sys
from pathlib import Path
from lra.core.hashing import file_hash, source_hash

def hashed(places, leave_out=()):
    files = [file for place in map(Path, places) for file in (place, *sorted(place.rglob("*")))]
    code = [file for file in files if file.suffix == ".py" and file.is_file()]
    plain = [file for file in files if file.suffix in (".toml", ".txt") and file.is_file()]
    return [source_hash(*code, leave_out=leave_out), *map(file_hash, plain)]

house = Path("attention_impls")
own = [file for file in (*house.glob("*.py"), *house.glob("*/*.py"))
       if file.parent.name not in ("contract", "positions")
       and file.stem != "contract" and not file.stem.startswith("_")]
print(json.dumps({
    "timing": hashed(sys.argv[1].split(), sys.argv[3].split()),
    "checking": hashed(sys.argv[2].split()),
    "mechanisms": {file.stem: source_hash(
        file, leave_out=["attention_impls._oracle"], methods=sys.argv[4].split()) for file in own},
    "claims": {file.stem: source_hash(file) for file in own},
}))
"""


class SourceHashes(Frozen, frozen=True):
    """Hashes of a tree's sources, each with what it imports."""

    timing: tuple[str, ...]
    checking: tuple[str, ...]
    mechanisms: dict[str, str]
    """Hashes by mechanism, of the parts that a timing or a training uses."""
    claims: dict[str, str] = {}
    """Hashes by mechanism, of all parts: also of its claims."""


def hash_sources(root: Path) -> SourceHashes:
    """Hash the sources of a tree, as the tree itself does."""
    asked = (_TIMING, _CHECKING, PLAIN, (*UNASKED["call"], "oracle"))
    command = [sys.executable, "-c", _ASK, *map(" ".join, asked)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if done.returncode:
        raise LraError(
            f"the sources of an earlier revision cannot be read: {last_line(done)}; "
            "name a later revision"
        )
    return msgspec.json.decode(done.stdout, type=SourceHashes)


def changed_mechanisms(before: SourceHashes, after: SourceHashes) -> list[str]:
    """Return the mechanisms that are new or may take a different time, sorted."""
    return _differing(before.mechanisms, after.mechanisms)


def affected_mechanisms(before: SourceHashes, after: SourceHashes) -> list[str]:
    """Return the mechanisms whose check may come out differently: all, where the checking code
    changed."""
    if before.checking != after.checking:
        return sorted(after.mechanisms)
    return sorted({*changed_mechanisms(before, after), *_differing(before.claims, after.claims)})


def _differing(before: dict[str, str], after: dict[str, str]) -> list[str]:
    return sorted(name for name, own in after.items() if before.get(name) != own)
