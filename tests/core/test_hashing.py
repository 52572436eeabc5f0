"""A source's hash moves with behaviour, not with words about it; a value's with any field."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from lra.core import hashing
from lra.core.hashing import DIGITS, file_hash, source_hash, value_hash


@pytest.fixture
def package(tmp_path: Path) -> Path:
    house = tmp_path / "house"
    house.mkdir()
    (house / "__init__.py").write_text("")
    (house / "rule.py").write_text("LIMIT = 3\n")
    (house / "readers.py").write_text("FORMAT = 1\n")
    (house / "main.py").write_text(
        "from house.rule import LIMIT\n\ndef answer(x):\n"
        "    from house import readers\n    return x < LIMIT, readers.FORMAT\n"
    )
    return house


def test_words_do_not_count(package: Path) -> None:
    before = source_hash(package / "main.py")
    (package / "main.py").write_text(
        '"""Now documented."""\nfrom house.rule import LIMIT  # why\n\n\ndef answer( x ):\n'
        '    """The answer."""\n    from house import readers\n'
        "    return (x < LIMIT, readers.FORMAT)\n"
    )
    assert source_hash(package / "main.py") == before


@pytest.mark.parametrize("file", ["main.py", "rule.py", "readers.py"])
def test_behaviour_counts_wherever_it_is_imported_from(package: Path, file: str) -> None:
    before = source_hash(package / "main.py")
    with (package / file).open("a") as stream:
        stream.write("MORE = 1\n")
    assert source_hash(package / "main.py") != before


def test_what_is_left_out_does_not_count(package: Path) -> None:
    before = source_hash(package / "main.py", leave_out=("house.readers",))
    (package / "readers.py").write_text("FORMAT = 2\n")
    assert source_hash(package / "main.py", leave_out=("house.readers",)) == before


def test_methods_named_do_not_count_and_functions_of_that_name_do(package: Path) -> None:
    def hashed(method: str, function: str) -> str:
        (package / "main.py").write_text(
            f"class A:\n    def show(self):\n        return {method}\n"
            f"    def make(self):\n        return 1\ndef show():\n    return {function}\n"
        )
        return source_hash(package / "main.py", methods=("show",))

    assert hashed("1", "1") == hashed("2", "1") != hashed("1", "2")


def test_where_the_package_lies_does_not_count(package: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere" / "house"
    moved.parent.mkdir()
    before = source_hash(package / "main.py")
    package.rename(moved)
    assert source_hash(moved / "main.py") == before


def changes(file: Path, changed: Path) -> bool:
    """Whether the hash of `file` changes with the file `changed`."""
    before = source_hash(file)
    with changed.open("a") as stream:
        stream.write("MORE = 1\n")
    return source_hash(file) != before


@pytest.mark.parametrize(
    ("line", "followed"),
    [
        ("from .near import X", {"near.py"}),
        ("from . import near", {"near.py", "__init__.py"}),
        ("from ..far import X", {"../far.py"}),
        ("from .. import far", {"../far.py", "../__init__.py"}),
        ("from ..other.near import X", {"../other/near.py"}),
    ],
)
def test_relative_imports_are_followed(tmp_path: Path, line: str, followed: set[str]) -> None:
    inner = tmp_path / "house" / "inner"
    inner.mkdir(parents=True)
    (inner.parent / "other").mkdir()
    files = {"near.py", "__init__.py", "../far.py", "../__init__.py", "../other/near.py"}
    for file in files:
        (inner / file).write_text("X = 1\n")
    (inner / "main.py").write_text(f"{line}\n")
    assert {file for file in files if changes(inner / "main.py", inner / file)} == followed


def test_relative_imports_are_left_out_by_their_full_name(package: Path) -> None:
    (package / "main.py").write_text("from .readers import FORMAT\nfrom . import rule\n")
    before = source_hash(package / "main.py", leave_out=("house.readers",))
    (package / "readers.py").write_text("FORMAT = 2\n")
    assert source_hash(package / "main.py", leave_out=("house.readers",)) == before
    (package / "rule.py").write_text("LIMIT = 4\n")
    assert source_hash(package / "main.py", leave_out=("house.readers",)) != before


def test_what_lies_beside_a_file_or_package_is_followed(package: Path) -> None:
    house = package.parent
    (house / "plain.py").write_text("from scale import SCALE\nimport house.main\n")
    (house / "scale.py").write_text("import unit\n")
    (house / "unit.py").write_text("ONE = 1\n")
    (house / "alone.py").write_text("ONE = 1\n")
    (package / "rule.py").write_text("from unit import ONE\n")
    assert changes(house / "plain.py", house / "scale.py")
    assert changes(house / "plain.py", house / "unit.py")
    assert changes(house / "plain.py", package / "main.py")
    assert changes(package / "main.py", house / "unit.py")
    assert not changes(house / "plain.py", house / "alone.py")


def test_what_else_is_installed_does_not_count(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    theirs = site / "theirs"
    theirs.mkdir(parents=True)
    (site / "strange.py").write_text("")
    (theirs / "__init__.py").write_text("")
    (theirs / "part.py").write_text("")
    for file in (site / "single.py", theirs / "main.py"):
        file.write_text("import strange\nfrom theirs import part\n")
        assert not changes(file, site / "strange.py")
    assert changes(theirs / "main.py", theirs / "part.py")


def test_a_file_that_is_not_python_here_counts_by_its_bytes(package: Path) -> None:
    (package / "rule.py").write_text("print 'for Python 2'\n")
    assert changes(package / "main.py", package / "rule.py")


@pytest.fixture
def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place that passes for that of our own packages."""
    place = tmp_path / "place of ours"
    for name, source in {
        "attention_impls/contract.py": "from lra.core import cards\n",
        "attention_impls/full.py": "from attention_impls.contract import Attention\n",
        "lra/core/cards.py": "YEAR = 2017\n",
        "tasks/contract.py": "from tasks import text\n",
        "tasks/text.py": "WORDS = 1\n",
    }.items():
        file = place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
    for folder in ("attention_impls", "lra", "lra/core", "tasks"):
        (place / folder / "__init__.py").write_text("")
    monkeypatch.setattr(hashing, "_HOUSE", place)
    return place


@pytest.mark.parametrize("name", ["plain.py", "house/main.py", "site-packages/theirs/main.py"])
def test_other_peoples_files_are_followed_into_ours(tmp_path: Path, ours: Path, name: str) -> None:
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.parent != tmp_path:
        (file.parent / "__init__.py").write_text("")
    file.write_text("from attention_impls.full import Full\nfrom tasks.contract import Task\n")
    assert changes(file, ours / "attention_impls" / "full.py")
    assert changes(file, ours / "attention_impls" / "contract.py")
    assert changes(file, ours / "tasks" / "text.py")
    assert not changes(file, ours / "lra" / "core" / "cards.py")
    file.write_text("import lra.core.cards\n")
    assert changes(file, ours / "lra" / "core" / "cards.py")


def test_our_files_are_followed_within_their_own_package(ours: Path) -> None:
    full = ours / "attention_impls" / "full.py"
    assert changes(full, ours / "attention_impls" / "contract.py")
    assert not changes(full, ours / "lra" / "core" / "cards.py")


def test_a_folder_named_as_one_of_ours_hides_neither(tmp_path: Path, ours: Path) -> None:
    copy = tmp_path / "tasks"
    copy.mkdir()
    (copy / "text.py").write_text("from tasks.contract import Task\n")
    (copy / "contract.py").write_text("")
    assert changes(copy / "text.py", copy / "contract.py")
    assert changes(copy / "text.py", ours / "tasks" / "contract.py")


def test_ours_lie_where_python_finds_them() -> None:
    for name in hashing._OURS:
        spec = importlib.util.find_spec(name)
        assert spec is not None and spec.origin is not None
        assert Path(spec.origin).resolve() == hashing._HOUSE / name / "__init__.py"


def test_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("2")
    whole = file_hash(tmp_path)
    assert len(whole) == len(file_hash(tmp_path / "a")) == DIGITS
    (tmp_path / "b").rename(tmp_path / "c")
    assert file_hash(tmp_path) != whole


def test_values_hash_by_content_and_not_by_order() -> None:
    assert value_hash({"a": 1, "b": [1, 2]}) == value_hash({"b": [1, 2], "a": 1})
    assert value_hash({"a": 1}) != value_hash({"a": 2})
