"""A mechanism, a task and a position scheme are one new file each: nothing else is touched."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NEW = Path(__file__).parent / "fixtures" / "one_new_file"
PLACES = {
    "averaging.py": "attention_impls/pattern",
    "majority.py": "tasks",
    "ramp.py": "attention_impls/positions",
}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the packages with the three new files dropped in."""
    house = tmp_path_factory.mktemp("house")
    ignore = shutil.ignore_patterns("__pycache__")
    for package in ("lra", "tasks", "attention_impls", "tests/attention_impls"):
        shutil.copytree(ROOT / package, house / package, ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", house)
    for name, place in PLACES.items():
        shutil.copy(NEW / name, house / place)
    return house


def python(house: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LRA_CACHE": str(house / "cache"), "PYTHONPATH": str(house)}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=house,
        env=environment,
        text=True,
        capture_output=True,
        timeout=300,
    )


@pytest.mark.parametrize(
    ("kind", "name"), [("impls", "averaging"), ("tasks", "majority"), ("positions", "ramp")]
)
def test_it_is_listed(house: Path, kind: str, name: str) -> None:
    listed = python(house, "-m", "lra", "list", kind, "--json")
    assert name in [row["name"] for row in json.loads(listed.stdout)]


def test_it_runs(house: Path) -> None:
    scale, suite = str(NEW / "tiny.toml"), str(NEW / "tiny_suite.toml")
    asked = ["--impl", "averaging", "--suite", suite, "--scale", scale, "--json"]
    ran = python(house, "-m", "lra", "run", *asked)
    assert ran.returncode == 0, ran.stderr
    trained = [r for r in json.loads(ran.stdout) if r["cell"]["type"] == "quality"]
    assert [r["status"] for r in trained] == ["ok"]
    cell = trained[0]["cell"]
    assert cell["mechanism"]["name"] == "averaging"
    assert cell["data"]["task"] == "majority"
    assert cell["model"]["position"] == "ramp"


def test_its_laws_are_tested(house: Path) -> None:
    ran = python(
        house, "-m", "pytest", "-q", "-p", "no:cacheprovider",
        "tests/attention_impls/test_laws.py", "-k", "averaging",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout
    assert " passed" in ran.stdout
