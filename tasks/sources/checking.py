"""Reading a real source to its end for what is wrong with it, and counting what is in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from lra.core.dataset import SPLITS, UNASKED, Dataset, Split, SplitName
from lra.core.errors import DataError
from tasks.contract import OnDefect, Task
from tasks.sources.facts import Facts, changed, damaged
from tasks.sources.files import to_the_end
from tasks.sources.prepared import buffers_hash, open_prepared
from tasks.sources.preparing import QUIET, Watch, gathered
from tasks.sources.repeats import Clash, Repeats
from tasks.sources.tables import DOCUMENT_VOCABULARY, printed_by_python

Shown = Callable[[npt.NDArray[np.integer]], str]
"""A sequence as a person reads it."""
_SHOWN = 40
"""Characters of a text, or tokens, that an error shows."""


@runtime_checkable
class LeavesOut(Protocol):
    """A task that leaves sound rows of a real set out, as its length is too short for them."""

    def left_out(self, source: str) -> Mapping[SplitName, int]:
        """Return how many rows of each split it leaves out."""


@dataclass
class Tally:
    """Lengths and labels of one split, counted as its rows go by."""

    rows: int = 0
    sequences: int = 0
    tokens: int = 0
    shortest: int = 0
    longest: int = 0
    asked: int = 0
    """Tokens that have a label, where each may have one."""
    labels: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Rows of each label; none where tokens have labels."""
    printed: int = 0
    """Texts written as Python prints bytes, `b'...'`."""
    repeated: int = 0
    """Rows that stand earlier in the split too."""
    elsewhere: dict[SplitName, int] = field(default_factory=dict)
    """Rows that stand in an earlier split too."""
    left_out: int = 0
    """Rows that are none at the task's length; not told of a prepared set."""

    def add(self, split: Split) -> None:
        """Count rows, at least one."""
        lengths = split.lengths
        self.shortest = int(min(lengths.min(), self.shortest or lengths.min()))
        self.longest = int(max(lengths.max(), self.longest))
        self.rows += len(split)
        self.sequences += lengths.size
        self.tokens += int(lengths.sum())
        if split.by_token:
            self.asked += int(np.count_nonzero(split.labels != UNASKED))
            return
        most = max(len(self.labels), int(split.labels.max()) + 1)
        found = np.bincount(split.labels, minlength=most)
        found[: len(self.labels)] += self.labels
        self.labels = found


class Count:
    """Counts the rows of a set as they go by; a text with two labels goes to `on_defect`, and is
    counted. `where` is what errors call the set."""

    def __init__(self, where: str, vocabulary: int, shown: Shown, on_defect: OnDefect) -> None:
        self._where, self._vocabulary, self._shown = where, vocabulary, shown
        self._on_defect = on_defect
        self._tallies: dict[SplitName, Tally] = {name: Tally() for name in SPLITS}
        self._repeats = Repeats()

    def add(self, name: SplitName, split: Split) -> None:
        """Count rows of a split."""
        if not len(split):
            return
        tally = self._tallies[name]
        tally.add(split)
        if self._vocabulary == DOCUMENT_VOCABULARY:
            sequences = map(split.sequence, range(len(split) * split.inputs))
            tally.printed += sum(map(printed_by_python, sequences))
        for clash in self._repeats.add(name, split):
            self._on_defect(self._two_labels(clash))

    def tallies(self) -> dict[SplitName, Tally]:
        """Return the counts of each split."""
        for name, tally in self._tallies.items():
            tally.repeated = self._repeats.within(name)
            tally.elsewhere = self._repeats.elsewhere(name)
        return self._tallies

    def _two_labels(self, clash: Clash) -> DataError:
        text = self._shown(clash.tokens)
        if "\n" in text:
            # A picture is drawn in lines.
            text = ids(clash.tokens)
        begins = text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ..."
        first, second = clash.labels
        return DataError(
            f"'{self._where}', {clash.split}: {begins} has label {second}, and {first} before; "
            f"keep one of the rows"
        )


def ids(tokens: npt.NDArray[np.integer]) -> str:
    """Return the beginning of a sequence as numbers."""
    return "tokens " + " ".join(map(str, tokens[:_SHOWN].tolist()))


def tallies(data: Dataset) -> dict[SplitName, Tally]:
    """Return the counts of a set that is there."""
    return _counted(data, "", lambda defect: None)


def _counted(data: Dataset, where: str, on_defect: OnDefect) -> dict[SplitName, Tally]:
    count = Count(where, data.vocabulary, ids, on_defect)
    for name, split in data:
        count.add(name, split)
    return count.tallies()


def check_source(
    task: Task, source: str, on_defect: OnDefect, watch: Watch = QUIET
) -> dict[SplitName, Tally]:
    """Read all of a source, tell every defect, and return the counts of the rows without one.

    A fault of a whole file is one defect, after which the next file is read. A fault that rows
    share (`DataError.once`) is told once. Raises `DataError` where no data was reached.
    """
    told: set[str] = set()
    sound = True

    def tell(defect: DataError) -> None:
        nonlocal sound
        sound = False
        if not defect.once or defect.once not in told:
            on_defect(defect)
        told.add(defect.once)

    count = Count(source, task.vocabulary, task.shown, tell)

    try:
        parts = task.parts(source)
    except DataError as defect:
        if not defect.reached:
            raise
        tell(defect)
        return count.tallies()
    watch.begun(len(parts), 0)
    for part in parts:
        for name, split in gathered(task, to_the_end(part.examples(tell), tell)):
            count.add(name, split)
        watch.part(part.name)
    found = count.tallies()
    if isinstance(task, LeavesOut):
        for name, rows in task.left_out(source).items():
            found[name].left_out = rows
    # Where rows have defects, a split without a row is what comes of them.
    empty = [name for name, tally in found.items() if not tally.rows] if sound else []
    for name in empty:
        tell(DataError(f"'{source}' has no rows for {name}; give a source with more rows"))
    return found


def check_whole(facts: Facts, folder: Path, on_defect: OnDefect) -> dict[SplitName, Tally]:
    """Compare a prepared set's files with its facts; return its counts where it can be read.

    A set of an earlier version, without checksums, is looked through for what cannot be.
    """
    wrong = [what for name in SPLITS if (what := changed(facts, folder, name))]
    for what in wrong:
        on_defect(damaged(folder, what))
    try:
        if not wrong:
            data = open_prepared(folder)
            _refuse_unlike(facts, data, folder)
            return _counted(data, str(folder), on_defect)
    except DataError as defect:
        on_defect(defect)
    return {name: Tally() for name in SPLITS}


def _refuse_unlike(facts: Facts, data: Dataset, folder: Path) -> None:
    """Refuse a set that is not the one that its facts, and records, know it by."""
    origin = facts.origin
    if origin is not None and buffers_hash(data, facts.task, origin.rules) != origin.hash:
        raise damaged(folder, "facts.json has the hash of another set")
