"""Which key of plain data a type does not know or misses, in words of our own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

from lra.core.errors import closest_names

_UNKNOWN = re.compile(r"Object contains unknown field `(.+?)`(?: - at `\$(.*)`)?")
_MISSING = re.compile(r"Object missing required field `(.+?)`(?: - at `\$(.*)`)?")
_Part = tuple[str, Any, inspect.Type]
"""Place, plain data and type of a part of the whole."""


def unknown_key(error: msgspec.ValidationError, data: Any, kind: type) -> str | None:
    """Return which key `msgspec.convert(data, kind)` refused or missed; None of other errors.

    `there is no key 'lenghts' in efficiency[0]; did you mean 'lengths'?`
    """
    text = str(error)
    if found := _UNKNOWN.fullmatch(text):
        key = found[1]
        for place, part, inner in _tables_at(found[2] or "", data, kind):
            known = _field_names(inner)
            if key in part and key not in known:
                alike = closest_names(key, set(known) - set(part))
                hint = f"did you mean '{alike[0]}'?" if alike else f"it knows {', '.join(known)}"
                return f"there is no key '{key}'{_locate(place)}; {hint}"
    if found := _MISSING.fullmatch(text):
        key = found[1]
        for place, part, _ in _tables_at(found[2] or "", data, kind):
            if key not in part:
                return f"the key '{key}' is missing{_locate(place)}; add it"
    return None


def _locate(place: str) -> str:
    return f" in {place}" if place else ""


def _field_names(kind: inspect.Type) -> list[str]:
    fields = kind.fields if isinstance(kind, inspect.StructType) else ()
    return [field.encode_name for field in fields]


def _tables_at(path: str, data: Any, kind: type) -> Iterator[_Part]:
    """Yield the tables at a place; several where it is given loosely, as that of any key."""
    parts: list[_Part] = [("", data, inspect.type_info(kind))]
    for step in re.findall(r"[^.\[\]]+|\.\.\.", path):
        parts = [inner for part in parts for inner in _children(*part, step)]
    yield from (part for part in parts if isinstance(part[1], dict))


def _children(place: str, data: Any, kind: inspect.Type, step: str) -> Iterator[_Part]:
    """Yield what a step leads to: a field, an entry of a list, any value of a table.

    A step to any key leads to values of other types too, which then have nothing inside.
    """
    match kind:
        case inspect.StructType() if isinstance(data, dict):
            for field in kind.fields:
                if field.encode_name == step and step in data:
                    yield f"{place}.{step}".lstrip("."), data[step], field.type
        case inspect.UnionType():
            for one in kind.types:
                yield from _children(place, data, one, step)
        case inspect.ListType() | inspect.VarTupleType() if isinstance(data, list):
            if step.isdecimal() and int(step) < len(data):
                yield f"{place}[{step}]", data[int(step)], kind.item_type
        case inspect.DictType() if isinstance(data, dict):
            for key, value in data.items():
                yield f"{place}.{key}", value, kind.value_type
