"""A source's hash moves with behaviour, not with words about it; a value's with any field."""

from __future__ import annotations

from pathlib import Path

import pytest

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
