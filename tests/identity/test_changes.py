"""Every change of a figure is seen by a case, and asks for a bump of what it is of, no more."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lra.core.versions import declared
from lra.engine.gate.revision import HOME
from lra.engine.process.launch import environment
from lra.identity.answers import CaseOutcome
from lra.identity.check import answers_of, decide, digest_of, hashes
from lra.identity.lock import Lock
from lra.identity.sources import Units, units, units_of
from tests.identity.changes import CHANGES, Change

PACKAGES = ("lra", "tasks", "attention_impls")
Ask = Callable[..., list[CaseOutcome]]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the packages to edit."""
    house = tmp_path_factory.mktemp("house")
    for package in PACKAGES:
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(HOME / package, house / package, ignore=ignore)
    return house


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    own = environment() | {"PYTHONDONTWRITEBYTECODE": "1"}
    own.pop("PYTHONPATH")
    command = [sys.executable, str(Path(__file__).with_name("server.py"))]
    with subprocess.Popen(
        command, env=own, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        stderr=subprocess.DEVNULL,
    ) as child:  # fmt: skip
        assert child.stdin is not None and child.stdout is not None
        stdin, stdout = child.stdin, child.stdout

        def ask(root: Path, *cases: str) -> list[CaseOutcome]:
            stdin.write(json.dumps({"root": str(root), "cases": cases}) + "\n")
            stdin.flush()
            found = json.loads(stdout.readline())
            assert len(found) == len(cases)
            return [
                CaseOutcome(**one, versions=declared((one["about"], *one["uses"]))) for one in found
            ]

        yield ask
        stdin.close()


@pytest.fixture(scope="module")
def answers(ask: Ask, house: Path) -> list[CaseOutcome]:
    """Answers of the cases on the code as it is."""
    cases = sorted({case for change in CHANGES for case in change.cases})
    found = ask(house, *cases)
    assert not [one for one in found if one.failure]
    return found


@pytest.fixture(scope="module")
def before(answers: list[CaseOutcome]) -> dict[str, str]:
    return {one.case: digest_of(one) for one in answers}


@pytest.fixture(scope="module")
def own(house: Path) -> Units:
    """The units of the code as it is."""
    return units(house)


FINDING = {
    "lra/adapters/adapt.py", "lra/core/catalogue.py", "lra/core/loading.py", "lra/core/paths.py",
    "lra/core/versions.py", "lra/engine/process/error_text.py", "tasks/_preview.py",
}  # fmt: skip
"""Files that cases enter and no figure comes of: names, versions, words and other people's code."""


def test_another_process_gives_the_same_bits(answers: list[CaseOutcome]) -> None:
    """A probe, each of whose cases has a process to itself, as against a server's forks."""
    names = ("mechanism/linear", "data/listops", "train", "time")
    found = {one.case: (one.bits, one.failure) for one in answers_of(HOME, print, *names)}
    assert found == {one.case: (one.bits, "") for one in answers if one.case in names}
    assert len(set(found.values())) == len(names)


def test_what_cases_enter_is_watched(answers: list[CaseOutcome], own: Units) -> None:
    watched = {name.partition(":")[0] for name in own}
    entered = {
        name.partition(":")[0]
        for one in answers
        for name in one.entered
        if not name.endswith("<module>")
    }
    assert len(entered & watched) > 60
    assert entered - watched <= FINDING


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_a_change_is_seen_for_what_it_is(
    change: Change, ask: Ask, house: Path, own: Units, before: dict[str, str]
) -> None:
    file = house / change.file
    others = {name: unit for name, unit in own.items() if not name.startswith(f"{change.file}:")}
    kept = file.read_text(encoding="utf-8")
    assert kept.count(change.before) == 1
    file.write_text(kept.replace(change.before, change.after), encoding="utf-8")
    try:
        known = {case: before[case] for case in change.cases}
        now = others | units_of(file, change.file)
        found = decide(Lock(sources=hashes(own)), now, ask(house, *change.cases), known)
    finally:
        file.write_text(kept, encoding="utf-8")
    assert set(found.bumps) == set(change.bumps)
    assert found.verdict == ("changed" if change.bumps else "kept"), found.unseen
