"""The command line as a person uses it: a process in an empty folder, with a cache of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
TINY = ["--suite", str(HERE / "tiny_suite.toml"), "--scale", str(HERE / "tiny.toml")]

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def environment(cache: Path) -> dict[str, str]:
    return {**os.environ, "LRA_CACHE": str(cache), "PYTHONPATH": str(ROOT)}


@pytest.fixture
def lra(tmp_path: Path, environment: dict[str, str]) -> Run:
    """Run `python -m lra ...` in an empty folder."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "lra", *arguments],
            cwd=tmp_path,
            env=environment,
            text=True,
            capture_output=True,
            timeout=120,
        )

    return run
