"""Provenance of a record: the project's own commit, its version and those of the libraries."""

from __future__ import annotations

import csv
import os
import platform
import subprocess
from functools import cache
from importlib.metadata import (
    PackageNotFoundError,
    distribution,
    packages_distributions,
    version,
)
from pathlib import Path
from typing import Any

from lra.core.hashing import value_hash
from lra.core.records import Provenance
from lra.core.version import __version__

_LIBRARIES = (
    "torch",
    "triton",
    "numpy",
    "numba",
    "scipy",
    "scikit-learn",
    "datasets",
    "pyarrow",
    "msgspec",
    "nvidia-ml-py",
)
_ROOMS = ("lra", "tasks", "attention_impls", "pyproject.toml")
"""Paths whose changes make a checkout dirty: results and reports do not."""


def provenance(host: dict[str, Any]) -> Provenance:
    """Return the code and the machine of a record; `host` is "
    "`lra.engine.machine.host.machine_facts()`."""
    commit, dirty = checkout(Path(__file__).parents[3])
    libraries = {name: library_version(name) for name in _LIBRARIES}
    return Provenance(
        git_commit=commit,
        git_dirty=dirty,
        version=__version__,
        libraries={
            "python": platform.python_version(),
            **{name: found for name, found in libraries.items() if found},
        },
        host=host,
    )


def checkout(root: Path) -> tuple[str | None, bool | None]:
    """Return commit and dirty flag of the project's own checkout; None where it is installed.

    Git is asked only where `root` itself is a work tree, so that a virtual environment inside
    somebody's repository does not answer with their commit.
    """
    if not (root / ".git").exists():
        return None, None
    commit = command_output("git", "-C", str(root), "rev-parse", "HEAD")
    changes = command_output("git", "-C", str(root), "status", "--porcelain", "--", *_ROOMS)
    return commit, None if changes is None else bool(changes)


def library_version(name: str) -> str:
    """Return the installed version of a distribution, empty if there is none."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


@cache
def distribution_of(module: str) -> str:
    """Return the name of the distribution that installed a module, empty if none did."""
    return next(iter(packages_distributions().get(module.partition(".")[0], ())), "")


@cache
def distribution_hash(name: str) -> str:
    """Return the hash of a distribution's version and code, as its installer noted them."""
    # Read here, since the list in `files` depends on whether a backport has been imported.
    noted = csv.reader((distribution(name).read_text("RECORD") or "").splitlines())
    code = {
        file: hashed.partition("=")[2]
        for file, hashed, _ in noted
        if hashed and file.endswith((".py", ".so"))
    }
    return value_hash([version(name), code])


def command_output(*command: str) -> str | None:
    """Return the output of a command; None where it is not installed or fails."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=without_git_variables(), timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    """Return the last line of a command's standard error, or else of its output."""
    said = done.stderr.strip() or done.stdout.strip() or "it said nothing"
    return said.splitlines()[-1]


def without_git_variables() -> dict[str, str]:
    """Return the environment without GIT_DIR and its like: a git hook has them, and they would send
    git to another repository."""
    return {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
