"""Names come from files; other people's code is reached by reference; typos name the nearest."""

import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from lra.core import catalogue, loading
from lra.core.errors import LraError, UsageError, closest_names, unknown_name

KINDS = {
    "mechanism": {"full", "sdpa", "identity", "linear", "performer", "linformer", "sliding_window"},
    "task": {"listops", "text", "retrieval", "image", "pathfinder"},
    "position": {"sinusoidal", "learned", "rope", "alibi", "none"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_names_are_files_that_load_and_whose_reference_leads_back(kind):
    names = catalogue.names(kind)
    assert set(names) >= KINDS[kind]
    assert not [name for name in names if name.startswith("_") or name == "contract"]
    for name in names:
        target = catalogue.find(kind, name)
        assert hasattr(loading.load(target), "card")
        assert catalogue.find(kind, target.reference) == target


def test_finding_names_imports_nothing():
    code = (
        "import sys\nfrom lra.core import catalogue\n"
        "assert catalogue.names('mechanism') and catalogue.find('mechanism', 'performer').file\n"
        "assert not {'torch', 'attention_impls.contract', 'tasks.contract'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


def test_expand_takes_lists_wildcards_and_all():
    def asked(*patterns):
        return [target.name for target in catalogue.expand("mechanism", patterns)]

    assert asked("linear,full", "linear") == ["linear", "full"]
    assert asked("lin*") == ["linear", "linformer"]
    assert asked("all") == catalogue.names("mechanism")
    with pytest.raises(UsageError, match="unknown mechanism 'q\\*'"):
        asked("q*")


@pytest.mark.parametrize("known", [("peer:alpha", "peer:beta"), ("alpha", "beta")])
def test_a_prefix_is_no_likeness(known):
    assert closest_names("peer:alpa", known) == [known[0]]
    assert closest_names("peer:", known) == closest_names("peer:xy", known) == []


def test_where_there_is_no_name_none_is_offered():
    assert str(unknown_name("law", "x", [])) == "unknown law 'x'; there is none"


FILE = """
from __future__ import annotations
from typing import Annotated
import msgspec
from attention_impls.contract import MechanismConfig
from attention_impls.dense.full import Full

class MineConfig(MechanismConfig, frozen=True):
    size: Annotated[int, msgspec.Meta(ge=1)] = 3

class Mine(Full):
    Config = MineConfig
"""


def written(folder, content, name="mine.py"):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(content)
    return str(folder / name)


def test_a_file_is_a_module_like_any_other(tmp_path):
    file = written(tmp_path, FILE)
    for reference in (file, f"{file}:Mine"):
        target = catalogue.find("mechanism", reference)
        loaded = loading.load(target)
        assert loaded.__name__ == "Mine" and loaded.Config().size == 3
        assert catalogue.find("mechanism", target.reference) == target


@pytest.mark.parametrize(
    ("line", "packages", "module"),
    [
        ("from .core import X", ("inner", "outer"), "outer.inner.mine"),
        ("from . import core", ("inner", "outer"), "outer.inner.mine"),
        ("from ..core import X", ("inner", "outer"), "outer.inner.mine"),
        ("from .core import X", ("inner",), "inner.mine"),
        ("from .core import X", (), "inner.mine"),
    ],
)
def test_a_file_of_a_package_says_the_name_of_its_module(line, packages, module, tmp_path):
    file = written(tmp_path, f"{line}\nclass Mine:\n    card = X\n", "outer/inner/mine.py")
    for folder in Path(file).parents:
        if folder.name in packages:
            (folder / "__init__.py").touch()
            (folder / "core.py").write_text("X = 1")
    with pytest.raises(UsageError, match=f"name the module: {module}:Mine,"):
        loading.load(catalogue.find("mechanism", f"{file}:Mine"))


@pytest.fixture
def give(monkeypatch):
    """Install an entry point of a package."""

    def install(name, value):
        point = EntryPoint(name, value, "lra.attention")
        points = {"lra.attention": [point]}
        monkeypatch.setattr(catalogue, "entry_points", lambda group: points.get(group, []))
        return catalogue.find("mechanism", name)

    return install


def test_an_entry_point_is_a_name(give):
    target = give("theirs", "attention_impls.dense.full:Full")
    assert catalogue.entry_point_names("mechanism") == ["theirs"]
    assert loading.load(target).__name__ == "Full"


def test_an_entry_point_may_name_a_module(give):
    """Its one class is meant, in the run and in the worker, which gets a reference."""
    target = give("theirs", "attention_impls.dense.full")
    again = catalogue._find("mechanism", target.reference)
    assert loading.load(target) is loading.load(again)


def test_an_entry_point_keeps_its_name_whatever_its_class_is_called(give):
    give("acme_linear", "attention_impls.kernel.linear:Linear")
    (target,) = catalogue.expand("mechanism", ["acme*"])
    assert target.reference == "acme_linear"
    assert catalogue.find("mechanism", target.reference) == target


def install(folder, package, *lines, group="lra.attention"):
    """Make a package that gives these names, by its metadata alone."""
    place = folder / f"{package}-1.0.dist-info"
    place.mkdir(parents=True)
    (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (place / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines, ""]))


@pytest.mark.parametrize(
    ("kind", "group", "ours"),
    [("mechanism", "lra.attention", "linear"), ("task", "lra.task", "text")],
)
def test_a_name_that_two_packages_give_is_refused(kind, group, ours, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    install(tmp_path, "acme", "theirs = acme.one:Mine", "sole = acme.one:Sole", group=group)
    install(tmp_path, "zenith", "theirs = zenith:Mine", f"{ours} = zenith:Ours", group=group)
    installed = catalogue.entry_point_names(kind)
    assert {"sole", "theirs", ours} <= set(installed) and len(installed) == len(set(installed))
    both = r"acme\.one:Mine of 'acme' and zenith:Mine of"
    with pytest.raises(UsageError, match=both):
        catalogue.find(kind, "theirs")
    mixed = f"called '{ours}': .* of this package and .*'zenith'"
    for asked, says in (("theirs", both), ("their*", both), (ours, mixed), ("all", mixed)):
        with pytest.raises(UsageError, match=says):
            catalogue.expand(kind, [asked])
    assert catalogue.find(kind, "sole").module == "acme.one"
    found = catalogue.expand(kind, ["sole", "acme.one:Mine"])
    assert [target.name for target in found] == ["sole", "Mine"]
    assert set(catalogue.ambiguous_names(kind)) == {"theirs", ours}


def test_a_package_that_is_found_twice_is_one(tmp_path, monkeypatch):
    for place in ("a", "b"):
        install(tmp_path / place, "acme", "theirs = acme:Mine")
        monkeypatch.syspath_prepend(tmp_path / place)
    assert catalogue.find("mechanism", "theirs").reference == "theirs"


TWO = "class One: card = 1\nclass Two: card = 2\n"


@pytest.mark.parametrize(
    ("content", "error", "says"),
    [
        ("import no_such_package", LraError, "needs the module 'no_such_package'; install"),
        ("", UsageError, r"one public class with a card, or one torch\.nn\.Module, found 0"),
        (
            TWO,
            loading.MisnamedError,
            r"^mine\.py has several classes: One, Two; .* mine\.py:One$",
        ),
    ],
)
def test_a_file_that_cannot_be_loaded_is_one_line(content, error, says, tmp_path):
    target = catalogue.find("mechanism", written(tmp_path, content))
    with pytest.raises(error, match=says) as caught:
        loading.load(target)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "says"),
    [("perfromer", "did you mean 'performer'"), ("nowhere.py", r"no file 'nowhere\.py'")],
)
def test_a_name_that_is_not_there(name, says):
    with pytest.raises(UsageError, match=says):
        catalogue.find("mechanism", name)
