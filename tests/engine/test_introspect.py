"""Error of a module that cannot be imported: the place in its author's code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lra.core import catalogue
from lra.engine.plan.introspect import Request, answer_request


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that Python imports from; what was imported is forgotten afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("broken_")]:
        del sys.modules[name]


def reason(reference: str) -> str | None:
    return answer_request(Request(catalogue.find("mechanism", reference))).unavailable


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("x = 1\nundefined_name\n", "NameError: name 'undefined_name' is not defined ({}, line 2)"),
        ("def f():\n    return 1 / 0\n\nf()\n", "ZeroDivisionError: division by zero ({}, line 2)"),
        # The last frame of theirs, not the one below it in somebody else's module.
        (
            "import json\n\njson.loads('')\n",
            "JSONDecodeError: Expecting value: line 1 column 1 (char 0) ({}, line 3)",
        ),
        ("\nx = )\n", "SyntaxError: unmatched ')' ({}, line 2)"),
        ("import missing_thing\n", "'missing_thing'"),
        ("class A:\n    pass\n", "A is no torch.nn.Module"),
    ],
)
def test_the_file_and_line_where_it_goes_wrong(folder: Path, source: str, words: str) -> None:
    broken = folder / "broken_file.py"
    broken.write_text(source)
    told = reason(f"{broken}:A") or ""
    assert words.format("broken_file.py") in told and str(folder) not in told


def test_a_sibling_is_named_and_an_environment_beside_it_is_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = folder / "user_file.py"
    user.write_text("\nimport broken_sibling\n")
    sibling = folder / "broken_sibling.py"
    sibling.write_text("\n\nundefined_name\n")
    words = "NameError: name 'undefined_name' is not defined"
    assert reason(f"{user}:A") == f"{words} (broken_sibling.py, line 3)"
    site = folder / "env" / "site-packages"
    site.mkdir(parents=True)
    sibling.rename(site / sibling.name)
    monkeypatch.syspath_prepend(str(site))
    assert reason(f"{user}:A") == f"{words} (user_file.py, line 2)"


def test_a_package_is_named_by_the_file_in_it(folder: Path) -> None:
    package = folder / "broken_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "main.py").write_text("from .part import X\n")
    (package / "part.py").write_text("X = 1\nundefined_name\n")
    words = "NameError: name 'undefined_name' is not defined"
    assert reason("broken_package.main:A") == f"{words} (part.py, line 2)"


def test_a_name_that_no_module_can_have_is_an_answer_too() -> None:
    assert (reason(".relative:A") or "").startswith("TypeError: the 'package' argument")


def test_an_installed_module_is_named_and_its_neighbours_are_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = folder / "site-packages"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    (site / "broken_single.py").write_text("\nimport broken_stranger\n")
    (site / "broken_stranger.py").write_text("undefined_name\n")
    words = "NameError: name 'undefined_name' is not defined"
    assert reason("broken_single:A") == f"{words} (broken_single.py, line 2)"


def test_what_declares_no_card_is_no_task(folder: Path) -> None:
    file = folder / "broken_task.py"
    file.write_text("def mine(x):\n    return x\n")
    found = answer_request(Request(catalogue.find("task", f"{file}:mine")))
    assert found.unavailable is not None and "no card" in found.unavailable
