"""Output of verbs: JSON for programs, lines beside the results for a person."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import click

from lra.core.escape import escape_controls, escape_lines

_UNCOMMON = re.compile(r"[^\n\x20-\x7e]")


def echo(text: str = "", *, err: bool = False) -> None:
    """Print lines for a person, with invisible characters in names as escapes."""
    click.echo(escape_lines(text), err=err)


def echo_json(value: object, *, indented: bool = False) -> None:
    """Print a value as JSON with sorted keys, on one line unless `indented`; invisible characters
    are JSON escapes, so that programs read them unchanged."""
    import msgspec

    encoded = msgspec.json.encode(value, order="sorted")
    text = (msgspec.json.format(encoded, indent=1) if indented else encoded).decode()
    click.echo(_UNCOMMON.sub(_escaped, text))


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    return character if escape_controls(character) == character else json.dumps(character)[1:-1]


def on_stderr(*, quiet: bool) -> Callable[[str], None]:
    """Return a printer of lines on standard error; one that prints nothing where `quiet`."""
    return (lambda _: None) if quiet else (lambda line: echo(line, err=True))
