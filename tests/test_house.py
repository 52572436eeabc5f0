"""Rules of the house that no linter holds: what is reached by name is never imported, and stands
where its kind stands."""

from __future__ import annotations

import ast
import keyword
import re
import tomllib
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from tokenize import COMMENT, generate_tokens
from typing import get_args

import pytest

from lra.core.catalogue import Kind, Target, find, names

ROOT = Path(__file__).resolve().parents[1]
TARGETS = [find(kind, name) for kind in get_args(Kind) for name in names(kind)]
NAMED = {target.module for target in TARGETS}
PLACES = {
    "mechanism": "attention_impls/*",
    "position": "attention_impls/positions",
    "task": "tasks",
}
"""The folders where files of a kind stand."""
FAMILIES = sorted(
    folder.name
    for folder in (ROOT / "attention_impls").iterdir()
    if folder.name != "contract" and any(folder.glob("*.py"))
)


def imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("file", sorted((ROOT / "lra").rglob("*.py")), ids=lambda f: f.stem)
def test_the_arena_imports_no_mechanism_position_or_task(file: Path) -> None:
    assert not NAMED & set(imported(file))


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: f"{target.kind}-{target.name}")
def test_a_named_file_stands_in_its_place(target: Target) -> None:
    file = target.file.relative_to(ROOT)
    said = f"{file} defines the {target.kind} '{target.name}'"
    for part in target.module.split("."):
        fits = re.fullmatch(r"[a-z][a-z0-9_]*", part) and not keyword.iskeyword(part)
        assert fits, f"{said}: rename '{part}', in small letters, digits and underscores"
    assert file.parent.match(PLACES[target.kind]), (
        f"{said}: move it into {PLACES[target.kind].replace('*', '<family>')}; the name of what is "
        "none, such as a helper, begins with _"
    )
    assert (ROOT / file.parent / "__init__.py").is_file(), (
        f"{said}: add {file.parent}/__init__.py, with one line that says what the folder holds"
    )


def test_the_contract_of_imports_names_every_family() -> None:
    """Some tasks are named as examples; all are held above."""
    said = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (forbidden,) = [
        contract["forbidden_modules"]
        for contract in said["tool"]["importlinter"]["contracts"]
        if contract["name"] == "Mechanisms and tasks are reached by name, never imported"
    ]
    listed = [name for name in forbidden if name.startswith("attention_impls.")]
    assert sorted(listed) == [f"attention_impls.{name}" for name in FAMILIES], (
        "name each folder of attention_impls that holds mechanisms or positions, and no other, in "
        "the contract 'Mechanisms and tasks are reached by name' of pyproject.toml"
    )


SENTENCE = re.compile(r"(?:\A|[.!?:]\s+|\n\s*\n\s*)(What|Of|Those)\s[a-z{`]")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def texts(source: str) -> Iterator[str]:
    """Yield every string and comment; a place to fill in reads `{}`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            parts = (v.value if isinstance(v, ast.Constant) else "{}" for v in node.values)
            yield "".join(map(str, parts))
    comments = (t for t in generate_tokens(StringIO(source).readline) if t.type == COMMENT)
    yield from (comment.string.lstrip("# ") for comment in comments)


def begun_badly(text: str) -> list[str]:
    """Return its sentences that begin with What, Of or Those, questions not counted."""
    found = [text[m.start() :] for m in SENTENCE.finditer(text)]
    return [one for one in found if not re.match(r"[^.]*\?", one)]


def test_sentences_that_begin_badly_are_found() -> None:
    assert begun_badly("Fine. What is left is bad.") and begun_badly("Of two, the first.")
    assert not begun_badly("What is it?") and not begun_badly("It is what is left.")
    assert [t for t in texts('x = f"{y} z"  # Those of it\n') if begun_badly(t)]


@pytest.mark.parametrize("room", ["lra", "tasks", "attention_impls", "tests"])
def test_no_sentence_begins_with_what_of_or_those(room: str) -> None:
    files = sorted((ROOT / room).rglob("*.py"))
    found = [
        f"{file.relative_to(ROOT)}: {bad[:60]}"
        for file in files
        if file != Path(__file__)
        for text in texts(file.read_text(encoding="utf-8"))
        for bad in begun_badly(text)
    ]
    assert files and not found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_sentence_of_a_page_begins_so(page: Path) -> None:
    assert not begun_badly(page.read_text(encoding="utf-8"))


ROOMS = ("lra", "tasks", "attention_impls")
FILES = [file for room in ROOMS for file in sorted((ROOT / room).rglob("*.py"))]


@pytest.fixture(scope="module")
def identifiers() -> set[str]:
    """All words of the code, and the names of its modules and folders."""
    words = {word for file in FILES for word in re.findall(r"\w+", file.read_text("utf-8"))}
    return words | {part for file in FILES for part in file.with_suffix("").parts}


def test_the_map_of_names_leads_to_names_in_force(identifiers: set[str]) -> None:
    modules = {".".join(file.relative_to(ROOT).with_suffix("").parts) for file in FILES}
    packages = {name.removesuffix(".__init__") for name in modules}
    page = (ROOT / "docs/names.md").read_text("utf-8")
    rows = re.findall(r"^\|.*\| (.*) \|$", page, re.MULTILINE)
    names = [name for row in rows for name in re.findall(r"`([\w.]+)`", row)]
    assert len(names) > 200
    assert [name for name in names if name.split(".")[-1] not in identifiers] == []
    whole = [name for name in names if name.split(".")[0] in ROOMS]
    lost = [n for n in whole if n not in packages and n.rpartition(".")[0] not in modules]
    assert whole and lost == []


def test_pages_name_things_that_their_files_have() -> None:
    found = re.compile(r"`(\w+)` (?:in|of) `([\w/]+\.py)`")
    pages = [ROOT / "CONTRIBUTING.md", *PAGES]
    named = [own for page in pages for own in found.findall(page.read_text("utf-8"))]
    assert named
    assert [name for name, file in named if name not in (ROOT / file).read_text("utf-8")] == []
