"""A mechanism, a task and a position scheme are one new file each: nothing else is touched."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[1]
NEW = Path(__file__).parent / "fixtures" / "one_new_file"
PLACES = {
    "averaging.py": "attention_impls/pattern",
    "majority.py": "tasks",
    "ramp.py": "attention_impls/positions",
}
FEWEST = {"averaging": 25, "mixing": 12, "ramp": 3, "majority": 5}
"""Tests that each has to pass."""
MIXER = "attention_impls/recurrent/s4d.py"
"""A mixer without queries and keys; under another name it is a newcomer's."""


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the packages with the new files dropped in."""
    house = tmp_path_factory.mktemp("house")
    ignore = shutil.ignore_patterns("__pycache__")
    for package in ("lra", "tasks", "attention_impls", "tests/attention_impls", "tests/tasks"):
        shutil.copytree(ROOT / package, house / package, ignore=ignore)
    for file in ("conftest.py", "code_paths.py"):
        shutil.copy(ROOT / "tests" / file, house / "tests")
    shutil.copy(ROOT / "pyproject.toml", house)
    for name, place in PLACES.items():
        shutil.copy(NEW / name, house / place)
    shutil.copy(ROOT / MIXER, (house / MIXER).with_stem("mixing"))
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
    ("kind", "names"),
    [("impls", {"averaging", "mixing"}), ("tasks", {"majority"}), ("positions", {"ramp"})],
)
def test_it_is_listed(house: Path, kind: str, names: set[str]) -> None:
    listed = python(house, "-m", "lra", "list", kind, "--json")
    assert names <= {row["name"] for row in json.loads(listed.stdout)}


MISTAKES = {
    "no_card": ("    card = ", "    badge = ", "has no public class with a card; give it one"),
    "two_classes": ("\n\ndef _weights", "\n\nclass Again(Averaging): ...\n\n\ndef _weights",
                    "has Averaging, Again; give it one public class with a card"),
    "no_word_of_cards": ('causal="strict"', 'causal="yes"',
                         "capabilities.causal = 'yes' is none of no, strict, values-only"),
    "no_number": ("    unused =", "    class Config(MechanismConfig):\n"
                  "        window: int = 'four'\n\n    unused =",
                  "in its Config, window = 'four' must be a whole number"),
    "no_default": ("    unused =", "    class Config(MechanismConfig):\n"
                   "        window: int\n\n    unused =",
                   "its Config has no default for window"),
    "no_struct": ("    unused =", "    class Config:\n        window = 4\n\n    unused =",
                  "its Config is no msgspec.Struct"),
    "syntax": ("class Averaging(", "class Averaging", "SyntaxError"),
}  # fmt: skip
"""A text in the newcomer's file, its replacement, and the error expected of it."""


def test_a_file_with_a_mistake_is_a_row_that_says_it_and_the_others_stand(
    house: Path, tmp_path: Path
) -> None:
    wrong = tmp_path / "house"
    shutil.copytree(house, wrong, ignore=shutil.ignore_patterns("__pycache__", "cache"))
    right = (NEW / "averaging.py").read_text()
    right = right.replace(
        "import Attention, Context, ", "import Attention, Context, MechanismConfig, "
    )
    for name, (old, new, _) in MISTAKES.items():
        assert old in right
        (wrong / "attention_impls/pattern" / f"{name}.py").write_text(right.replace(old, new))
    listed = python(wrong, "-m", "lra", "list", "impls", "--json")
    assert listed.returncode == 0, listed.stderr
    titles = {row["name"]: row["title"] for row in json.loads(listed.stdout)}
    assert titles["averaging"] == "Uniform attention" and titles["linear"]
    for name, (_, _, told) in MISTAKES.items():
        assert titles[name].startswith("unavailable: ") and told in titles[name]


def test_two_files_of_one_name_are_both_named(house: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "house"
    shutil.copytree(house, wrong, ignore=shutil.ignore_patterns("__pycache__", "cache"))
    shutil.copy(NEW / "averaging.py", wrong / "attention_impls/kernel")
    listed = python(wrong, "-m", "lra", "list", "impls")
    assert listed.returncode == 2
    assert "attention_impls/kernel/averaging.py" in listed.stderr
    assert "attention_impls/pattern/averaging.py" in listed.stderr


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


def ends(house: Path, *chosen: str) -> dict[str, list[str]]:
    """How the chosen tests of each newcomer end, in one process for all of them."""
    options = ["-q", "-p", "no:cacheprovider", "--junit-xml", "ends.xml", "-k", " or ".join(chosen)]
    ran = python(house, "-m", "pytest", *options, "tests/attention_impls", "tests/tasks")
    assert ran.returncode == 0, ran.stdout
    found: dict[str, list[str]] = {name: [] for name in FEWEST}
    for case in ElementTree.parse(house / "ends.xml").getroot().iter("testcase"):
        (name,) = (one for one in found if one in f"{case.get('name')}")
        found[name].append(next((child.tag for child in case), "passed"))
    return found


def test_its_laws_are_tested(house: Path) -> None:
    found = ends(
        house,
        "(averaging and test_laws.py)",
        "(mixing and not compiler)",
        "(ramp and test_positions.py)",
        "majority",
    )
    passed = {name: ended.count("passed") for name, ended in found.items()}
    assert all(passed[name] >= fewest for name, fewest in FEWEST.items()), passed


@pytest.mark.slow
def test_the_compiler_takes_it(house: Path) -> None:
    assert ends(house, "(mixing and compiler)")["mixing"] == ["passed"] * 2
