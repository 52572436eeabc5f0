"""Options made of a specification's fields, so that each is declared once, with its field."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import click
import msgspec

from lra.cli import flags
from lra.core.errors import UsageError
from lra.core.findings import Case
from lra.core.options import Option, Seconds
from lra.core.scales import Suite, load_suite

_Command = TypeVar("_Command", bound=Callable[..., Any])
_Spec = TypeVar("_Spec", bound=msgspec.Struct)


DATA_SCALE = "Protocol: a name or a TOML file."
"""Help of `--scale` in verbs that look at data alone."""


class _Field(msgspec.Struct, frozen=True):
    """One field of a specification, as an option."""

    name: str
    type: Any
    """Its type, without `None` and annotations."""
    option: Option
    default: Any
    """Default; None where the field has none, or one that is found out when needed."""
    bounds: click.IntRange | None = None

    @property
    def flag(self) -> str:
        """The option as a person writes it."""
        return self.option.flag or f"--{self.name.replace('_', '-')}"

    @property
    def item(self) -> Any:
        """Type of each of several values; None for a single value."""
        return get_args(self.type)[0] if get_origin(self.type) is tuple else None


def takes(
    kind: type[_Spec], *names: str, without: Iterable[str] = (), **defaults: str
) -> Callable[[_Command], _Command]:
    """Return a decorator that adds the options of a specification; the command gets one value of
    it.

    Several decorators give their values in order. `names` are the fields to take, none for all but
    those `without`; `defaults` replace the fields' own, as a person would write them.
    """
    fields = [
        field
        for field in _fields(kind)
        if (field.name in names or not names) and field.name not in without
    ]

    def add(command: _Command) -> _Command:
        @functools.wraps(command)
        def called(*values: Any, **given: Any) -> Any:
            own = {field.name: given.pop(field.name) for field in fields}
            found = {field.name: _value(field, own[field.name]) for field in fields}
            known = {name: value for name, value in found.items() if value is not None}
            return command(*values, kind(**known), **given)

        for field in reversed(fields):
            _click_option(field, defaults.get(field.name), field.option.help)(called)
        return called  # type: ignore[return-value]

    return add


def option(
    kind: type[msgspec.Struct], name: str, *, default: str | None = None, help: str = ""
) -> Callable[[_Command], _Command]:
    """Return a decorator that adds the option of one field; the command gets its text, by the
    field's name."""
    field = next(field for field in _fields(kind) if field.name == name)
    return _click_option(field, default, help or field.option.help)


def given(*kinds: type[msgspec.Struct]) -> list[str]:
    """Return the flags that the running command was given with a value other than the default."""
    context = click.get_current_context()
    usual = click.core.ParameterSource.DEFAULT
    return [
        field.flag
        for kind in kinds
        for field in _fields(kind)
        if field.name in context.params
        and context.get_parameter_source(field.name) is not usual
        and context.params[field.name] != field.default
    ]


def require_mechanism(mechanisms: tuple[str, ...], verb: str, example: str) -> None:
    """Raise `UsageError` where `--impl` was not given."""
    if not mechanisms:
        raise UsageError(
            f"{verb} needs a mechanism; e.g. --impl {example} (see: python -m lra list impls)"
        )


@functools.cache
def _fields(kind: type[msgspec.Struct]) -> tuple[_Field, ...]:
    hints = get_type_hints(kind, include_extras=True)
    found = []
    for field in msgspec.structs.fields(kind):
        metadata: list[Any] = []
        type = _plain(hints[field.name], metadata)
        own = next((one for one in metadata if isinstance(one, Option)), None)
        if own is None:
            continue
        bounds = next((_range(one) for one in metadata if isinstance(one, msgspec.Meta)), None)
        default = None if field.default is msgspec.NODEFAULT else field.default
        found.append(_Field(field.name, type, own, own.default or default, bounds))
    return tuple(found)


def _range(meta: msgspec.Meta) -> click.IntRange:
    low, high = (None if end is None else int(end) for end in (meta.ge, meta.le))
    return click.IntRange(low, high)


def _plain(hint: Any, metadata: list[Any]) -> Any:
    """Return a type without None, and its annotations, which are collected in `metadata`."""
    if get_origin(hint) is Annotated:
        hint, *more = get_args(hint)
        metadata += more
        return _plain(hint, metadata)
    if get_origin(hint) in (Union, UnionType):
        (only,) = (part for part in get_args(hint) if part is not NoneType)
        return _plain(only, metadata)
    return hint


def _click_option(field: _Field, default: str | None, help: str) -> Callable[[_Command], _Command]:
    """Return the click option of a field, which takes text; `_value` reads it."""
    option, type, item = field.option, field.type, field.item
    if type is bool:
        return click.option(field.flag, field.name, is_flag=True, help=help)
    own: dict[str, Any] = {"metavar": option.metavar}
    if item is not None or get_origin(type) is dict:
        own["multiple"] = True
    elif (chosen := default if default is not None else field.default) is not None:
        own |= {"default": chosen, "show_default": True}
    if option.names:
        own["type"] = flags.Names(option.names)
    elif get_origin(type) is Literal:
        own["type"] = flags.Choice(get_args(type))
    elif type is Path:
        own["type"] = flags.Folder(Path)
    elif type is int:
        own["type"] = field.bounds or int
    elif type is Seconds:
        own["metavar"] = "TIME"
    elif get_origin(type) is dict:
        own["metavar"] = flags.PAIRS[field.flag][0]
    elif get_origin(item) is Literal:
        own["metavar"] = f"{field.flag[2:].upper()}[,...]"
        help = f"{help} One or more of: {', '.join(get_args(item))}."
    return click.option(field.flag, field.name, help=help, **own)


def _value(field: _Field, text: Any) -> Any:
    """Return the value of an option; None keeps the field's default."""
    if text is None or text == ():
        return None
    if field.type is bool:
        return (not field.default) if text else None
    if get_origin(field.type) is dict:
        return flags.pairs(text, field.flag)
    if field.item is int:
        return flags.parse_numbers(text, field.flag)
    if get_origin(field.item) is Literal:
        return flags.parse_words(text, field.flag, get_args(field.item))
    if field.type is Seconds:
        return flags.seconds(text, field.flag)
    if field.type is Suite:
        return load_suite(text)
    if field.type is Case:
        return flags.parse_case(text, field.flag)
    return text
