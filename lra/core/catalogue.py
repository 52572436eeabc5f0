"""Names of mechanisms, positions and tasks, found without importing any of them.

A name is a file's stem. Other people's code is reached as `package.module:Class`, as
`path/file.py:Class`, through an entry point of the group `lra.attention` or `lra.task`, or, from
the packages that the extra `peers` installs, as `peer:name`.
"""

from __future__ import annotations

import fnmatch
import importlib
import importlib.util
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Literal

import msgspec

from lra.core import peers
from lra.core.errors import LraError, UsageError, ensure_readable, unknown_name
from lra.core.paths import path_kind

Kind = Literal["mechanism", "position", "task"]

_ROOTS: dict[Kind, str] = {
    "mechanism": "attention_impls",
    "position": "attention_impls/positions",
    "task": "tasks",
}
_ENTRY_POINTS: dict[Kind, str] = {"mechanism": "lra.attention", "task": "lra.task"}

NO_MIXING = "identity"
"""The mechanism that returns its values, without any mixing: the floor of every cost."""
LOCAL = "local"
"""The mechanism that mixes a few neighbours alone: a convolution of stated width."""
CONTROLS = (NO_MIXING, LOCAL)
"""Mechanisms that show what a task asks for, and compete with none: in no front and no rank."""
EXACT = "sdpa"
"""Exact attention by torch's fastest kernel: the reference for cost."""
CYCLE = "+"
"""Sign between the mechanisms of a cycle, which repeats over a model's layers."""


class Target(msgspec.Struct, frozen=True):
    """Location of one named mechanism, position or task."""

    kind: Kind
    name: str
    module: str
    """Dotted module, or the path of a Python file."""
    attribute: str | None
    """Class to take; None means the only one the file defines."""
    ours: bool
    by_name: bool = False
    """Whether its name comes from somebody's package or from `lra/peers`."""
    members: tuple[Target, ...] = ()
    """Mechanisms of a cycle, in the order of the layers; the fields above are then the first's, but
    for the name, and `ours` tells whether all are."""

    @property
    def reference(self) -> str:
        """Return the name that `find` turns back into this target."""
        if self.members:
            return CYCLE.join(member.reference for member in self.members)
        if self.ours or self.by_name:
            return self.name
        if self.module.endswith(".py") and self.attribute is None:
            return self.module
        return f"{self.module}:{self.attribute}"

    @property
    def is_peer(self) -> bool:
        """Whether it is one of the public packages that `lra/peers` describes."""
        return self.name.startswith(peers.PREFIX)

    @property
    def file(self) -> Path:
        """Its source file, found without importing anything.

        Raises `UsageError` where there is none.
        """
        if self.module.endswith(".py"):
            return Path(self.module)
        # The outermost package alone: a search for what is inside would import it.
        head, *inner = self.module.split(".")
        with suppress(ImportError, ValueError):
            spec = importlib.util.find_spec(head)
            homes = [] if spec is None else [Path(p) for p in spec.submodule_search_locations or ()]
            origin = None if spec is None else spec.origin
            files = [home.joinpath(*inner, "__init__.py") for home in homes]
            if inner:
                files += [home.joinpath(*inner).with_suffix(".py") for home in homes]
            elif origin is not None:
                files.append(Path(origin))
            for file in files:
                if path_kind(file) == "file":
                    return file
        raise UsageError(f"{self.kind} '{self.name}': no module '{self.module}'; install it")


def names(kind: Kind) -> list[str]:
    """Return our names of this kind, sorted."""
    return sorted(_own_modules(kind))


def entry_point_names(kind: Kind) -> list[str]:
    """Return the names that other installed packages add through entry points, sorted."""
    return sorted(_installed(kind))


def ambiguous_names(kind: Kind) -> dict[str, str]:
    """Return an error message for each name that two installed packages give, or one of them and
    we: chance would decide between them."""
    ours, found = _own_modules(kind), {}
    for name, points in _installed(kind).items():
        places = [f"{value} of {package}" for value, package in sorted(points)]
        if name in ours:
            places.insert(0, f"{ours[name]} of this package")
        if len(places) > 1:
            remedy = f"name one by its module, as {min(points)[0]}, or uninstall its package"
            if name in ours:
                remedy = "uninstall the other package, or rename its entry point"
            found[name] = f"two {kind}s are called '{name}': {' and '.join(places)}; {remedy}"
    return found


def _installed(kind: Kind) -> dict[str, dict[tuple[str, str], EntryPoint]]:
    """Entry points by name, then by reference and package."""
    found: dict[str, dict[tuple[str, str], EntryPoint]] = {}
    group = _ENTRY_POINTS.get(kind)
    for point in entry_points(group=group) if group else ():
        package = "an installed package" if point.dist is None else f"'{point.dist.name}'"
        found.setdefault(point.name, {})[point.value, package] = point
    return found


def find(kind: Kind, reference: str) -> Target:
    """Return the target of a name, an entry point, `package.module:Class` or `file.py:Class`.

    Raises `UsageError` with the nearest known name when there is none, and for a name that two
    packages give.
    """
    target = _find(kind, reference)
    if not target.ours and target.name in _own_modules(kind):
        raise UsageError(
            f"{kind} '{reference}' would be called '{target.name}', as one of ours is; rename it"
        )
    return target


def _find(kind: Kind, reference: str) -> Target:
    if kind == "mechanism" and CYCLE in reference:
        return _cycle(reference)
    if kind == "mechanism" and reference.startswith(peers.PREFIX):
        module, _, attribute = peers.read(reference).reference.partition(":")
        return Target(kind, reference, module, attribute, ours=False, by_name=True)
    module, colon, attribute = reference.partition(":")
    if colon and not (module and attribute):
        raise UsageError(f"{kind} '{reference}': {_why_incomplete(module, attribute)}")
    if module.endswith(".py"):
        with ensure_readable(f"{kind} '{reference}'"):
            there = path_kind(module) == "file"
        if not there:
            raise UsageError(f"{kind} '{reference}': no file '{module}'; check the path")
        name = attribute or Path(module).stem
        return Target(kind, name, str(Path(module).resolve()), attribute or None, ours=False)
    if colon:
        return Target(kind, attribute, module, attribute, ours=False)
    ours = _own_modules(kind)
    if reference in ours:
        return Target(kind, reference, ours[reference], None, ours=True)
    if points := _installed(kind).get(reference):
        if len(points) > 1:
            raise UsageError(ambiguous_names(kind)[reference])
        (point,) = points.values()
        module, attribute = point.module, point.attr
        return Target(kind, reference, module, attribute or None, ours=False, by_name=True)
    raise unknown_name(kind, reference, [*ours, *entry_point_names(kind)])


def _cycle(reference: str) -> Target:
    """Return the target of several mechanisms that take turns over a model's layers."""
    parts = [part.strip() for part in reference.split(CYCLE)]
    if not all(parts):
        raise UsageError(
            f"mechanism '{reference}': nothing beside a +; write a cycle as full+sliding_window"
        )
    members = tuple(find("mechanism", part) for part in parts)
    return msgspec.structs.replace(
        members[0],
        name=CYCLE.join(member.name for member in members),
        ours=all(member.ours for member in members),
        by_name=False,
        members=members,
    )


def _why_incomplete(module: str, attribute: str) -> str:
    """Say what a reference lacks on either side of its colon, and how to complete it."""
    if module.endswith(".py"):
        return f"no class after the colon; write {module}:Class, or {module} for its only one"
    if module:
        return f"no class after the colon; write {module}:Class"
    after = attribute or "Class"
    where = "no module or file before the colon" if attribute else "nothing beside the colon"
    return f"{where}; write package.module:{after} or file.py:{after}"


def expand(kind: Kind, patterns: Iterable[str], *, cycles: bool = False) -> list[Target]:
    """Return the targets of comma lists, wildcards and `all` (ours), each once, in order asked.

    Raises `UsageError` as `find` does, for a name of ours that an installed package gives, too, and
    for a cycle of mechanisms unless `cycles` takes them.
    """
    targets: dict[str, Target] = {}
    for pattern in (part.strip() for entry in patterns for part in entry.split(",")):
        if not pattern:
            continue
        for name in _matches(kind, pattern):
            target = find(kind, name)
            if target.members and not cycles:
                raise UsageError(
                    f"mechanism '{target.name}' is a cycle over the layers of a model, which only "
                    "a training has; name its mechanisms one by one"
                )
            other = targets.setdefault(target.name, target)
            if other.reference != target.reference:
                raise UsageError(
                    f"two {kind}s are called '{target.name}': {other.reference} and "
                    f"{target.reference}; rename one of them, or run them apart"
                )
    twice = ambiguous_names(kind) if any(target.ours for target in targets.values()) else {}
    for target in targets.values():
        if target.ours and target.name in twice:
            raise UsageError(twice[target.name])
    return list(targets.values())


def _own_modules(kind: Kind) -> dict[str, str]:
    """Map names to dotted modules by scanning the folder."""
    root = _package_folder(_ROOTS[kind])
    base = _ROOTS[kind].replace("/", ".")
    if kind == "mechanism":
        files: Sequence[Path] = [
            p for p in root.glob("*/*.py") if p.parent.name not in ("contract", "positions")
        ] + list(root.glob("*.py"))
    else:
        files = list(root.glob("*.py"))
    found: dict[str, str] = {}
    for file in files:
        if file.stem.startswith("_") or file.stem == "contract":
            continue
        dotted = ".".join([base, *file.relative_to(root).with_suffix("").parts])
        if file.stem in found:
            both = " and ".join(f"{one.replace('.', '/')}.py" for one in (found[file.stem], dotted))
            raise UsageError(f"two files define the {kind} '{file.stem}': {both}; rename one")
        found[file.stem] = dotted
    return found


def _package_folder(root: str) -> Path:
    head, *tail = root.split("/")
    spec = importlib.util.find_spec(head)
    if spec is None or not spec.submodule_search_locations:
        raise LraError(f"the package '{head}' is not installed; reinstall the project")
    return Path(spec.submodule_search_locations[0]).joinpath(*tail)


def _matches(kind: Kind, pattern: str) -> list[str]:
    if pattern == "all":
        return names(kind)
    if any(sign in pattern for sign in "*?["):
        known = [*names(kind), *entry_point_names(kind)]
        if pattern.startswith(peers.PREFIX):
            known = peers.names()
        found = fnmatch.filter(known, pattern)
        if not found:
            raise unknown_name(kind, pattern, known)
        return found
    return [pattern]
