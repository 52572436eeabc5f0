"""Options of the command line, each declared with the specification's field that it sets."""

from __future__ import annotations

from typing import NewType

import msgspec

Seconds = NewType("Seconds", float)
"""A time, which a person writes as `90s`, `9m` or `1h30m`."""


class Option(msgspec.Struct, frozen=True):
    """The option of one field, as metadata of its type; the type gives its possible values."""

    help: str
    flag: str = ""
    """Name of the flag; empty for that of the field, as `--head-width` of `head_width`."""
    metavar: str | None = None
    names: str = ""
    """Kind of names that the shell completes: mechanism, task, suite or scale."""
    default: str | None = None
    """Default as a person would write it, for a field without one."""
