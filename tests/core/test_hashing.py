"""A source's hash moves with behaviour, not with words about it; a value's with any field."""

import importlib.util
from pathlib import Path

import pytest

from lra.core import hashing
from lra.core.hashing import DIGITS, file_hash, source_hash, value_hash

MAIN = """from house.rule import LIMIT

def answer(x):
    from house import readers
    return x < LIMIT, readers.FORMAT
"""
WORDED = '''"""Now documented."""
from house.rule import LIMIT  # why


def answer( x ):
    """The answer."""
    from house import readers
    return (x < LIMIT, readers.FORMAT)
'''


def write(root, files):
    for name, source in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(source)
    return root


def changes(file, changed, **leave_out):
    """Whether the hash of `file` changes with the file `changed`."""
    before = source_hash(file, **leave_out)
    with changed.open("a") as stream:
        stream.write("MORE = 1\n")
    return source_hash(file, **leave_out) != before


@pytest.fixture
def package(tmp_path):
    beside = {"__init__.py": "", "rule.py": "LIMIT = 3\n", "readers.py": "FORMAT = 1\n"}
    return write(tmp_path / "house", {**beside, "main.py": MAIN})


def test_words_and_the_place_of_a_package_do_not_count(package, tmp_path):
    before = source_hash(package / "main.py")
    (package / "main.py").write_text(WORDED)
    assert source_hash(package / "main.py") == before
    moved = tmp_path / "elsewhere" / "house"
    moved.parent.mkdir()
    package.rename(moved)
    assert source_hash(moved / "main.py") == before


@pytest.mark.parametrize("file", ["main.py", "rule.py", "readers.py"])
def test_behaviour_counts_wherever_it_is_imported_from(package, file):
    assert changes(package / "main.py", package / file)


@pytest.mark.parametrize("main", [MAIN, "from .readers import FORMAT\nfrom . import rule\n"])
def test_a_module_that_is_left_out_does_not_count(package, main):
    (package / "main.py").write_text(main)
    leave_out = {"leave_out": ("house.readers",)}
    assert not changes(package / "main.py", package / "readers.py", **leave_out)
    assert changes(package / "main.py", package / "rule.py", **leave_out)


def test_methods_named_do_not_count_and_functions_of_that_name_do(package):
    def hashed(method, function):
        (package / "main.py").write_text(
            f"class A:\n    def show(self):\n        return {method}\n"
            f"    def make(self):\n        return 1\ndef show():\n    return {function}\n"
        )
        return source_hash(package / "main.py", methods=("show",))

    assert hashed("1", "1") == hashed("2", "1") != hashed("1", "2")


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
def test_relative_imports_are_followed(tmp_path, line, followed):
    inner = tmp_path / "house" / "inner"
    inner.mkdir(parents=True)
    files = ["near.py", "__init__.py", "../far.py", "../__init__.py", "../other/near.py"]
    write(inner, {**dict.fromkeys(files, "X = 1\n"), "main.py": f"{line}\n"})
    assert {file for file in files if changes(inner / "main.py", inner / file)} == followed


def test_modules_beside_a_file_or_package_are_followed(package):
    plain = "from scale import SCALE\nimport house.main\n"
    files = {"plain.py": plain, "scale.py": "import unit\n", "unit.py": "", "alone.py": ""}
    house = write(package.parent, files)
    (package / "rule.py").write_text("from unit import ONE\n")
    for changed in (house / "scale.py", house / "unit.py", package / "main.py"):
        assert changes(house / "plain.py", changed)
    assert changes(package / "main.py", house / "unit.py")
    assert not changes(house / "plain.py", house / "alone.py")


def test_other_installed_packages_do_not_count(tmp_path):
    lines = "import strange\nfrom theirs import part\n"
    theirs = {"theirs/__init__.py": "", "theirs/part.py": "", "theirs/main.py": lines}
    site = write(tmp_path / "site-packages", {**theirs, "strange.py": "", "single.py": lines})
    for file in ("single.py", "theirs/main.py"):
        assert not changes(site / file, site / "strange.py")
    assert changes(site / "theirs/main.py", site / "theirs/part.py")


def test_a_file_that_is_not_python_here_counts_by_its_bytes(package):
    (package / "rule.py").write_text("print 'for Python 2'\n")
    assert changes(package / "main.py", package / "rule.py")


@pytest.fixture
def ours(tmp_path, monkeypatch):
    """A place that passes for that of our own packages."""
    folders = ("attention_impls", "lra", "lra/core", "tasks")
    place = write(
        tmp_path / "place of ours",
        {
            "attention_impls/contract.py": "from lra.core import cards\n",
            "attention_impls/full.py": "from attention_impls.contract import Attention\n",
            "lra/core/cards.py": "YEAR = 2017\n",
            "tasks/contract.py": "from tasks import text\n",
            "tasks/text.py": "WORDS = 1\n",
            **{f"{folder}/__init__.py": "" for folder in folders},
        },
    )
    monkeypatch.setattr(hashing, "_HOUSE", place)
    return place


@pytest.mark.parametrize("name", ["plain.py", "house/main.py", "site-packages/theirs/main.py"])
def test_other_peoples_files_are_followed_into_ours(tmp_path, ours, name):
    line = "from attention_impls.full import Full\nfrom tasks.contract import Task\n"
    file = write(tmp_path, {name: line}) / name
    if file.parent != tmp_path:
        (file.parent / "__init__.py").touch()
    for followed in ("attention_impls/full.py", "attention_impls/contract.py", "tasks/text.py"):
        assert changes(file, ours / followed)
    assert not changes(file, ours / "lra/core/cards.py")
    file.write_text("import lra.core.cards\n")
    assert changes(file, ours / "lra/core/cards.py")


def test_our_files_are_followed_within_their_own_package(ours):
    full = ours / "attention_impls/full.py"
    assert changes(full, ours / "attention_impls/contract.py")
    assert not changes(full, ours / "lra/core/cards.py")


def test_a_folder_named_as_one_of_ours_hides_neither(tmp_path, ours):
    files = {"text.py": "from tasks.contract import Task\n", "contract.py": ""}
    copy = write(tmp_path / "tasks", files)
    assert changes(copy / "text.py", copy / "contract.py")
    assert changes(copy / "text.py", ours / "tasks/contract.py")


@pytest.mark.parametrize("name", hashing._OURS)
def test_ours_lie_where_python_finds_them(name):
    origin = importlib.util.find_spec(name).origin
    assert Path(origin).resolve() == hashing._HOUSE / name / "__init__.py"


def test_files_and_folders(tmp_path):
    write(tmp_path, {"a": "1", "b": "2"})
    whole = file_hash(tmp_path)
    assert len(whole) == len(file_hash(tmp_path / "a")) == DIGITS
    (tmp_path / "b").rename(tmp_path / "c")
    assert file_hash(tmp_path) != whole


def test_values_hash_by_content_and_not_by_order():
    assert value_hash({"a": 1, "b": [1, 2]}) == value_hash({"b": [1, 2], "a": 1})
    assert value_hash({"a": 1}) != value_hash({"a": 2})
