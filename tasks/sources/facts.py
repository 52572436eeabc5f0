"""Facts of a prepared set, in facts.json beside its buffers, and the uses that they allow."""

from __future__ import annotations

import zlib
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from lra.core.dataset import SPLITS, SplitName
from lra.core.errors import DataError
from lra.core.hashing import checksum, file_hash
from lra.core.paths import path_kind
from lra.core.protocol import Positive, Rules
from tasks.sources.files import HUB, expanded, readable

_FILE = "facts.json"
FORMAT = 2
"""Raised when the layout of the files changes."""


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Identity of a set that holds a whole real source, uncut, wherever it is taken."""

    rules: Rules
    source: Literal["file", "hub"]
    one_length: bool
    """Whether its sequences cannot be cut to another length, as pictures cannot."""
    level: int | None = None
    """Paddles in a path of Pathfinder."""
    hash: str
    """Hash of all tokens, lengths and labels, with task and rules."""
    made_of: str
    """Hash of the source's content, and of how it was asked for."""
    readers: str
    """Hash of the source code that read it."""
    sha256: dict[SplitName, str]
    """Hash of each split's file."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Shape, sizes and checksums of a set."""

    format: int = FORMAT
    task: str
    classes: Positive
    vocabulary: Positive
    length: Positive
    """Longest sequence that a model must take; of a whole source, the longest there is."""
    inputs: Positive
    by_token: bool
    parts: tuple[Positive, ...] = ()
    """Sizes of the parts of a token, as in `Dataset.parts`."""
    rows: dict[SplitName, int]
    bytes: dict[SplitName, int]
    """Size of each split's file."""
    checksums: dict[SplitName, int] = {}
    """CRC-32 of each split's file; empty in a set that an earlier version made."""
    origin: Origin | None = None
    key: str = ""
    """Hash of all that decides what stands here; empty in a set that an earlier version made."""
    checksum: int | None = None
    """CRC-32 of all else that stands here; None in a set that an earlier version made."""


def write_facts(facts: Facts, folder: Path) -> None:
    """Write facts.json."""
    told = msgspec.to_builtins(facts)
    told["checksum"] = _own_checksum(told)
    (folder / _FILE).write_bytes(msgspec.json.format(msgspec.json.encode(told)))


def _own_checksum(told: dict[str, Any]) -> int:
    others = {key: value for key, value in told.items() if key != "checksum"}
    return zlib.crc32(msgspec.json.encode(others, order="sorted"))


def read_facts(folder: Path) -> Facts:
    """Read facts.json; `DataError` if it is missing, unreadable or of another format."""
    try:
        told = msgspec.json.decode((folder / _FILE).read_bytes())
        facts = msgspec.convert(told, Facts)
    except (OSError, UnicodeDecodeError, msgspec.DecodeError, RecursionError) as error:
        raise DataError(
            f"'{folder}' is no whole prepared set: facts.json is missing or unreadable; "
            f"delete the folder if it holds nothing else, and run again"
        ) from error
    if facts.format != FORMAT:
        raise damaged(folder, f"it has format {facts.format}, not {FORMAT}")
    if facts.checksum not in (None, _own_checksum(told)):
        raise damaged(folder, f"{_FILE} does not hold what was written")
    by_split = [set(facts.rows), set(facts.bytes)]
    if facts.checksums:
        by_split.append(set(facts.checksums))
    if facts.origin is not None:
        by_split.append(set(facts.origin.sha256))
    if any(found != set(SPLITS) for found in by_split):
        raise damaged(folder, "facts.json does not tell of all splits")
    return facts


def whole_set(source: str) -> Facts | None:
    """Return the facts of a prepared real set, None where `source` is something else.

    Raises `DataError` for a prepared set that is damaged, or holds a run's share of a set alone.
    """
    facts = prepared_set(source)
    if facts is not None and facts.origin is None:
        raise DataError(
            f"'{source}' holds what one run used of a set; name a set that 'lra data prepare' made"
        )
    return facts


def prepared_set(source: str) -> Facts | None:
    """Return the facts of any prepared set, real or generated, None where `source` is none.

    Raises `DataError` for one whose facts are missing or damaged.
    """
    folder = expanded(source)
    with readable(folder):
        there = not source.startswith(HUB) and path_kind(folder / _FILE) == "file"
        # No other form has files of these names.
        split_files = all(path_kind(split_file(folder, name)) == "file" for name in SPLITS)
    if not there:
        if split_files:
            raise damaged(folder, f"{_FILE} is missing")
        return None
    return read_facts(folder)


def refuse_unfit(
    facts: Facts, source: str, task: str, rules: Rules, length: int, level: int | None
) -> None:
    """Raise `DataError` where a prepared real set is not for a task, its rules, length or level."""
    if facts.task != task:
        raise DataError(
            f"'{source}' is a prepared set of {facts.task}, not of {task}; give it to {facts.task}"
        )
    origin = facts.origin
    if origin is None:
        return
    if origin.rules != rules:
        raise DataError(
            f"'{source}' was prepared under the rules {origin.rules}, not {rules}; "
            f"prepare it again with --rules {rules} and --out ANOTHER_FOLDER"
        )
    if origin.one_length and facts.length != length:
        raise DataError(
            f"'{source}' holds sequences of {facts.length} tokens, which cannot be cut to a length "
            f"of {length}; choose a scale with the length {facts.length}"
        )
    if origin.level != level:
        raise DataError(
            f"'{source}' holds paths of {origin.level} paddles, not of {level}; "
            f"write parameters = {{ contour_length = {origin.level} }} under [tasks.{task}] of a "
            "scale file, or prepare the other level"
        )


def refuse_changed(facts: Facts, folder: Path) -> None:
    """Raise `DataError` where a prepared set's files are not those that were written.

    So that no training, and no share of a set that is kept, is of other data than its hash says.
    """
    for name in SPLITS:
        if what := changed(facts, folder, name):
            raise damaged(folder, what)


def changed(facts: Facts, folder: Path, name: SplitName) -> str:
    """Return in words how a split's file is not the one that was written; empty if it is.

    Where no checksum is known only the size is compared.
    """
    file, due = split_file(folder, name), facts.bytes[name]
    try:
        now = file.stat()
        if now.st_size != due:
            return f"{file.name} has {now.st_size} of {due} bytes"
        stamp = now.st_mtime_ns, now.st_ino
        if facts.checksums:
            same = _checksum(file, stamp) == facts.checksums[name]
        elif facts.origin is not None:
            same = facts.origin.sha256[name].startswith(_hash(file, stamp))
        else:
            same = True
        if not same:
            return f"{file.name} does not hold what was written"
    except OSError:
        return f"{file.name} is missing or unreadable"
    return ""


@cache
def _hash(file: Path, stamp: tuple[int, int]) -> str:
    """A file's hash, computed once as long as it does not change: a plan asks for each block."""
    return file_hash(file)


@cache
def _checksum(file: Path, stamp: tuple[int, int]) -> int:
    """A file's checksum, computed once in a process as long as the file does not change."""
    return checksum(file)


def damaged(folder: Path, what: str) -> DataError:
    """Return the error for a set that cannot be read."""
    return DataError(
        f"prepared set '{folder}': {what}; delete this folder and repeat the command that made it"
    )


def split_file(folder: Path, name: SplitName) -> Path:
    """Return where a split lies in a set's folder."""
    return folder / f"{name}.arrow"
