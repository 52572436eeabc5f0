"""Making a prepared set: pieces of data, one after the other, into a draft that survives.

A piece comes from a generator, from a part of a real source, or from a set that lies there.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from lra.core.dataset import SPLITS, Dataset, Split, SplitName
from lra.core.errors import DataError
from lra.core.protocol import Rows
from tasks.contract import Example, Part, Task, refuse
from tasks.sources.draft import Draft, drafting, writing
from tasks.sources.facts import Facts, write_facts
from tasks.sources.prepared import misfit, write_set

_TOKENS_AT_ONCE = 1 << 22
"""About how many tokens are gathered before they are written."""
_ROWS_AT_ONCE = 1024


class Watch:
    """Progress of a set in the making; by itself it tells nothing."""

    def waiting(self) -> None:
        """Another process is making the same set."""

    def begun(self, parts: int, done: int) -> None:
        """There are so many parts, of which some were there already."""

    def part(self, name: str) -> None:
        """A part is whole."""


QUIET = Watch()


class Piece(NamedTuple):
    """A part of a set that is whole, or not there, when a draft is gone on with."""

    name: str
    make: Callable[[Mapping[SplitName, int]], Iterable[tuple[SplitName, Split]]]
    """Gives what it adds to splits that have so many rows."""


class Stretch(NamedTuple):
    """Rows of a split that a generator makes at a time."""

    split: SplitName
    first: int
    rows: int

    def made(self, task: Task) -> Split:
        """Return the rows."""
        if task.part_rows is None:
            return task.generate(self.split, self.rows)
        return task.generate_part(self.split, self.first, self.rows)


def stretches(task: Task, rows: Rows) -> list[Stretch]:
    """Return what a generated set is made of: a few rows at a time, or each split at once."""
    found = []
    for split in SPLITS:
        whole = rows.of(split)
        step = task.part_rows or whole
        found += [
            Stretch(split, first, min(step, whole - first)) for first in range(0, whole, step)
        ]
    return found


def generated_pieces(due: Sequence[Stretch], made: Callable[[int], Split]) -> list[Piece]:
    """Return a piece for each stretch of a generated set; `made` gives the rows of one."""

    def make(number: int, _: Mapping[SplitName, int]) -> list[tuple[SplitName, Split]]:
        return [(due[number].split, made(number))]

    return [
        Piece(f"{one.split}, {one.rows} rows from {one.first}", partial(make, number))
        for number, one in enumerate(due)
    ]


def read_pieces(task: Task, source: str, rows: Rows | None) -> list[Piece]:
    """Return a piece for each part of a real source: at most `rows`, cut to the length.

    With None all there is, uncut.
    """

    def make(part: Part, have: Mapping[SplitName, int]) -> Iterator[tuple[SplitName, Split]]:
        found = part.examples(refuse) if rows is None else task.wanted(part, rows, have)
        return gathered(task, found)

    return [Piece(part.name, partial(make, part)) for part in task.parts(source)]


def cut_pieces(task: Task, data: Dataset) -> list[Piece]:
    """Return a piece for each split of a set that is there, its sequences cut to the length."""

    def make(name: SplitName, _: Mapping[SplitName, int]) -> Iterator[tuple[SplitName, Split]]:
        split = data.split(name)
        for first in range(0, len(split), _ROWS_AT_ONCE):
            yield name, _cut(split, first, first + _ROWS_AT_ONCE, task.length)

    return [Piece(name, partial(make, name)) for name in SPLITS]


def _cut(split: Split, first: int, last: int, length: int) -> Split:
    """Rows of a split, each sequence cut to the length."""
    last = min(last, len(split))
    sequences = range(first * split.inputs, last * split.inputs)
    tokens = [split.sequence(i)[:length] for i in sequences]
    if not split.by_token:
        return Split.of(tokens, split.labels[first:last], split.inputs)
    told = [
        split.labels[split.starts[i] :][: len(kept)]
        for i, kept in zip(sequences, tokens, strict=True)
    ]
    return Split.of(tokens, np.concatenate(told), split.inputs, by_token=True)


def gathered(task: Task, examples: Iterable[Example]) -> Iterator[tuple[SplitName, Split]]:
    """Yield examples as pieces of splits, holding no more than a few in memory."""
    waiting: dict[SplitName, list[Example]] = {split: [] for split in SPLITS}
    tokens = dict.fromkeys(SPLITS, 0)
    for example in examples:
        split = example.split
        waiting[split].append(example)
        tokens[split] += sum(map(len, example.tokens))
        if tokens[split] >= _TOKENS_AT_ONCE:
            yield split, task.joined(waiting[split])
            waiting[split], tokens[split] = [], 0
    for split, left in waiting.items():
        if left:
            yield split, task.joined(left)


def make_set(
    task: Task,
    named: str,
    folder: Path,
    key: str,
    pieces: Callable[[], Sequence[Piece]],
    *,
    what: str,
    real: bool = False,
    finish: Callable[[Dataset, Facts, Path], Facts] = lambda data, facts, files: facts,
    watch: Watch = QUIET,
) -> None:
    """Make the set of the task `named` in `folder`, going on from a draft of the same `key`.

    `what` names the source in errors, `real` says that it is no generator; `finish` adds facts,
    given the set's files. Does nothing where the folder is there. Raises `DataError` where the
    source is wrong or the disk is full.
    """
    with drafting(folder, key, task.card.inputs, watch.waiting) as draft:
        if draft is None:
            return
        due = pieces()
        watch.begun(len(due), draft.parts)
        for piece in due[draft.parts :]:
            rows = piece.make(draft.rows)
            for split, read in _sound(rows, draft) if real else rows:
                draft.append(split, read)
            draft.commit()
            watch.part(piece.name)
        for split, number in draft.rows.items():
            if not number:
                draft.drop()
                raise DataError(f"{what} has no rows for {split}; give a source with more rows")
        wrap = task.real_dataset if real else task.dataset
        data = wrap({split: draft.split(split) for split in SPLITS})
        _write(data, named, key, draft, folder, finish)


def _sound(
    rows: Iterable[tuple[SplitName, Split]], draft: Draft
) -> Iterator[tuple[SplitName, Split]]:
    """The rows of a source. A wrong one is dropped as a whole: mended, it is another one.

    One that the system did not let be read may be sound, and the same the next time.
    """
    try:
        yield from rows
    except DataError as error:
        cause = error.__cause__
        if not (isinstance(cause, OSError) and cause.errno):
            draft.drop()
        raise


def _write(
    data: Dataset,
    named: str,
    key: str,
    draft: Draft,
    folder: Path,
    finish: Callable[[Dataset, Facts, Path], Facts],
) -> None:
    """Write the draft's Arrow files beside it, and rename them into place.

    Refuses what the task itself says that it has not: a set that lies there has been sound.
    """
    files = draft.place / "set"
    shutil.rmtree(files, ignore_errors=True)
    with writing(folder):
        files.mkdir()
        facts = finish(data, write_set(data, named, files), files)
        for name, split in data:
            if what := misfit(replace(data, length=facts.length), split):
                draft.drop()
                raise DataError(f"{named}: {name} {what}; mend the task")
        write_facts(msgspec.structs.replace(facts, key=key), files)
        files.rename(folder)
