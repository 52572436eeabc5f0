"""Reasons why plain data does not fit a type, in our own words for a single wrong value or key."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, time
from typing import Any

import msgspec
from msgspec import inspect

from lra.core.errors import closest_names

_EXPECTED = re.compile(
    r"Expected `(?P<kinds>[^`]+)`(?P<bound> (of length )?([<>]=? )?[\d.]+)?(, got .+)?"
)
_KEY = re.compile(
    r"Object (?P<fault>contains unknown|missing required) field `(?P<key>.*?)`"
    r"(?: - at `\$(?P<place>.*)`)?"
)
_BARE = re.compile(r"[A-Za-z0-9_-]+")
"""A key that TOML takes without quotes."""
_LONGEST = 40
"""Longest list or table that is shown; longer ones are called by their kind."""
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "null": "nothing",
}


def why_invalid(error: msgspec.ValidationError, data: Any, kind: type) -> str:
    """Return why `msgspec.convert(data, kind)` raised this, else the error's own words.

    `mask = 'upside' is none of none, behind`, `tasks.text.length = 0 must be a whole number >= 1`.
    """
    text = str(error)
    told, _, place = text.rpartition(" - at `$")
    try:
        steps, value, types = _found(place, text, data, kind)
    except (LookupError, TypeError):
        return text
    known = [str(entry) for one in types for entry in _choices(one) if entry != ""]
    if told and known:
        return f"{toml_path(steps)} = {_as_json(value)} is none of {', '.join(known)}"
    if found := _EXPECTED.fullmatch(told):
        kinds = found["kinds"].split(" | ")
        words = [_KINDS.get(one, one) for one in kinds if one != "int" or "float" not in kinds]
        wanted = " or ".join(words) + (found["bound"] or "")
        shown = _as_json(value)
        if len(shown) > _LONGEST and isinstance(value, dict | list):
            whole = _KINDS["object" if isinstance(value, dict) else "array"]
            return f"{toml_path(steps)} is {whole} and must be {wanted}"
        return f"{toml_path(steps)} = {shown} must be {wanted}"
    return text


def unknown_key(error: msgspec.ValidationError, data: Any, kind: type) -> str | None:
    """Return which key `msgspec.convert(data, kind)` refused or missed; None for other errors.

    `there is no key 'lenghts' in efficiency[0]; did you mean 'lengths'?`
    """
    text = str(error)
    refused = _KEY.fullmatch(text)
    if refused is None:
        return None
    key = refused["key"]
    try:
        steps, table, types = _found(refused["place"] or "", text, data, kind)
    except (LookupError, TypeError):
        return None
    where = f" in {toml_path(steps)}" if steps else ""
    if refused["fault"] == "missing required":
        return f"the key '{key}' is missing{where}; add it"
    structs = [one for one in _alternatives(types) if isinstance(one, inspect.StructType)]
    known = [field.encode_name for one in structs for field in one.fields]
    alike = closest_names(key, set(known) - set(table))
    hint = f"did you mean '{alike[0]}'?" if alike else f"it knows {', '.join(known)}"
    return f"there is no key '{key}'{where}; {hint}"


def _found(
    place: str, text: str, data: Any, kind: type
) -> tuple[list[str | int], Any, list[inspect.Type]]:
    """Steps to the place of an error, the value there, and the types that it may have."""
    types, value, steps = [inspect.type_info(kind)], data, _steps(place, text, data, kind)
    for step in steps:
        types = [inner for one in types for inner in _part_types(one, step)]
        value = value[step]
    return steps, value, types


def _alternatives(types: Iterable[inspect.Type]) -> Iterator[inspect.Type]:
    for one in types:
        yield from _alternatives(one.types) if isinstance(one, inspect.UnionType) else (one,)


def _steps(place: str, text: str, data: Any, kind: type) -> list[str | int]:
    """Keys and indices of a place. An error gives a key of a table of any keys as `[...]`: it is
    the first key that is refused alike when alone in its table."""
    steps: list[str | int] = []
    for step in re.findall(r"[^.\[\]`]+|\.\.\.", place):
        if step != "...":
            steps.append(int(step) if step.isdecimal() else step)
            continue
        for key, value in _value_at(data, steps).items():
            alone = _replace_at(data, steps, {key: value})
            if _refusal(alone, kind) == text:
                data = alone
                steps.append(key)
                break
        else:
            raise LookupError(place)
    return steps


def _value_at(data: Any, steps: Iterable[str | int]) -> Any:
    for step in steps:
        data = data[step]
    return data


def _replace_at(data: Any, steps: Sequence[str | int], value: Any) -> Any:
    """A copy of plain data with another value at a place."""
    if not steps:
        return value
    copy: Any = dict(data) if isinstance(data, dict) else list(data)
    copy[steps[0]] = _replace_at(data[steps[0]], steps[1:], value)
    return copy


def _refusal(data: Any, kind: type) -> str | None:
    try:
        msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        return str(error)
    return None


def toml_path(steps: Iterable[str | int]) -> str:
    """Return a place as TOML writes it: `tasks.text.rows`, `quality[0].tasks`."""
    parts = (
        f"[{one}]" if isinstance(one, int) else f".{one if _BARE.fullmatch(one) else repr(one)}"
        for one in steps
    )
    return "".join(parts).removeprefix(".")


def _as_json(value: Any) -> str:
    """A value as written in a file."""
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, date | time) else repr(value)


def _part_types(kind: inspect.Type, step: str | int) -> Iterator[inspect.Type]:
    """Yield the types that a part may have: a field, an entry of a list, any value of a table."""
    match kind:
        case inspect.StructType():
            yield from (field.type for field in kind.fields if field.encode_name == step)
        case inspect.UnionType():
            yield from (inner for one in kind.types for inner in _part_types(one, step))
        case inspect.ListType() | inspect.VarTupleType():
            yield kind.item_type
        case inspect.TupleType():
            yield kind.item_types[int(step)]
        case inspect.DictType():
            yield kind.value_type


def _choices(kind: inspect.Type) -> Iterator[object]:
    """Yield the values of an enumeration; nothing where other values are allowed beside them."""
    if isinstance(kind, inspect.LiteralType):
        yield from kind.values
    elif isinstance(kind, inspect.UnionType):
        parts = [one for one in kind.types if not isinstance(one, inspect.NoneType)]
        if all(isinstance(one, inspect.LiteralType) for one in parts):
            yield from (value for one in parts for value in _choices(one))
