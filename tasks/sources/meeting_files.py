"""Meetings with queries and the passages that answer them, in the form of QMSum's release: JSON
lines, a meeting each, in files train.jsonl, val.jsonl and test.jsonl.

A meeting is written as a line a turn, `speaker: content`. Queries about a whole meeting have no
passage, and are not read; nor is a query whose passage begins beyond the length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from lra.core.dataset import SPLITS, SplitName
from lra.core.errors import DataError
from tasks.contract import Example, OnDefect, Part
from tasks.sources.files import (
    OF_SPLIT,
    SPLIT_WORDS,
    Family,
    existing,
    named_files,
    ordinary,
    readable,
    refuse_parts,
)
from tasks.sources.tables import bad_row, document_tokens, sound

_NAME = re.compile(rf"(?P<stem>.*?)(?:^|[._-]){OF_SPLIT}\.jsonl", re.IGNORECASE)


class _Turn(msgspec.Struct):
    speaker: str
    content: str


class _Query(msgspec.Struct):
    query: str
    relevant_text_span: list[tuple[int, int]]
    """First and last turn of each stretch of the passage, counted from 0."""


class _Meeting(msgspec.Struct):
    meeting_transcripts: list[_Turn]
    specific_query_list: list[_Query]


class _Asked(msgspec.Struct):
    """A query, its meeting and the bytes of the meeting that answer it."""

    query: bytes
    meeting: bytes
    passage_B: npt.NDArray[np.int64]
    """Their places in the meeting, in its order."""

    def kept(self, length: int) -> int:
        """Return how many bytes of the meeting a sequence of the length has room for, after query
        and separator."""
        return max(0, min(len(self.meeting), length - len(self.query) - 1))


def query_parts(source: str, length: int, parts: int, separator: int) -> Sequence[Part]:
    """Return a part for each file of a folder, or for a file and those beside it.

    An example is the query, the token `separator` and the meeting, cut to the length; a byte's
    token is the byte plus 1. Its label is the part, of `parts` of equally many bytes of what is
    kept, that holds the middle byte of the passage, as far as kept: of several stretches the middle
    of their bytes one after the other, so that it is always a byte of the passage. Raises
    `DataError` naming file and remedy.
    """
    return [
        Part(path.name, partial(_examples, path, split, length, parts, separator), split)
        for split, paths in meeting_files(source).items()
        for path in paths
    ]


def count_beyond(source: str, length: int) -> Mapping[SplitName, int]:
    """Return how many queries of each split are not read as their passage begins beyond the length;
    queries with defects are none."""
    return {
        split: sum(
            int(asked.passage_B[0]) >= asked.kept(length)
            for path in paths
            for asked in _asked(path, lambda defect: None)
        )
        for split, paths in meeting_files(source).items()
    }


def meeting_files(source: str) -> Family:
    """Return the files that a file or folder stands for.

    Raises `DataError` where there are none, of several sets, none for a split, or two names for
    one.
    """
    path = existing(source)
    folder = path if path.is_dir() else path.parent
    found = named_files(folder, _NAME)
    if path.is_file():
        own = _NAME.fullmatch(path.name)
        if own is None:
            raise DataError(
                f"'{source}' is not named as a file of meetings is, such as train.jsonl; rename it"
            )
        found = [match for match in found if match["stem"].lower() == own["stem"].lower()]
    sets = {match["stem"].lower(): match.string for match in found}
    if len(sets) > 1:
        raise DataError(
            f"folder '{source}' holds several sets ({', '.join(sets.values())}); name a file",
            reached=False,
        )
    family: Family = {}
    for split in SPLITS:
        mine = [match for match in found if SPLIT_WORDS[match["word"].lower()] == split]
        if not mine:
            word = "val" if split == "validation" else split
            raise DataError(
                f"'{source}' has no meetings for {split}; add the file {word}.jsonl, or name the "
                f"folder that holds it"
            )
        refuse_parts(source, split, mine)
        family[split] = [ordinary(folder / match.string) for match in mine]
    return family


def _examples(
    path: Path, split: SplitName, length: int, parts: int, separator: int, on_defect: OnDefect
) -> Iterator[Example]:
    for asked in _asked(path, on_defect):
        kept = asked.kept(length)
        passage_B = asked.passage_B[asked.passage_B < kept]
        if len(passage_B):
            between = np.array([separator], dtype=np.uint16)
            query, meeting = document_tokens(asked.query), document_tokens(asked.meeting[:kept])
            tokens = np.concatenate([query, between, meeting])
            yield Example(split, (tokens,), int(passage_B[len(passage_B) // 2]) * parts // kept)


def _asked(path: Path, on_defect: OnDefect) -> Iterator[_Asked]:
    """The queries of a file that have a passage, in its order."""
    with readable(path):
        lines = path.read_bytes().splitlines()
    if not any(map(bytes.strip, lines)):
        raise DataError(f"'{path}' is empty; copy or download it again")

    def read(row: int, line: bytes) -> tuple[int, _Meeting]:
        return row, _meeting(path, row, line)

    written = ((row, line) for row, line in enumerate(lines, 1) if line.strip())
    for row, meeting in sound(written, read, on_defect):
        yield from _of_meeting(path, row, meeting, on_defect)


def _meeting(path: Path, row: int, line: bytes) -> _Meeting:
    try:
        meeting = msgspec.json.decode(line, type=_Meeting, strict=False)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        what = f"it is no meeting: {error}; correct it, or download the file again"
        raise bad_row(path, row, what) from error
    if not meeting.meeting_transcripts:
        raise bad_row(path, row, "the meeting has no turns; remove the row")
    return meeting


def _of_meeting(path: Path, row: int, meeting: _Meeting, on_defect: OnDefect) -> Iterator[_Asked]:
    turns = [f"{turn.speaker}: {turn.content}\n".encode() for turn in meeting.meeting_transcripts]
    whole, edges = b"".join(turns), np.append(0, np.cumsum([len(turn) for turn in turns]))

    def ask(number: int, query: _Query) -> _Asked:
        if not query.query.strip():
            raise bad_row(path, row, f"specific query {number} is blank; remove it")
        where = _passage(path, row, number, query.relevant_text_span, edges)
        return _Asked(query.query.encode(), whole, where)

    yield from sound(enumerate(meeting.specific_query_list, 1), ask, on_defect)


def _passage(
    path: Path,
    row: int,
    number: int,
    stretches: Sequence[tuple[int, int]],
    edges: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """The places of the bytes of a query's passage, in their order."""
    turns = len(edges) - 1
    if not stretches:
        raise bad_row(path, row, f"specific query {number} has no relevant_text_span; remove it")
    for first, last in stretches:
        if not 0 <= first <= last < turns:
            what = f"specific query {number} has the span {first} to {last}, and the meeting"
            raise bad_row(path, row, f"{what} the turns 0 to {turns - 1}; correct it")
    places = [np.arange(edges[first], edges[last + 1]) for first, last in stretches]
    return np.unique(np.concatenate(places))
