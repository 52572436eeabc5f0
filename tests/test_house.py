"""Rules of the house that no linter holds: what is reached by name is never imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from lra.core.catalogue import find, names

ROOT = Path(__file__).resolve().parents[1]
NAMED = {
    find(kind, name).module for kind in ("mechanism", "position", "task") for name in names(kind)
}


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
