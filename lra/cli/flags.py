"""Text of flags: their click types, with completion of our names, and the values that they mean."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from lra.cli.echo import echo
from lra.core.errors import UsageError, closest_names, unknown_name
from lra.core.findings import Case, parse
from lra.core.protocol import MOST

PAIRS = {
    "--data": ("TASK=PATH", "text=reviews/"),
    "--set": ("KEY=VALUE", "features=64"),
    "--slot": ("SLOT=NAME", "cross=linformer"),
}
"""Flags that take pairs, each with the form of a pair and an example."""

_TIME = re.compile(r"(?:([^hms]+)h)?(?:([^hms]+)m)?(?:([^hms]+)s)?|([^hms]+)")
_WEIGHTS = (3600.0, 60.0, 1.0, 1.0)
_TIMES = "90s, 9m or 1h30m"
YEAR = 365 * 24 * 3600.0
"""The longest time that makes sense, in seconds."""


class Folder(click.Path):
    """The path of a folder, or of a file where the flag says so; an empty one is refused, as it
    would mean the current folder."""

    def __init__(self, kind: type[str | Path]) -> None:
        super().__init__(path_type=kind)

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        """Refuse a text without a name in it."""
        if not os.fspath(value).strip():
            flag = "the path"
            if param is not None:
                option = isinstance(param, click.Option)
                flag = param.opts[0] if option else param.human_readable_name
            raise UsageError(f"{flag} '{os.fspath(value)}' is empty; give a path")
        return super().convert(value, param, ctx)


class Choice(click.Choice[str]):
    """One of a few words; a near miss is answered with the closest word."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """Name the closest word; all words where none is close or there are only two."""
        alike = closest_names(str(value), self.choices)
        if alike and len(self.choices) > 2:
            return f"unknown '{value}'; did you mean '{alike[0]}'?"
        return super().get_invalid_choice_message(value, ctx)


class Names(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4
    """Names of one kind; several with commas where the flag takes several, as `--impl` does and
    `--scale` does not. Their use checks the words themselves."""

    def __init__(self, kind: str) -> None:
        self.name = kind

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Refuse a list without a name in it, such as `,`."""
        if not value.strip(", "):
            flag = param.opts[0] if param else self.name
            raise UsageError(f"{flag} '{value}' names no {self.name}; give at least one name")
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete the last name of a comma list."""
        before, comma, last = incomplete.rpartition(",")
        return [
            CompletionItem(before + comma + name)
            for name in known_names(self.name)
            if name.startswith(last)
        ]


def known_names(kind: str) -> list[str]:
    """Return our names of mechanisms, tasks, suites or scales."""
    from lra.core import catalogue, scales

    match kind:
        case "suite" | "scale" | "preset":
            return scales.names(f"{kind}s")
        case "task":
            return catalogue.names("task")
        case _:
            return catalogue.names("mechanism")


def pairs(entries: tuple[str, ...], flag: str) -> dict[str, str]:
    """Split the pairs of `--data` or `--set`.

    Raises `UsageError` for an entry that is no pair, and for a key given twice.
    """
    found: dict[str, str] = {}
    for entry in entries:
        key, _, value = (part.strip() for part in entry.partition("="))
        if not (key and value):
            form, example = PAIRS[flag]
            raise UsageError(f"{flag} '{entry}' is not {form}; write e.g. {flag} {example}")
        if key in found:
            raise UsageError(f"{flag} gives '{key}' twice, {found[key]} and {value}; keep one")
        found[key] = value
    return found


def seconds(text: str | None, flag: str) -> float | None:
    """Read a time such as `90`, `90s`, `9m` or `1h30m` in seconds; None stays None. A note says how
    a number without a unit is read."""
    if text is None:
        return None
    found = _TIME.fullmatch(text)
    given = [] if found is None else [*zip(found.groups(), _WEIGHTS, strict=True)]
    try:
        parts = [float(number) * weight for number, weight in given if number is not None]
    except ValueError:
        parts = []
    if not parts:
        raise UsageError(f"{flag} '{text}' is not a time; write e.g. {_TIMES}")
    value = sum(parts)
    if not math.isfinite(value):
        raise UsageError(f"{flag} '{text}' is not finite; write e.g. {_TIMES}")
    if value <= 0 or min(parts) < 0:
        raise UsageError(f"{flag} '{text}': give more than nothing, e.g. {_TIMES}")
    if value > YEAR:
        raise UsageError(f"{flag} '{text}' is more than a year; write e.g. {_TIMES}")
    if given[-1][0] is not None:
        number = text.strip()
        echo(
            f"lra: {flag} {number} means {number}s, in seconds; for minutes write {number}m",
            err=True,
        )
    return value


def parse_numbers(entries: Sequence[str], flag: str) -> tuple[int, ...]:
    """Read `256,512` and `256..4096`, which doubles; each number once, in the order given."""
    found: list[int] = []
    for part in _parts(entries, flag):
        first, dots, last = part.partition("..")
        try:
            low = int(first)
            high = int(last) if dots else low
        except ValueError as error:
            raise UsageError(
                f"{flag} '{part}' is not a number; write e.g. 256,512 or 256..4096"
            ) from error
        if not 1 <= low <= high <= MOST:
            order = ", the smaller first" if dots else ""
            raise UsageError(f"{flag} '{part}': give numbers from 1 to {MOST:,}{order}")
        while low <= high:
            found.append(low)
            low *= 2
    return tuple(dict.fromkeys(found))


def parse_words(entries: Sequence[str], flag: str, known: Sequence[str]) -> tuple[str, ...]:
    """Read words of an axis, wildcards among them; each word once."""
    found: list[str] = []
    for part in _parts(entries, flag):
        fitting = [word for word in known if fnmatchcase(word, part)]
        if not fitting:
            raise unknown_name(flag.removeprefix("--"), part, known)
        found += fitting
    return tuple(dict.fromkeys(found))


def _parts(entries: Sequence[str], flag: str) -> list[str]:
    parts = [part.strip() for entry in entries for part in entry.split(",") if part.strip()]
    if not parts:
        raise UsageError(f"{flag} '{','.join(entries)}' names nothing; give one value at least")
    return parts


def parse_case(text: str, flag: str) -> Case:
    """Read a case; an error names the missing key, or the one given twice."""
    keys = [word.partition("=")[0] for word in text.split()]
    for key in keys:
        if keys.count(key) > 1:
            raise UsageError(f"{flag} '{text}' gives {key} twice; keep one")
    if "n" not in keys and set(keys) <= set(Case.__struct_fields__):
        raise UsageError(f"{flag} '{text}': the number n is missing; write e.g. 'n=5 causal'")
    return parse(text)
