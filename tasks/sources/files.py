"""Which files a `--data` source stands for: a file, its siblings, or those in a folder.

Files of one set differ in the word for the split: imdb_train.parquet and imdb_test.parquet,
basic_val.tsv, train-00000-of-00002.parquet. Naming one of them, or their folder, names them all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from lra.core.dataset import SPLITS, SplitName
from lra.core.errors import DataError

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

_NAME = re.compile(
    r"(?P<stem>.*?)(?:^|[._-])(?P<word>" + "|".join(SPLIT_WORDS) + r")"
    r"(?:-\d{5}-of-\d{5})?(?P<suffix>\.(?:parquet|csv|tsv)(?:\.gz)?)"
)

Family = dict[SplitName, list[Path]]
"""The files of each split of one set, in order of name."""


class Sources(NamedTuple):
    """What a source holds: one file without a split word, or a family."""

    single: Path | None
    family: Family


def existing(source: str) -> Path:
    """Return the path of a source; `DataError` if nothing is there."""
    path = Path(source).expanduser()
    if not path.exists():
        raise DataError(f"no file or folder '{source}'; check the path given to --data")
    return path


def table_files(source: str, prefer: Iterable[str] = ()) -> Sources:
    """Return the Parquet, CSV or TSV files of a source.

    Where a folder holds several sets, the one with the first stem of `prefer` is taken; if no such
    one is there that is an error, as is a family without a train or test file.
    """
    path = existing(source)
    if path.is_file():
        own = _NAME.fullmatch(path.name)
        if own is None:
            return Sources(path, {})
        return Sources(None, _complete(source, _families(path.parent)[_key(own)]))
    families = _families(path)
    if not families:
        raise DataError(
            f"folder '{source}' holds no *_train and *_test files (.parquet, .csv or .tsv); "
            f"name the file itself or rename the files"
        )
    for stem in (*prefer, None):
        fitting = [family for key, family in families.items() if stem in (key[0], None)]
        if len(fitting) == 1:
            return Sources(None, _complete(source, fitting[0]))
    examples = ", ".join(sorted(next(iter(f.values()))[0].name for f in families.values()))
    raise DataError(f"folder '{source}' holds several sets ({examples}); name one of the files")


def source_files(source: str) -> list[tuple[str, Path]]:
    """Return the name (relative, fixed) and path of every file that a source may be read from."""
    path = existing(source)
    if path.is_file():
        own = _NAME.fullmatch(path.name)
        family = _families(path.parent)[_key(own)] if own else {"train": [path]}
        files = [file for paths in family.values() for file in paths]
        return sorted((file.name, file) for file in files)
    families = _families(path)
    files = [file for family in families.values() for paths in family.values() for file in paths]
    if not files:
        files = review_files(path) or [file for file in path.rglob("*") if file.is_file()]
    if not files:
        raise DataError(f"folder '{source}' is empty; check the path given to --data")
    return sorted((file.relative_to(path).as_posix(), file) for file in files)


def review_files(folder: Path) -> list[Path]:
    """Return the texts of a folder laid out as aclImdb, in order of name; [] if it is not one."""
    return [
        file
        for part in ("train", "test")
        for side in ("neg", "pos")
        for file in sorted((folder / part / side).glob("*.txt"))
    ]


def _key(match: re.Match[str]) -> tuple[str, str]:
    return match["stem"], match["suffix"]


def _families(folder: Path) -> dict[tuple[str, str], Family]:
    found: dict[tuple[str, str], Family] = {}
    for file in sorted(folder.iterdir()):
        match = _NAME.fullmatch(file.name)
        if match and file.is_file():
            family = found.setdefault(_key(match), {})
            family.setdefault(SPLIT_WORDS[match["word"]], []).append(file)
    return found


def _complete(source: str, family: Family) -> Family:
    for split in ("train", "test"):
        if split not in family:
            there = ", ".join(file.name for paths in family.values() for file in paths)
            raise DataError(
                f"'{source}' has no {split} split beside {there}; "
                f"add the file whose name says '{split}'"
            )
    return {split: family[split] for split in SPLITS if split in family}
