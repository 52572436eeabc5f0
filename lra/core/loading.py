"""Classes and functions behind the names of the catalogue: the modules that have them, imported."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from lra.core.catalogue import Target
from lra.core.errors import LraError, UsageError, closest_names, unknown_name
from lra.core.hashing import value_hash

FILES = "lra_file_"
"""Prefix of the names of modules that are imported by the path of their file."""


class MisnamedError(UsageError):
    """A module can be imported, but lacks the attribute asked for, or has several that fit where
    none was named."""


def load(target: Target) -> Callable[..., Any]:
    """Import the target's module and return its class, or the function that was named.

    Raises `MisnamedError` for a module without that name, or with several classes where none was
    named; `UsageError` for one without any, or for a file that imports relatively; `LraError` for
    one that cannot be imported because a package is not installed.
    """
    try:
        module = _import(target)
    except ImportError as error:
        if target.module.endswith(".py") and _is_relative(error):
            raise UsageError(_inside_package(target)) from error
        if not isinstance(error, ModuleNotFoundError):
            raise
        raise LraError(
            f"{target.kind} '{target.name}' needs the module '{error.name}'; "
            "install it, or put its folder on PYTHONPATH"
        ) from error
    if target.attribute is None:
        return _only_class(module, target)
    found = getattr(module, target.attribute, None)
    if not callable(found):
        raise MisnamedError(
            f"{Path(target.module).name}: {_closest_attribute(module, target.attribute)}"
        )
    return found  # type: ignore[no-any-return]


def _is_relative(error: ImportError) -> bool:
    """Whether the error is that of `from .core import X` in a file imported by its path."""
    return (error.name or "").startswith(FILES) or "relative import" in str(error)


def _inside_package(target: Target) -> str:
    """Say by which dotted name a file can import from its neighbours."""
    file = Path(target.module)
    packages = [file.parent.name]
    for folder in file.parents:
        if not (folder / "__init__.py").is_file():
            break
        packages.insert(0, folder.parent.name)
    # The first of several folders holds the outermost package, and is none itself.
    inside = packages[1:] if len(packages) > 1 else packages
    module = ".".join([*inside, *([] if file.stem == "__init__" else [file.stem])])
    return (
        f"{target.kind} '{target.name}': {file.name} imports from its package (from . import), "
        f"which a file by its path has not; name the module: {module}:"
        f"{target.attribute or 'Class'}, in the folder that has {inside[0]}/ or with that folder "
        "on PYTHONPATH"
    )


def _closest_attribute(module: ModuleType, name: str) -> UsageError:
    """Return the error for a name that a module lacks: with the closest of all that it offers, or a
    list of those defined in it or below it."""
    offered = [key for key, value in vars(module).items() if callable(value) and key[0] != "_"]
    if closest_names(name, offered):
        return unknown_name("class or function", name, offered)
    homes = {key: str(getattr(vars(module)[key], "__module__", "")) for key in offered}
    own = [key for key, home in homes.items() if home.startswith(module.__name__)]
    return unknown_name("class or function", name, own)


def _import(target: Target) -> ModuleType:
    if not target.module.endswith(".py"):
        return importlib.import_module(target.module)
    path = Path(target.module)
    # Registered like any module, for code that looks its own module up (annotations, pickles).
    name = f"{FILES}{value_hash(str(path))}.{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"cannot read '{path}' as Python; check the file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _only_class(module: ModuleType, target: Target) -> type:
    """The only public class with a `card` that the module itself defines.

    For somebody's own mechanism without a card, the only torch module.
    """
    own = [
        member
        for name, member in vars(module).items()
        if inspect.isclass(member)
        and member.__module__ == module.__name__
        and not name.startswith("_")
    ]
    found = [member for member in own if hasattr(member, "card")]
    what = "public class with a card"
    if not found and target.kind == "mechanism" and not target.ours:
        found = [member for member in own if _is_torch_module(member)]
        what += ", or one torch.nn.Module"
    listed = ", ".join(member.__name__ for member in found)
    if target.ours and len(found) != 1:
        # One of our many files: its mechanism is unavailable, the others are not.
        raise UsageError(
            f"{target.module} has {listed or 'no public class with a card'}; give it one public "
            "class with a card (CONTRIBUTING.md), others names that begin with _"
        )
    if len(found) > 1:
        place = Path(target.module).name
        raise MisnamedError(
            f"{place} has several classes: {listed}; name one, as {place}:{found[0].__name__}"
        )
    if not found:
        raise UsageError(
            f"{target.module} must define exactly one {what}, found 0; name it as module:Class"
        )
    return found[0]


def _is_torch_module(member: type) -> bool:
    return any(base.__module__ == "torch.nn.modules.module" for base in member.__mro__)
