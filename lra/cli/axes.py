"""The axes of a sweep as flags: comma lists, repeats, ranges of lengths that double."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, TypeVar, get_args

import click
import msgspec

from lra.core.cells import Direction, Dtype, Execution, Level, Mode
from lra.core.errors import UsageError, unknown_name
from lra.core.protocol import MOST
from lra.core.scales import EfficiencyBlock, ErrorBlock

_Block = TypeVar("_Block", EfficiencyBlock, ErrorBlock)
_Command = TypeVar("_Command", bound=Callable[..., Any])

WORDS = {
    "mode": ("modes", get_args(Mode), "What is timed."),
    "level": ("levels", get_args(Level), "How much of a model is timed."),
    "direction": ("directions", get_args(Direction), "Who may attend to whom."),
    "dtype": ("dtypes", get_args(Dtype), "Type of parameters and inputs."),
    "execution": ("executions", get_args(Execution), "As written, or by torch.compile."),
}
"""Axes of words: the suite's key, the words, and what they are."""

NUMBERS = {
    "length": ("lengths", "256..8192", "Sequence lengths; a..b doubles from a to b."),
    "batch": ("batches", "1,4", "Examples in a call."),
    "heads": ("heads", "4,8", "Heads of a layer."),
    "head-width": ("head_widths", "32,64", "Width of a head."),
}
"""Axes of numbers: the suite's key, an example, and what they are."""


def axes(command: _Command) -> _Command:
    """Add a flag for each axis; the command gets what was given, flag by flag, as `**axes`."""
    for flag, (_, words, says) in reversed(WORDS.items()):
        text = f"{says} One or more of: {', '.join(words)}."
        command = _option(flag, f"{flag.upper()}[,...]", text)(command)
    for flag, (_, example, says) in reversed(NUMBERS.items()):
        command = _option(flag, "N[,N...]", f"{says} E.g. {example}.")(command)
    return command


def overrides(given: dict[str, tuple[str, ...]]) -> dict[str, tuple[Any, ...]]:
    """Return what flags put in place of a suite's axes, by the suite's keys.

    Raises `UsageError` for what is no number, no word of the axis, or too large for any machine.
    """
    found: dict[str, tuple[Any, ...]] = {}
    for name, entries in given.items():
        flag = name.replace("_", "-")
        if not entries:
            continue
        if flag in WORDS:
            key, known, _ = WORDS[flag]
            found[key] = parse_words(entries, flag, known)
        else:
            key, example, _ = NUMBERS[flag]
            found[key] = parse_numbers(entries, flag, example)
    return found


def replace_axes(block: _Block, asked: Mapping[str, Any]) -> _Block:
    """Return a block with the values asked for in place of its own, where it has such a key."""
    own = {key: value for key, value in asked.items() if key in block.__struct_fields__}
    if "batches" in own and isinstance(block, EfficiencyBlock):
        own["tokens"] = None
    return msgspec.structs.replace(block, **own)


def refuse_unknown_axes(
    asked: Mapping[str, Any], blocks: Iterable[EfficiencyBlock | ErrorBlock], suite: str
) -> None:
    """Raise `UsageError` for a key that none of a suite's blocks has."""
    known = {key for block in blocks for key in block.__struct_fields__}
    for key in asked:
        if key not in known:
            raise UsageError(f"suite '{suite}' has no {key}; leave that flag out")


def parse_numbers(entries: Sequence[str], flag: str, example: str) -> tuple[int, ...]:
    """Read `256,512` and `256..4096`, which doubles; each number once, in the order given."""
    found: list[int] = []
    for part in _parts(entries, flag):
        first, dots, last = part.partition("..")
        try:
            low = int(first)
            high = int(last) if dots else low
        except ValueError as error:
            raise UsageError(f"--{flag} '{part}' is not a number; write e.g. {example}") from error
        if not 1 <= low <= high <= MOST:
            order = ", the smaller first" if dots else ""
            raise UsageError(f"--{flag} '{part}': give numbers from 1 to {MOST:,}{order}")
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
            raise unknown_name(flag, part, known)
        found += fitting
    return tuple(dict.fromkeys(found))


def _parts(entries: Sequence[str], flag: str) -> list[str]:
    parts = [part.strip() for entry in entries for part in entry.split(",") if part.strip()]
    if not parts:
        raise UsageError(f"--{flag} '{','.join(entries)}' names nothing; give one value at least")
    return parts


def _option(flag: str, metavar: str, text: str) -> Callable[[_Command], _Command]:
    return click.option(f"--{flag}", multiple=True, metavar=metavar, help=text)
