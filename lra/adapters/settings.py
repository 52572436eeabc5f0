"""Settings of somebody's constructor, and their types."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec

PLAIN = (bool, int, float, str, list, dict, type(None))
"""Types of a default that makes its parameter a setting."""

NUMBERS = frozenset({"int", "float", "bool", "None"})
"""Type names in an annotation that allows for numbers and None alone."""


def free_parameters(
    constructor: Mapping[str, inspect.Parameter], taken: Collection[str]
) -> Iterator[tuple[str, Any]]:
    """Yield names and defaults of the parameters that are not `taken`; None where there is no
    default."""
    for name, parameter in constructor.items():
        if name in taken:
            continue
        if parameter.default is parameter.empty:
            yield name, None
        elif isinstance(parameter.default, PLAIN):
            yield name, parameter.default


def setting_type(default: Any, parameter: inspect.Parameter | None) -> Any:
    """Return the type of a setting, read from its default: a number is no text.

    A flag may turn out to take a number too. A parameter without a default takes anything, and so
    does one annotated to take more than a number.
    """
    annotation = inspect.Parameter.empty if parameter is None else parameter.annotation
    if annotation is not inspect.Parameter.empty:
        words = annotation.__name__ if inspect.isclass(annotation) else str(annotation)
        if not NUMBERS.issuperset(re.findall(r"\w+", re.sub(r"(typing\.)?Optional", "", words))):
            return Any
    if isinstance(default, bool):
        return bool | int | float | None
    return int | float | None if isinstance(default, int | float) else Any


def is_of_type(value: Any, kind: Any) -> bool:
    """Return whether a value is of a type, constraints and all."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True
