"""Which files a `--data` source stands for: a file, its siblings, or those in a folder.

Files of one set differ in the word for the split: imdb_train.parquet and imdb_test.parquet,
basic_val.tsv, train-00000-of-00002.parquet. Naming one of them, or their folder, names them all.
"""

from __future__ import annotations

import gzip
import lzma
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from lra.core.dataset import SPLITS, SplitName
from lra.core.errors import DataError
from tasks.contract import OnDefect
from tasks.sources.file_kind import CALLED, file_kind

HUB = "hub:"
"""How a source on the Hugging Face hub starts."""

SPLIT_WORDS: dict[str, SplitName] = {
    "train": "train",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
    "eval": "validation",
    "test": "test",
}

STEMS = {"listops": ("listops", "basic"), "text": ("text", "imdb")}
"""Names by which a task's set is found among others in a folder."""
_REVIEW_TASKS = {"text"}
"""Tasks that also read a folder laid out as aclImdb, before any table there."""

OF_SPLIT = (
    rf"(?P<word>{'|'.join(SPLIT_WORDS)})"
    r"(?:-(?P<shard>\d{5})-of-(?P<shards>\d{5})(?:-[0-9a-f]{16})?)?"
)
"""How a name says of which split a file is, and which shard of how many."""

_NAME = re.compile(
    rf"(?P<stem>.*?)(?:^|[._-]){OF_SPLIT}(?P<suffix>\.(?:parquet|(?:csv|tsv)(?:\.gz)?))",
    re.IGNORECASE,
)
_SHOWN = 3
_Item = TypeVar("_Item")

Family = dict[SplitName, list[Path]]
"""The files of each split of one set, in order of name."""


class Sources(NamedTuple):
    """The files of a source: one without a split word, a family, or a text a file."""

    single: Path | None
    family: Family
    reviews: tuple[Path, ...]

    @property
    def files(self) -> list[Path]:
        """All of them."""
        single = [] if self.single is None else [self.single]
        return [*single, *(file for files in self.family.values() for file in files), *self.reviews]


def resolved(source: str, task: str, usual: str | None) -> str:
    """Return a source with `hub` alone replaced by the set there that a task usually reads."""
    if source != "hub":
        return source
    if usual is None:
        raise DataError(f"hub: {task} has no usual set there; give hub:NAME, a file or a folder")
    return HUB + usual


def expanded(named: str | Path) -> Path:
    """Return a path with `~` and `~name` replaced; `DataError` where there is no such home."""
    try:
        return Path(named).expanduser()
    except RuntimeError as error:
        raise DataError(
            f"'{named}' begins with a home that is not there; write the path in full"
        ) from error


def existing(source: str) -> Path:
    """Return the path of a source; `DataError` if neither a file nor a folder is there."""
    path = expanded(source)
    with readable(path):
        kind = file_kind(path)
    if kind == "nothing":
        raise DataError(f"no file or folder '{source}'; check the path")
    if kind not in ("file", "folder"):
        raise DataError(f"'{source}' is {CALLED[kind]}; give a file or a folder")
    return path


def ordinary(file: Path) -> Path:
    """Return a file; `DataError` where its name is that of a folder, a pipe, a device, or a link
    that leads to no file."""
    with readable(file):
        kind = file_kind(file)
    if kind != "file":
        raise DataError(f"'{file}' is {CALLED[kind]}, not a file; put the file there")
    return file


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn an operating system's refusal to read `path` into a `DataError`."""
    try:
        yield
    except OSError as error:
        raise unreadable(path, error) from error


def to_the_end(read: Iterable[_Item], on_defect: OnDefect) -> Iterator[_Item]:
    """Yield what is read from one file of several; what ends it early goes to `on_defect`."""
    try:
        yield from read
    except DataError as defect:
        on_defect(defect)


def unreadable(path: Path, error: OSError) -> DataError:
    """Return the error for a file or folder that the operating system does not let us read."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    return DataError(f"'{path}' cannot be read: {reason}; check the file and its permissions")


def unpacked(path: Path) -> bytes:
    """Return a file's content, with .gz and .xz unpacked; `DataError` if it is cut short."""
    opened: Any = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix.lower(), Path.open)
    try:
        with opened(path, "rb") as stream:
            content: bytes = stream.read()
            return content
    except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
        what = "is cut short" if isinstance(error, EOFError) else f"is no whole {path.suffix} file"
        raise DataError(f"'{path}' {what}; copy or download it again") from error
    except OSError as error:
        raise unreadable(path, error) from error


def source_files(source: str, task: str) -> Sources:
    """Return the Parquet, CSV or TSV files of a source, or the texts of one laid out as aclImdb.

    Where a folder holds several sets, the one called as the task expects is taken; if no such
    one is there that is an error, as is a family without a train or test file, with two names for
    one split, or with only some of the shards of one.
    """
    path = existing(source)
    if path.is_file():
        own = _matched(path)
        if own is None:
            return Sources(path, {}, ())
        return Sources(None, _complete(source, _families(path.parent)[_key(own)]), ())
    reviews = _reviews(path) if task in _REVIEW_TASKS else ()
    if reviews:
        return Sources(None, {}, reviews)
    families = _families(path)
    if not families:
        raise DataError(
            f"folder '{source}' holds no *_train and *_test files (.parquet, .csv or .tsv); "
            f"name the file itself or rename the files"
        )
    for stem in (*STEMS.get(task, ()), None):
        fitting = [family for key, family in families.items() if stem in (key[0], None)]
        if len(fitting) == 1:
            return Sources(None, _complete(source, fitting[0]), ())
    examples = ", ".join(sorted(next(iter(f.values()))[0].name for f in families.values()))
    raise DataError(
        f"folder '{source}' holds several sets ({examples}); name one of the files", reached=False
    )


def _reviews(folder: Path) -> tuple[Path, ...]:
    """The texts of a folder laid out as aclImdb, in order of name; none if it is not one."""
    with readable(folder):
        return tuple(
            file
            for part in ("train", "test")
            for side in ("neg", "pos")
            for file in sorted((folder / part / side).glob("*.txt"))
            if not hidden(file) and ordinary(file)
        )


def hidden(file: Path) -> bool:
    """Whether a file does not count, such as the `._name` that macOS lays beside every file."""
    return file.name.startswith(".")


def says_split(file: Path) -> bool:
    """Whether a file's name says of which split it is."""
    return _matched(file) is not None


def _matched(file: Path) -> re.Match[str] | None:
    return None if hidden(file) else _NAME.fullmatch(file.name)


def _key(match: re.Match[str]) -> tuple[str, str]:
    return match["stem"].lower(), match["suffix"].lower()


def named_files(folder: Path, name: re.Pattern[str]) -> list[re.Match[str]]:
    """Return the names in a folder, in their order, that are called so and count: of files, or of
    something else where no file says the split that it does (see `ordinary`)."""
    with readable(folder):
        found = [file for file in sorted(folder.iterdir()) if not hidden(file)]
        matches = [match for file in found if (match := name.fullmatch(file.name))]
        files = {match.string for match in matches if (folder / match.string).is_file()}
    said = {_split_said(match) for match in matches if match.string in files}
    return [one for one in matches if one.string in files or _split_said(one) not in said]


def _split_said(match: re.Match[str]) -> SplitName | None:
    return SPLIT_WORDS.get((match.groupdict().get("word") or "").lower())


def _families(folder: Path) -> dict[tuple[str, str], Family]:
    found: dict[tuple[str, str], Family] = {}
    for match in named_files(folder, _NAME):
        family = found.setdefault(_key(match), {})
        family.setdefault(SPLIT_WORDS[match["word"].lower()], []).append(folder / match.string)
    return found


def _complete(source: str, family: Family) -> Family:
    for split in ("train", "test"):
        if split not in family:
            there = ", ".join(file.name for paths in family.values() for file in paths)
            raise DataError(
                f"'{source}' has no {split} split beside {there}; "
                f"add the file whose name says '{split}'"
            )
    for split, files in family.items():
        refuse_parts(source, split, [match for match in map(_matched, files) if match])
    return {
        split: [ordinary(file) for file in family[split]] for split in SPLITS if split in family
    }


def refuse_parts(source: str, split: SplitName, matches: Sequence[re.Match[str]]) -> None:
    """Raise `DataError` where files are not one split: several names for it, or not each shard
    once. `matches` are their names, of a pattern that has the groups of `OF_SPLIT`."""
    names = {
        (match.string[: match.end("word")].lower(), match["shards"]): match.string
        for match in matches
    }
    if len(names) > 1:
        several = ", ".join(list(names.values())[:_SHOWN])
        raise DataError(f"'{source}' has several {split} splits ({several}); keep one of them")
    shards = [int(match["shard"] or 0) for match in matches]
    count = int(matches[0]["shards"] or max(shards) + 1)
    for shard in range(max(count, max(shards) + 1)):
        here = [match.string for match in matches if int(match["shard"] or 0) == shard]
        if len(here) > 1:
            raise DataError(f"'{source}' has {here[0]} under the name {here[1]} too; keep one")
        if shard < count and not here:
            raise DataError(
                f"'{source}' has {len(shards)} of {count} {split} shards, number {shard:05} is "
                f"missing; copy or download them all"
            )
        if shard >= count and here:
            raise DataError(
                f"'{source}' has {here[0]}, past its {count} shards; rename or remove it"
            )
