"""Why plain data does not fit a type, in words of our own where a value is one of a few."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import inspect


def misfit(error: msgspec.ValidationError, data: Any, kind: type) -> str:
    """Return why `msgspec.convert(data, kind)` raised this: `mask = 'upside' is none of none,
    behind`, else the error's own words."""
    text = str(error)
    _, found, place = text.rpartition(" - at `$")
    path = place.strip("`.")
    types, value = [inspect.type_info(kind)], data
    with suppress(LookupError, TypeError):
        for step in re.findall(r"[^.\[\]]+", path):
            types = [inner for one in types for inner in _inside(one, step)]
            value = value[int(step)] if isinstance(value, list | tuple) else value[step]
        known = [str(entry) for one in types for entry in _choices(one) if entry != ""]
        if found and known:
            return f"{path} = {value!r} is none of {', '.join(known)}"
    return text


def _inside(kind: inspect.Type, step: str) -> Iterator[inspect.Type]:
    """Yield the types that a part may have: a field, an entry of a list."""
    match kind:
        case inspect.StructType():
            yield from (field.type for field in kind.fields if field.encode_name == step)
        case inspect.UnionType():
            yield from (inner for one in kind.types for inner in _inside(one, step))
        case inspect.ListType() | inspect.VarTupleType():
            yield kind.item_type


def _choices(kind: inspect.Type) -> Iterator[object]:
    """Yield the values of an enumeration; nothing where other values are allowed beside them."""
    if isinstance(kind, inspect.LiteralType):
        yield from kind.values
    elif isinstance(kind, inspect.UnionType):
        parts = [one for one in kind.types if not isinstance(one, inspect.NoneType)]
        if all(isinstance(one, inspect.LiteralType) for one in parts):
            yield from (value for one in parts for value in _choices(one))
