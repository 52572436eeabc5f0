"""Units of the sources that figures come from: functions and assigned names, each by a hash.

A unit is called `file:Class.method` or `file:NAME`. Its hash changes with its syntax tree, but not
with layout, comments, docstrings, annotations or its own name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from lra.core.hashing import plain_tree, value_hash

DIGITS = 12
WATCHED = (
    "attention_impls", "tasks", "lra/models", "lra/training", "lra/measure", "lra/engine/work",
    *(f"lra/engine/process/{name}.py" for name in ("rank", "torchrun", "worker")),
    *(
        f"lra/core/{name}.py"
        for name in (
            "cards", "dataset", "hashing", "profile_metrics", "protocol", "records",
            "trained_attention",
        )
    ),
    *(
        f"lra/identity/{name}.py"
        for name in ("calls", "cases", "data", "outcomes", "probe", "ragged_tasks")
    ),
)  # fmt: skip
"""Paths of the code that trainings, timings and profiles run, and of the cases."""
UNWATCHED = (
    "tasks/solvers", "tasks/_preview.py", "lra/measure/error.py", "lra/measure/pattern.py",
    "lra/measure/baselines.py", "lra/measure/baselines_by_source.py",
    "lra/measure/baselines_by_token.py", "lra/measure/ceilings.py",
    *(f"lra/engine/work/{kind}.py" for kind in ("baseline", "ceiling", "error", "show", "verify")),
)  # fmt: skip
"""Paths of the code for the kinds of cells that hold hashes of their sources."""
UNRECORDED = frozenset((
    "comes_near", "convergence", "exact_at", "floor", "predicted_error", "rules_of_thumb", "shown",
    "solve",
))  # fmt: skip
"""Methods that only those kinds call."""
PROSE = frozenset(("title", "paper", "year"))
"""Arguments of cards that are words for people."""


@dataclass(frozen=True)
class Unit:
    """One function, or one name that is assigned or imported outside of functions."""

    hash: str
    is_function: bool = False
    mentions: frozenset[str] = frozenset()
    """Identifiers that the unit reads."""
    origin: str = ""
    """Place that an import names: `attention_impls/contract:Dims`."""


Units = Mapping[str, Unit]


def units(root: Path) -> dict[str, Unit]:
    """Return the units of a checkout's watched files; raises `SyntaxError` or `ValueError` for a
    file that is no Python."""
    found: dict[str, Unit] = {}
    for name, file in watched(root).items():
        found |= units_of(file, name)
    return found


def units_of(file: Path, name: str) -> dict[str, Unit]:
    """Return the units of a file called `name`; raises the errors of `units`."""
    found: dict[str, Unit] = {}
    for qualified, unit in _within(ast.parse(file.read_bytes(), filename=name).body, "", name):
        # A property and its setter, say, are one unit: its hash is that of all.
        there = found.get(f"{name}:{qualified}")
        if there is not None:
            unit = replace(
                unit,
                hash=value_hash([there.hash, unit.hash])[:DIGITS],
                mentions=there.mentions | unit.mentions,
            )
        found[f"{name}:{qualified}"] = unit
    return found


def watched(root: Path) -> dict[str, Path]:
    """Return the files of a checkout that figures come from, by their names in it."""
    found: dict[str, Path] = {}
    for place in WATCHED:
        for file in sorted((root / place).rglob("*.py")) or [root / place]:
            name = file.relative_to(root).as_posix()
            if file.is_file() and not name.startswith(UNWATCHED):
                found[name] = file
    return found


def hashes(now: Units) -> dict[str, str]:
    """Return the hash of each unit, sorted."""
    return {name: now[name].hash for name in sorted(now)}


def changed_units(before: Mapping[str, str], after: Units) -> set[str]:
    """Return the units that are new or changed, by hash; a moved or renamed one is neither. A
    method counts as moved only within a class of the same name: another may override it."""
    gone = {(_class(name), before[name]) for name in before.keys() - after.keys()}
    return {
        name
        for name, unit in after.items()
        if (before[name] != unit.hash if name in before else (_class(name), unit.hash) not in gone)
    }


def lost_functions(before: Mapping[str, str], after: Units, blind: Iterable[str]) -> set[str]:
    """Return the functions that are gone, not moved, and were entered by no case, though other code
    still mentions their name: overrides, perhaps."""
    there = {(_class(name), unit.hash) for name, unit in after.items()}
    called = frozenset[str]().union(*(unit.mentions for unit in after.values()))
    return {
        name
        for name in set(blind) - after.keys()
        if (_class(name), before.get(name)) not in there and _word(name) in called
    }


def required_cases(changed: set[str], after: Units) -> dict[str, set[str]]:
    """Return the units that a case must reach for an edit to be seen, each with the functions by
    which it may.

    A changed function is reached by itself. A changed name is reached by each function that reads
    it, directly or by way of other names, in its own file or in one that imports it. A name that is
    read otherwise, such as a field of a class, is reached by any function that reads it.
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
        readers = {other for other, unit in after.items() if _word(name) in unit.mentions}
        sure = {other for other in readers if _file(other) == _file(name)}
        sure |= {other for other, unit in after.items() if unit.origin == _place(name)}
        waiting |= sure
        if readers and not sure:
            found[name] = {other for other in readers if after[other].is_function}
    return found


def _file(unit: str) -> str:
    return unit.partition(":")[0]


def _class(unit: str) -> str:
    return unit.partition(":")[2].rpartition(".")[0]


def _word(unit: str) -> str:
    return unit.partition(":")[2].rpartition(".")[2]


def _place(unit: str) -> str:
    """Return the place by which a unit is imported; for a part of a class it matches no import."""
    return f"{_file(unit).removesuffix('.py').removesuffix('/__init__')}:{unit.partition(':')[2]}"


def _within(body: list[ast.stmt], prefix: str, file: str) -> Iterator[tuple[str, Unit]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if not (prefix and node.name in UNRECORDED):
                yield f"{prefix}{node.name}", _unit(node, is_function=True)
        elif isinstance(node, ast.ClassDef):
            header = ast.ClassDef("", node.bases, node.keywords, [], node.decorator_list)
            yield f"{prefix}{node.name}", _unit(header)
            yield from _within(node.body, f"{prefix}{node.name}.", file)
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
            yield from ((f"{prefix}{name}", _unit(node)) for name in names)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from _imported(node, prefix, file)
        elif isinstance(node, ast.If | ast.Try):
            yield from _conditional(node, prefix, file)
        elif not _is_text(node):
            yield f"{prefix}<body>", _unit(node)


def _conditional(node: ast.If | ast.Try, prefix: str, file: str) -> Iterator[tuple[str, Unit]]:
    """Units under a condition, which differ where the condition does."""
    if isinstance(node, ast.If):
        condition, parts = repr(plain_tree(node.test)), [node.body, node.orelse]
    else:
        condition = repr(plain_tree([handler.type for handler in node.handlers]))
        handled = [handler.body for handler in node.handlers]
        parts = [node.body, *handled, node.orelse, node.finalbody]
    for turn, part in enumerate(parts):
        for name, unit in _within(part, prefix, file):
            yield name, replace(unit, hash=value_hash([condition, turn, unit.hash])[:DIGITS])


def _imported(
    node: ast.Import | ast.ImportFrom, prefix: str, file: str
) -> Iterator[tuple[str, Unit]]:
    module = ""
    if isinstance(node, ast.ImportFrom):
        above = file.split("/")[: -node.level] if node.level else []
        module = "/".join([*above, *(node.module or "").split(".")]).strip("/")
    for alias in node.names:
        origin = f"{module}:{alias.name}"
        name = alias.asname or alias.name.partition(".")[0]
        yield f"{prefix}{name}", Unit(value_hash(origin)[:DIGITS], origin=origin)


def _unit(node: ast.AST, *, is_function: bool = False) -> Unit:
    for part in ast.walk(node):
        if isinstance(part, ast.arg):
            part.annotation = None
        elif isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
            part.returns = None
        elif isinstance(part, ast.Call):
            part.keywords = [k for k in part.keywords if k.arg not in PROSE]
    mentions = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            mentions.add(part.id)
        elif isinstance(part, ast.Attribute):
            mentions.add(part.attr)
    if is_function:
        node.name = ""  # type: ignore[attr-defined]
    return Unit(value_hash(repr(plain_tree(node)))[:DIGITS], is_function, frozenset(mentions))


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
