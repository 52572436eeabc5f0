"""Units of the sources that figures come from: functions and assigned names, each by a hash.

A unit is called `file:Class.method` or `file:NAME`. Its hash changes with its syntax tree, but not
with layout, comments, docstrings, annotations or its own name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lra.core.hashing import plain_tree, value_hash

DIGITS = 12
WATCHED = (
    "attention_impls", "tasks", "lra/models", "lra/training", "lra/measure", "lra/engine/work",
    "lra/adapters/adapt.py", *(f"lra/engine/{name}.py" for name in ("gang", "rank", "worker")),
    *(
        f"lra/core/{name}.py"
        for name in ("attended", "cards", "dataset", "hashing", "profiled", "protocol", "records")
    ),
    *(
        f"lra/identity/{name}.py"
        for name in ("calls", "cases", "data", "outcomes", "probe", "ragged")
    ),
)  # fmt: skip
"""Places of the code that trainings, timings and profiles run, and of the cases."""
UNWATCHED = (
    "tasks/solvers", "tasks/_shown.py", "lra/measure/error.py", "lra/measure/pattern.py",
    "lra/measure/baselines.py", "lra/measure/baselines_by_token.py", "lra/measure/ceilings.py",
    *(f"lra/engine/work/{kind}.py" for kind in ("baseline", "ceiling", "error", "show", "verify")),
)  # fmt: skip
"""Code of the kinds of cells that hold hashes of their sources."""
UNRECORDED = frozenset((
    "comes_near", "convergence", "exact_at", "predicted_error", "rules_of_thumb", "shown", "solve",
))  # fmt: skip
"""Methods that only those kinds ask for."""
PROSE = frozenset(("title", "paper", "year"))
"""Arguments that are words of cards."""

IMPORTS = "<imports>"
"""All imports of a file: one unit."""


@dataclass(frozen=True)
class Unit:
    """One function, or one name that is assigned outside of functions."""

    hash: str
    is_function: bool
    mentions: frozenset[str]
    """Identifiers that it reads, or imports."""


Units = Mapping[str, Unit]


def units(root: Path) -> dict[str, Unit]:
    """Return the units of a checkout's watched files; raises `SyntaxError` for one that is none."""
    found: dict[str, Unit] = {}
    for file in _files(root):
        found |= units_of(file, file.relative_to(root).as_posix())
    return found


def units_of(file: Path, name: str) -> dict[str, Unit]:
    """Return the units of a file called `name`; raises `SyntaxError` where it is no Python."""
    found: dict[str, Unit] = {}
    tree = ast.parse(file.read_bytes(), filename=name)
    imports = [n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom)]
    if imports:
        hashed = value_hash(sorted(repr(plain_tree(node)) for node in imports))[:DIGITS]
        words = frozenset(alias.name for node in imports for alias in node.names)
        found[f"{name}:{IMPORTS}"] = Unit(hashed, False, words)
    for qualified, unit in _within(tree.body, ""):
        # Of several, such as a property and its setter, the hash is that of all.
        there = found.get(f"{name}:{qualified}")
        if there is not None:
            unit = Unit(
                value_hash([there.hash, unit.hash])[:DIGITS],
                unit.is_function,
                there.mentions | unit.mentions,
            )
        found[f"{name}:{qualified}"] = unit
    return found


def hashes(now: Units) -> dict[str, str]:
    """Return the hash of each unit, sorted."""
    return {name: now[name].hash for name in sorted(now)}


def is_watched(name: str) -> bool:
    """Return whether a file, as a checkout calls it, is Python that figures come from."""
    return name.endswith(".py") and name.startswith(WATCHED) and not name.startswith(UNWATCHED)


def differing(before: Mapping[str, str], after: Units) -> set[str]:
    """Return the units that are new or other than before, by hash; one that was moved or renamed is
    neither."""
    gone = {before[name] for name in before.keys() - after.keys()}
    return {
        name
        for name, unit in after.items()
        if (before[name] != unit.hash if name in before else unit.hash not in gone)
    }


def lost(before: Mapping[str, str], after: Units, blind: Iterable[str]) -> set[str]:
    """Return the functions that are gone, not moved, and were entered by no case, though others
    still call something of their name: an override, perhaps."""
    there = {unit.hash for unit in after.values()}
    called = frozenset[str]().union(*(unit.mentions for unit in after.values()))
    return {
        name
        for name in set(blind) - after.keys()
        if before.get(name) not in there and name.rpartition(".")[2].rpartition(":")[2] in called
    }


def touched(changed: set[str], after: Units) -> dict[str, set[str]]:
    """Return what a case has to enter for an edit to be seen, and the functions by which it may.

    A function that changed; each one that reads a name that changed, be it by way of other names,
    in the file of that name or in one that imports it; and of a name that is read otherwise, such
    as a field of a class, any function that reads it.
    """
    waiting, found, done = set(changed), dict[str, set[str]](), set[str]()
    while waiting:
        name = waiting.pop()
        if name in done:
            continue
        done.add(name)
        if after[name].is_function:
            found[name] = {name}
            continue
        file, _, qualified = name.partition(":")
        word = qualified.rpartition(".")[2]
        readers = {
            other
            for other, unit in after.items()
            if word in unit.mentions and not other.endswith(IMPORTS)
        }
        sure = {other for other in readers if _file(other) == file or _imports(other, word, after)}
        waiting |= sure
        if readers and not sure:
            found[name] = {other for other in readers if after[other].is_function}
    return found


def _file(unit: str) -> str:
    return unit.partition(":")[0]


def _imports(unit: str, word: str, after: Units) -> bool:
    imports = after.get(f"{_file(unit)}:{IMPORTS}")
    return imports is not None and word in imports.mentions


def _files(root: Path) -> Iterator[Path]:
    for place in WATCHED:
        for file in sorted((root / place).rglob("*.py")) or [root / place]:
            if is_watched(file.relative_to(root).as_posix()) and file.is_file():
                yield file


def _within(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, Unit]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name not in UNRECORDED:
                yield f"{prefix}{node.name}", _unit(node, is_function=True)
        elif isinstance(node, ast.ClassDef):
            header = ast.ClassDef("", node.bases, node.keywords, [], node.decorator_list)
            yield f"{prefix}{node.name}", _unit(header)
            yield from _within(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
            yield from ((f"{prefix}{name}", _unit(node)) for name in names)
        elif not isinstance(node, ast.Import | ast.ImportFrom) and not _is_text(node):
            yield f"{prefix}<body>", _unit(node)


def _unit(node: ast.AST, *, is_function: bool = False) -> Unit:
    mentions = set()
    for part in ast.walk(node):
        if isinstance(part, ast.arg):
            part.annotation = None
        elif isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
            part.returns = None
        elif isinstance(part, ast.Call):
            part.keywords = [k for k in part.keywords if k.arg not in PROSE]
        elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            mentions.add(part.id)
        elif isinstance(part, ast.Attribute):
            mentions.add(part.attr)
    if is_function:
        node.name = ""  # type: ignore[attr-defined]
    return Unit(value_hash(repr(plain_tree(node)))[:DIGITS], is_function, frozenset(mentions))


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
