"""What verbs print, each in one way: JSON for programs, lines beside the results for a person."""

from __future__ import annotations

from collections.abc import Callable

import click


def echo_json(value: object, *, indented: bool = False) -> None:
    """Print a value as JSON with sorted keys, on one line unless `indented`."""
    import msgspec

    encoded = msgspec.json.encode(value, order="sorted")
    click.echo(msgspec.json.format(encoded, indent=1) if indented else encoded)


def on_stderr(*, quiet: bool) -> Callable[[str], None]:
    """Return what prints a line on standard error; nothing where `quiet`."""
    return (lambda _: None) if quiet else (lambda line: click.echo(line, err=True))
