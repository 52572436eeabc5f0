"""Content hashes: of plain values, of files, and of the meaning of Python source."""

from __future__ import annotations

import ast
import hashlib
import os
import zlib
from collections.abc import Collection, Iterator
from functools import cache
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import msgspec

DIGITS = 20
"""Hexadecimal digits kept of every SHA-256: 80 bits, far past any accidental collision."""

_HOUSE = Path(__file__).resolve().parents[2]
_OURS = ("attention_impls", "lra", "tasks")
_INSTALLED = ("site-packages", "dist-packages")
"""Folders of installed packages: neighbours there are unrelated."""


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


def checksum(file: Path, first: int | None = None) -> int:
    """Return the CRC-32 of a file, or of its first bytes.

    It detects damage by disks, copies and kills, not forgery. It costs half as much as any hash of
    the standard library (0.05 s for 100 MB), and can be continued as a file grows.
    """
    size = file.stat().st_size if first is None else first
    if not size:
        return 0
    with file.open("rb") as stream, mmap(stream.fileno(), size, access=ACCESS_READ) as content:
        return zlib.crc32(content)


def source_hash(
    *paths: Path, leave_out: Collection[str] = (), methods: Collection[str] = ()
) -> str:
    """Return the hash of Python files and of the files that they import, as far as these are theirs
    or ours.

    Our files are followed within their own top-level package. Other people's files are followed
    within theirs, into ours, and, unless installed, to what lies beside their package or file.
    Imports are read from the syntax tree, so nothing is executed, and followed wherever they stand;
    modules that start with a name in `leave_out` are not. Comments, docstrings, layout and class
    members named in `methods` do not count: the hash changes when behaviour may.
    """
    starts = [path.resolve() for path in paths]
    closure: dict[Path, str] = {}
    waiting = list(starts)
    while waiting:
        path = waiting.pop()
        root = _package_root(path)
        if path in closure or (path not in starts and _is_left_out(path, root, leave_out)):
            continue
        closure[path], imports = _parsed(path, path.stat().st_mtime_ns, frozenset(methods))
        waiting += [file for name in imports for file in _module_files(name, path, root)]
    return value_hash({_label(path, starts[0].parent): closure[path] for path in closure})


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:DIGITS]


def _package_root(path: Path) -> Path:
    """Topmost folder above `path` that is still a package; the file's folder if none is."""
    root = path.parent
    while (root.parent / "__init__.py").is_file():
        root = root.parent
    return root


def _import_folder(root: Path) -> Path:
    """Folder that must be on Python's path for a root's files to be imported."""
    return root.parent if (root / "__init__.py").is_file() else root


def _is_ours(root: Path) -> bool:
    return root.parent == _HOUSE and root.name in _OURS


def _is_left_out(path: Path, root: Path, leave_out: Collection[str]) -> bool:
    if not leave_out:
        return False
    place = path.relative_to(_import_folder(root)).with_suffix("")
    module = ".".join(place.parts).removesuffix(".__init__")
    return any(f"{module}.".startswith(f"{name}.") for name in leave_out)


def _label(path: Path, folder: Path) -> str:
    """A file's name in a hash, the same wherever the tree lies; others' files by their path from
    `folder`."""
    if _is_ours(_package_root(path)):
        return path.relative_to(_HOUSE).as_posix()
    return f"./{os.path.relpath(path, folder)}"


@cache
def _parsed(path: Path, changed_ns: int, methods: frozenset[str]) -> tuple[str, tuple[str, ...]]:
    """Digest of a file's syntax tree, and its imports; remembered until the file changes."""
    source = path.read_bytes()
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        # The file may be for another Python version, and never be imported here.
        return _digest(source), ()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            node.body = [member for member in node.body if _name(member) not in methods]
    return _digest(repr(plain_tree(tree)).encode()), tuple(_imports(tree))


def plain_tree(node: Any) -> Any:
    """Return a syntax tree as nested tuples, without docstrings, positions and empty fields.

    Unlike `ast.dump` it reads the same under every Python version that parses the same code.
    """
    if isinstance(node, ast.AST):
        fields = ((name, plain_tree(value)) for name, value in ast.iter_fields(node))
        return (type(node).__name__, *((n, v) for n, v in fields if v not in (None, ())))
    if isinstance(node, list):
        return tuple(plain_tree(child) for child in node if not _is_bare_string(child))
    return node


def _name(member: ast.stmt) -> str | None:
    return member.name if isinstance(member, ast.FunctionDef) else None


def _is_bare_string(node: Any) -> bool:
    """Whether a statement is a docstring, of a module, class, function or field."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _imports(tree: ast.AST) -> Iterator[str]:
    """Modules that a file may import, relative ones with their leading dots."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            dots, module = "." * node.level, node.module or ""
            yield dots + module
            # Each name may be a module too.
            yield from (f"{dots}{f'{module}.' if module else ''}{a.name}" for a in node.names)


def _module_files(name: str, path: Path, root: Path) -> Iterator[Path]:
    """Files, among those that count, of a module imported by the file `path`."""
    dotted = name.lstrip(".")
    level = len(name) - len(dotted)
    parts = dotted.split(".") if dotted else []
    for folder in path.parents[level - 1 : level] if level else _folders(parts[0], root):
        place = folder.joinpath(*parts)
        for candidate in (place / "__init__.py", place.parent / f"{place.name}.py"):
            if candidate.is_file():
                yield candidate
                break


def _folders(head: str, root: Path) -> Iterator[Path]:
    """Folders where a top-level module imported by a file of this root is looked for."""
    if head == root.name:
        yield root.parent
    if _is_ours(root):
        return
    if head in _OURS:
        yield _HOUSE
    beside = _import_folder(root)
    if beside.name not in _INSTALLED:
        yield beside
