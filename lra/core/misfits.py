"""Why plain data does not fit a type, in words of our own where one value is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

_EXPECTED = re.compile(r"Expected `(?P<kinds>[^`]+)`(?P<bound> [<>]=? \S+)?(, got `[^`]+`)?")
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "null": "nothing",
}


def misfit(error: msgspec.ValidationError, data: Any, kind: type) -> str:
    """Return why `msgspec.convert(data, kind)` raised this, else the error's own words.

    `mask = 'upside' is none of none, behind`, `block = 0 must be a whole number >= 1`.
    """
    text = str(error)
    told, _, place = text.rpartition(" - at `$")
    path = place.strip("`.")
    types, value = [inspect.type_info(kind)], data
    try:
        for step in re.findall(r"[^.\[\]]+", path):
            types = [inner for one in types for inner in _inside(one, step)]
            value = value[int(step)] if isinstance(value, list | tuple) else value[step]
    except (LookupError, TypeError):
        # The place is given loosely, as that of any key.
        return text
    known = [str(entry) for one in types for entry in _choices(one) if entry != ""]
    if told and known:
        return f"{path} = {value!r} is none of {', '.join(known)}"
    if found := _EXPECTED.fullmatch(told):
        kinds = found["kinds"].split(" | ")
        words = [_KINDS.get(one, one) for one in kinds if one != "int" or "float" not in kinds]
        return f"{path} = {value!r} must be {' or '.join(words)}{found['bound'] or ''}"
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
