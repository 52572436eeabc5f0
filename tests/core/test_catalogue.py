"""Names come from files; other people's code is reached by reference; typos name the nearest."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from lra.core import catalogue
from lra.core.errors import LraError, UsageError, closest_names, unknown_name

SEVEN = {"full", "sdpa", "identity", "linear", "performer", "linformer", "sliding_window"}
FIVE = {"listops", "text", "retrieval", "image", "pathfinder"}


def test_names_are_files() -> None:
    assert set(catalogue.names("mechanism")) >= SEVEN
    assert set(catalogue.names("task")) >= FIVE
    assert set(catalogue.names("position")) >= {"sinusoidal", "learned", "rope", "alibi", "none"}
    assert not {n for kind in ("mechanism", "position", "task") for n in catalogue.names(kind)
                if n.startswith("_") or n == "contract"}  # fmt: skip


def test_finding_names_imports_nothing() -> None:
    code = (
        "import sys\nfrom lra.core import catalogue\n"
        "assert catalogue.names('mechanism') and catalogue.find('mechanism', 'performer').file\n"
        "assert not {'torch', 'attention_impls.contract', 'tasks.contract'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


def test_expand_takes_lists_wildcards_and_all() -> None:
    def asked(*patterns: str) -> list[str]:
        return [target.name for target in catalogue.expand("mechanism", patterns)]

    assert asked("linear,full", "linear") == ["linear", "full"]
    assert asked("lin*") == ["linear", "linformer"]
    assert asked("all") == catalogue.names("mechanism")
    with pytest.raises(UsageError, match="unknown mechanism 'q\\*'"):
        asked("q*")


@pytest.mark.parametrize("known", [("peer:alpha", "peer:beta"), ("alpha", "beta")])
def test_a_prefix_is_no_likeness(known: tuple[str, ...]) -> None:
    assert closest_names("peer:alpa", known) == [known[0]]
    assert closest_names("peer:", known) == closest_names("peer:xy", known) == []


def test_where_there_is_no_name_none_is_offered() -> None:
    assert str(unknown_name("law", "x", [])) == "unknown law 'x'; there is none"


def test_every_target_loads_and_its_reference_leads_back() -> None:
    for kind in ("mechanism", "position", "task"):
        for name in catalogue.names(kind):
            target = catalogue.find(kind, name)
            assert hasattr(catalogue.load(target), "card")
            assert catalogue.find(kind, target.reference) == target


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


def test_a_file_is_a_module_like_any_other(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(FILE)
    for reference in (str(file), f"{file}:Mine"):
        target = catalogue.find("mechanism", reference)
        loaded = catalogue.load(target)
        assert loaded.__name__ == "Mine"
        assert loaded.Config().size == 3
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
def test_a_file_of_a_package_says_the_name_of_its_module(
    line: str, packages: tuple[str, ...], module: str, tmp_path: Path
) -> None:
    file = tmp_path / "outer" / "inner" / "mine.py"
    file.parent.mkdir(parents=True)
    file.write_text(f"{line}\nclass Mine:\n    card = X\n")
    for folder in file.parents:
        if folder.name in packages:
            (folder / "__init__.py").touch()
            (folder / "core.py").write_text("X = 1")
    with pytest.raises(UsageError, match=f"name the module: {module}:Mine, in the folder that has"):
        catalogue.load(catalogue.find("mechanism", f"{file}:Mine"))


def test_a_package_that_is_missing_is_named_still(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("import no_such_package_here")
    with pytest.raises(LraError, match="needs the module 'no_such_package_here'; install it"):
        catalogue.load(catalogue.find("mechanism", str(file)))


def test_an_entry_point_is_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("theirs", "attention_impls.dense.full:Full", "lra.attention")

    def installed(group: str) -> list[EntryPoint]:
        return [point] if group == "lra.attention" else []

    monkeypatch.setattr(catalogue, "entry_points", installed)
    assert catalogue.entry_point_names("mechanism") == ["theirs"]
    assert catalogue.load(catalogue.find("mechanism", "theirs")).__name__ == "Full"


def test_an_entry_point_may_name_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its one class is meant, in the run and in the worker, which gets a reference."""
    point = EntryPoint("theirs", "attention_impls.dense.full", "lra.attention")
    monkeypatch.setattr(catalogue, "entry_points", lambda group: [point])
    target = catalogue.find("mechanism", "theirs")
    again = catalogue._find("mechanism", target.reference)
    assert catalogue.load(target) is catalogue.load(again)


def test_an_entry_point_keeps_its_name_whatever_its_class_is_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    point = EntryPoint("acme_linear", "attention_impls.kernel.linear:Linear", "lra.attention")
    monkeypatch.setattr(catalogue, "entry_points", lambda group: [point])
    (target,) = catalogue.expand("mechanism", ["acme*"])
    assert target.reference == "acme_linear"
    assert catalogue.find("mechanism", target.reference) == target


def install(folder: Path, package: str, *lines: str, group: str = "lra.attention") -> None:
    """Make a package that gives these names, by its metadata alone."""
    place = folder / f"{package}-1.0.dist-info"
    place.mkdir()
    (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (place / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines, ""]))


@pytest.mark.parametrize(
    ("kind", "group", "ours"),
    [("mechanism", "lra.attention", "linear"), ("task", "lra.task", "text")],
)
def test_a_name_that_two_packages_give_is_refused(
    kind: catalogue.Kind, group: str, ours: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    install(tmp_path, "acme", "theirs = acme.one:Mine", "sole = acme.one:Sole", group=group)
    install(tmp_path, "zenith", "theirs = zenith:Mine", f"{ours} = zenith:Ours", group=group)
    assert {"sole", "theirs", ours} <= set(catalogue.entry_point_names(kind))
    assert len(catalogue.entry_point_names(kind)) == len(set(catalogue.entry_point_names(kind)))
    for ask in (catalogue.find, lambda kind, name: catalogue.expand(kind, [name])):
        with pytest.raises(UsageError, match=r"acme\.one:Mine of 'acme' and zenith:Mine of"):
            ask(kind, "theirs")
    with pytest.raises(UsageError, match="of 'acme' and"):
        catalogue.expand(kind, ["their*"])
    for asked in (ours, "all"):
        with pytest.raises(UsageError, match=f"called '{ours}': .* of this package and .*'zenith'"):
            catalogue.expand(kind, [asked])
    assert catalogue.find(kind, "sole").module == "acme.one"
    assert [target.name for target in catalogue.expand(kind, ["sole", "acme.one:Mine"])] == [
        "sole", "Mine",
    ]  # fmt: skip
    assert set(catalogue.ambiguous_names(kind)) == {"theirs", ours}


def test_a_package_that_is_found_twice_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        install(tmp_path / place, "acme", "theirs = acme:Mine")
        monkeypatch.syspath_prepend(tmp_path / place)
    assert catalogue.find("mechanism", "theirs").reference == "theirs"


def test_what_cannot_be_loaded_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "needs.py").write_text("import a_module_that_is_not_there\n")
    (tmp_path / "empty.py").write_text("")
    needs = catalogue.find("mechanism", str(tmp_path / "needs.py"))
    with pytest.raises(LraError, match="needs the module 'a_module_that_is_not_there'; install"):
        catalogue.load(needs)
    with pytest.raises(
        UsageError, match=r"one public class with a card, or one torch\.nn\.Module, found 0"
    ):
        catalogue.load(catalogue.find("mechanism", str(tmp_path / "empty.py")))
    (tmp_path / "two.py").write_text("class One: card = 1\nclass Two: card = 2\n")
    with pytest.raises(
        catalogue.MisnamedError, match=r"^two\.py has several classes: One, Two; .* two\.py:One$"
    ):
        catalogue.load(catalogue.find("mechanism", str(tmp_path / "two.py")))
    with pytest.raises(UsageError, match="did you mean 'performer'"):
        catalogue.find("mechanism", "perfromer")
    with pytest.raises(UsageError, match=r"no file 'nowhere\.py'"):
        catalogue.find("mechanism", "nowhere.py")
