"""Content hashes: of plain values, of files, and of Python source as it is understood."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

DIGITS = 20
"""Hexadecimal digits kept of every SHA-256: 80 bits, far past any accidental collision."""


def value_hash(value: Any) -> str:
    """Return the hash of `value`'s canonical JSON (keys sorted; msgspec structs allowed)."""
    return _digest(msgspec.json.encode(value, order="sorted"))


def file_hash(path: Path) -> str:
    """Return the hash of a file's bytes, or of a folder's names and bytes in sorted order."""
    if path.is_file():
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()[:DIGITS]
    parts = sorted(p for p in path.rglob("*") if p.is_file())
    return value_hash([(p.relative_to(path).as_posix(), file_hash(p)) for p in parts])


def source_hash(
    *paths: Path, leave_out: Collection[str] = (), methods: Collection[str] = ()
) -> str:
    """Return the hash of Python files and of what they import from their own top-level package.

    Imports are read from the syntax tree, so nothing is executed, and followed wherever they stand;
    modules that start with a name in `leave_out` are not. Comments, docstrings, layout and class
    members named in `methods` do not count: the hash changes when behaviour may.
    """
    closure: dict[str, str] = {}
    for path in paths:
        _follow(
            path.resolve(),
            _package_root(path.resolve()),
            leave_out,
            frozenset(methods),
            closure,
        )
    return value_hash(closure)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:DIGITS]


def _package_root(path: Path) -> Path:
    """The topmost folder above `path` that is still a package; the file's folder if none is."""
    root = path.parent
    while (root.parent / "__init__.py").is_file():
        root = root.parent
    return root


def _follow(
    path: Path,
    root: Path,
    leave_out: Collection[str],
    methods: frozenset[str],
    closure: dict[str, str],
) -> None:
    key = path.relative_to(root.parent).as_posix()
    if key in closure:
        return
    closure[key], imports = _parsed(path, path.stat().st_mtime_ns, methods)
    for dotted in imports:
        if not any(dotted == name or dotted.startswith(f"{name}.") for name in leave_out):
            file = _module_file(dotted, root)
            if file is not None:
                _follow(file, root, leave_out, methods, closure)


@cache
def _parsed(path: Path, changed_ns: int, methods: frozenset[str]) -> tuple[str, tuple[str, ...]]:
    """Digest of a file's syntax tree and what it imports; remembered until the file changes."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            node.body = [member for member in node.body if _name(member) not in methods]
    return _digest(repr(_plain(tree)).encode()), tuple(_imports(tree))


def _plain(node: Any) -> Any:
    """A syntax tree as nested tuples, without docstrings, positions and empty fields.

    Unlike `ast.dump` it reads the same under every Python version that parses the same code.
    """
    if isinstance(node, ast.AST):
        fields = ((name, _plain(value)) for name, value in ast.iter_fields(node))
        return (type(node).__name__, *((n, v) for n, v in fields if v not in (None, ())))
    if isinstance(node, list):
        return tuple(_plain(child) for child in node if not _is_bare_string(child))
    return node


def _name(member: ast.stmt) -> str | None:
    return member.name if isinstance(member, ast.FunctionDef) else None


def _is_bare_string(node: Any) -> bool:
    """A docstring, of a module, class, function or field."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _module_file(dotted: str, root: Path) -> Path | None:
    head, *tail = dotted.split(".")
    if head != root.name:
        return None
    place = root.joinpath(*tail)
    for candidate in (place.with_suffix(".py"), place / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None
