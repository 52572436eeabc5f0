"""Which mechanisms an edit reaches: those that import what was edited, and no others."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from lra.core import catalogue
from lra.core.errors import LraError
from lra.engine.gate.affected import (
    SourceHashes,
    affected_mechanisms,
    changed_mechanisms,
    hash_sources,
)

ROOT = Path(__file__).resolve().parents[2]
EDIT = "\nEDITED = 1\n"
HELPER = "attention_impls/kernel/_shared.py"
OWN = {
    HELPER: "",
    "attention_impls/kernel/_between.py": "from attention_impls.kernel._shared import *\n",
    "attention_impls/kernel/near.py": "from attention_impls.kernel import _shared\n",
    "attention_impls/dense/far.py": "def late():\n    import attention_impls.kernel._between\n",
    "attention_impls/kernel/apart.py": "from attention_impls.kernel import linear\n",
    "attention_impls/positions/place.py": "",
    "attention_impls/contract/clause.py": "",
}
"""Two mechanisms that import the helper, one that does not; and what is none."""


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("house")
    ignore = shutil.ignore_patterns("__pycache__")
    for package in ("lra", "tasks", "attention_impls"):
        shutil.copytree(ROOT / package, place / package, ignore=ignore)
    shutil.copy(ROOT / "constraints.txt", place)
    for file, text in OWN.items():
        (place / file).write_text(text)
    return place


@pytest.fixture(scope="module")
def before(house: Path) -> SourceHashes:
    return hash_sources(house)


Edited = Callable[[str, str], SourceHashes]


@pytest.fixture
def edited(house: Path) -> Edited:
    """Append to a file, or make one, ask, and put it back."""

    def ask(file: str, text: str) -> SourceHashes:
        path = house / file
        kept = path.read_bytes() if path.exists() else None
        path.write_bytes((kept or b"") + text.encode())
        try:
            return hash_sources(house)
        finally:
            path.unlink() if kept is None else path.write_bytes(kept)

    return ask


def test_a_tree_has_our_mechanisms_and_reaches_none_of_itself(
    before: SourceHashes, house: Path
) -> None:
    ours = {*catalogue.names("mechanism"), "near", "far", "apart"}
    assert before.mechanisms.keys() == ours
    again = hash_sources(house)
    assert (
        again == before
        and affected_mechanisms(before, again) == changed_mechanisms(before, again) == []
    )


def test_words_reach_nothing(before: SourceHashes, edited: Edited) -> None:
    for file in ("attention_impls/kernel/near.py", "lra/measure/latency.py"):
        assert edited(file, '\n# A comment.\n"""And a docstring."""\n') == before, file


def test_a_helper_reaches_exactly_those_that_import_it(
    before: SourceHashes, edited: Edited
) -> None:
    after = edited(HELPER, EDIT)
    assert (
        affected_mechanisms(before, after) == changed_mechanisms(before, after) == ["far", "near"]
    )
    assert after.timing == before.timing


@pytest.mark.parametrize(
    "file",
    [
        "lra/training/loop.py",
        "lra/verify/kit.py",
        "lra/engine/gate/figures.py",
        "tasks/image.py",
        "attention_impls/positions/rope.py",
    ],
)
def test_what_trains_tries_or_keeps_reaches_all_and_times_none_otherwise(
    file: str, before: SourceHashes, edited: Edited
) -> None:
    after = edited(file, EDIT)
    assert affected_mechanisms(before, after) == sorted(before.mechanisms)
    assert changed_mechanisms(before, after) == [] and after.timing == before.timing


@pytest.mark.parametrize(
    "file", ["lra/scales/check.toml", "lra/suites/check.toml", "constraints.txt"]
)
def test_what_is_asked_for_and_with_which_packages_reaches_all(
    file: str, before: SourceHashes, edited: Edited
) -> None:
    after = edited(file, "\n# Another.\n")
    assert affected_mechanisms(before, after) == sorted(before.mechanisms)
    assert after.timing == before.timing


@pytest.mark.parametrize(
    "file",
    ["measure/latency.py", "models/block.py", "engine/process/worker.py",
     "engine/process/launch.py", "engine/work/efficiency.py", "engine/work/mechanism.py"],
)  # fmt: skip
def test_what_measures_reaches_all_and_makes_times_other_figures(
    file: str, before: SourceHashes, edited: Edited
) -> None:
    after = edited(f"lra/{file}", EDIT)
    assert after.timing != before.timing
    assert (
        affected_mechanisms(before, after) == sorted(before.mechanisms)
        and changed_mechanisms(before, after) == []
    )


def test_what_a_mechanism_is_compared_with_is_reached_and_not_timed(
    before: SourceHashes, edited: Edited
) -> None:
    after = edited("attention_impls/_oracle.py", EDIT)
    assert "sdpa" in affected_mechanisms(before, after) and changed_mechanisms(before, after) == []


def test_what_tells_of_it_reaches_none(before: SourceHashes, edited: Edited) -> None:
    assert edited("lra/changes/check_report.py", EDIT) == before


@pytest.mark.parametrize("room", ["kernel/", ""])
def test_a_new_mechanism_is_reached(room: str, before: SourceHashes, edited: Edited) -> None:
    after = edited(f"attention_impls/{room}newest.py", EDIT)
    assert affected_mechanisms(before, after) == changed_mechanisms(before, after) == ["newest"]
    # One that is gone cannot be looked at.
    assert affected_mechanisms(after, before) == []


def test_a_tree_from_before_is_one_line_that_says_what_to_do(tmp_path: Path) -> None:
    for package in ("lra", "lra/core"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    with pytest.raises(LraError, match=r"'lra\.core\.hashing'; ") as error:
        hash_sources(tmp_path)
    assert "\n" not in str(error.value)


def test_a_change_of_both_is_reached_once() -> None:
    one = SourceHashes(("t",), ("c",), {"a": "1", "b": "1"})
    other = msgspec.structs.replace(one, checking=("d",), mechanisms={"b": "2", "c": "1"})
    assert changed_mechanisms(one, other) == affected_mechanisms(one, other) == ["b", "c"]
