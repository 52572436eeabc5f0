"""Options of the command line, declared where a specification declares the field that they set."""

from __future__ import annotations

from typing import NewType

import msgspec

Seconds = NewType("Seconds", float)
"""A time, which a person writes as `90s`, `9m` or `1h30m`."""


class Option(msgspec.Struct, frozen=True):
    """The option of one field, as metadata of its type; the type says which values it takes."""

    help: str
    flag: str = ""
    """Empty for the field's name: `--head-width` of `head_width`."""
    metavar: str | None = None
    names: str = ""
    """Kind of names, which are completed: mechanism, task, suite or scale."""
    default: str | None = None
    """As a person would write it, of a field without a default."""
