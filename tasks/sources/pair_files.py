"""Which files a set of pairs of papers lies in: pairs, and a table of papers where they have ids.

new_aan_pairs.train.tsv, .eval.tsv and .test.tsv as in the Long Range Arena release, or a file of
all pairs as aan_pairs.parquet; aan_papers.parquet beside it. Naming one of them, or their folder,
names them all.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from lra.core.dataset import SPLITS, SplitName
from lra.core.errors import DataError
from tasks.sources.files import SPLIT_WORDS, existing, named_files, ordinary

_SUFFIX = r"(?P<suffix>\.(?:parquet|(?:csv|tsv)(?:\.gz)?))"
_PAIRS = re.compile(
    rf"(?P<stem>.*?)pairs(?:[._-](?P<word>{'|'.join(SPLIT_WORDS)}))?{_SUFFIX}", re.IGNORECASE
)
_PAPERS = re.compile(rf"(?P<stem>.*?)papers{_SUFFIX}", re.IGNORECASE)
_FORMS = "such as new_aan_pairs.train.tsv, or aan_pairs.parquet with aan_papers.parquet"


class PairFiles(NamedTuple):
    """The files of one set."""

    pairs: tuple[tuple[SplitName | None, Path], ...]
    """One for each split, or one of split None that says the split of each pair."""
    papers: Path | None

    @property
    def files(self) -> list[Path]:
        """All of them."""
        return [path for _, path in self.pairs] + ([self.papers] if self.papers else [])


def pair_files(source: str) -> PairFiles:
    """Return the files that a file or folder stands for.

    Raises `DataError` where there are none, of several sets, or not one for each split.
    """
    path = existing(source)
    folder = path if path.is_dir() else path.parent
    pairs, papers = named_files(folder, _PAIRS), named_files(folder, _PAPERS)
    if path.is_file():
        own = _PAIRS.fullmatch(path.name) or _PAPERS.fullmatch(path.name)
        if own is None:
            raise DataError(f"'{source}' is not named as pairs of papers are, {_FORMS}; rename it")
        pairs = [match for match in pairs if _stem(match) == _stem(own)]
    if not pairs:
        raise DataError(f"'{source}' holds no pairs of papers, {_FORMS}; name their folder")
    stems = {_stem(match) for match in pairs}
    if len(stems) > 1:
        first = ", ".join(sorted(match.string for match in pairs)[:3])
        raise DataError(
            f"folder '{source}' holds several sets ({first}); name one of the files", reached=False
        )
    return PairFiles(_by_split(source, folder, pairs), _table(source, folder, papers, *stems))


def _stem(match: re.Match[str]) -> str:
    return match["stem"].lower()


def _by_split(
    source: str, folder: Path, matches: list[re.Match[str]]
) -> tuple[tuple[SplitName | None, Path], ...]:
    found: dict[SplitName | None, Path] = {}
    for match in matches:
        split = SPLIT_WORDS[match["word"].lower()] if match["word"] else None
        if split in found:
            raise DataError(
                f"'{source}' has {found[split].name} and {match.string}; keep one of them"
            )
        found[split] = ordinary(folder / match.string)
    if None in found:
        if len(found) > 1:
            names = ", ".join(path.name for path in found.values())
            raise DataError(
                f"'{source}' has all pairs in one file and by split too ({names}); keep one form"
            )
        return tuple(found.items())
    for split in SPLITS:
        if split not in found:
            there = ", ".join(path.name for path in found.values())
            word = "eval" if split == "validation" else split
            raise DataError(
                f"'{source}' has no {split} split beside {there}; add the file whose name says "
                f"'{word}'"
            )
    return tuple((split, found[split]) for split in SPLITS)


def _table(source: str, folder: Path, matches: list[re.Match[str]], stem: str) -> Path | None:
    """The papers that belong to the pairs: named alike, or else the only ones there."""
    alike = [match for match in matches if _stem(match) == stem] or matches
    if len(alike) > 1:
        names = ", ".join(match.string for match in alike)
        raise DataError(f"'{source}' has several tables of papers ({names}); keep one of them")
    return ordinary(folder / alike[0].string) if alike else None
