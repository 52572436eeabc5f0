"""Reading a real source to its end for what is wrong with it, and counting what is in it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lra.core.dataset import SPLITS, UNASKED, Dataset, Split, SplitName
from lra.core.errors import DataError
from tasks.contract import OnDefect, Task
from tasks.sources.facts import Facts, changed, damaged
from tasks.sources.files import to_the_end
from tasks.sources.prepared import buffers_hash, open_prepared
from tasks.sources.preparing import QUIET, Watch, gathered


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
    elsewhere: dict[SplitName, int] = field(default_factory=dict)
    """Rows that stand in an earlier split too."""

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


class Repeats:
    """Counts rows whose tokens, whatever their labels, stand in an earlier split too."""

    def __init__(self) -> None:
        self._rows: dict[SplitName, Counter[bytes]] = {name: Counter() for name in SPLITS}

    def add(self, name: SplitName, split: Split) -> None:
        """Take rows of a split."""
        found = self._rows[name]
        for row in range(len(split)):
            first, last = row * split.inputs, (row + 1) * split.inputs
            # Where one sequence of a pair ends is part of what the pair is.
            digest = blake2b(
                (split.starts[first : last + 1] - split.starts[first]).data, digest_size=16
            )
            digest.update(split.tokens[split.starts[first] : split.starts[last]].data)
            found[digest.digest()] += 1

    def found(self, name: SplitName) -> dict[SplitName, int]:
        """Return how many rows of a split stand in each split before it, where any do."""
        earlier = SPLITS[: SPLITS.index(name)]
        counts = {
            other: sum(self._rows[name][row] for row in self._rows[name].keys() & self._rows[other])
            for other in earlier
        }
        return {other: count for other, count in counts.items() if count}


def tallies(data: Dataset) -> dict[SplitName, Tally]:
    """Return the counts of a set that is there."""
    found, repeats = {name: Tally() for name in SPLITS}, Repeats()
    for name, split in data:
        if len(split):
            found[name].add(split)
            repeats.add(name, split)
    return _with_repeats(found, repeats)


def _with_repeats(found: dict[SplitName, Tally], repeats: Repeats) -> dict[SplitName, Tally]:
    for name, tally in found.items():
        tally.elsewhere = repeats.found(name)
    return found


def check_source(
    task: Task, source: str, on_defect: OnDefect, watch: Watch = QUIET
) -> dict[SplitName, Tally]:
    """Read all of a source, tell every defect, and return the counts of the rows without one.

    A fault of a whole file is one defect, after which the next file is read. Raises `DataError`
    where no data was reached.
    """
    found, repeats = {name: Tally() for name in SPLITS}, Repeats()
    sound = True

    def tell(defect: DataError) -> None:
        nonlocal sound
        sound = False
        on_defect(defect)

    try:
        parts = task.parts(source)
    except DataError as defect:
        if not defect.reached:
            raise
        tell(defect)
        return found
    watch.begun(len(parts), 0)
    for part in parts:
        for name, split in gathered(task, to_the_end(part.examples(tell), tell)):
            found[name].add(split)
            repeats.add(name, split)
        watch.part(part.name)
    # Where rows have defects, a split without a row is what comes of them.
    empty = [name for name, tally in found.items() if not tally.rows] if sound else []
    for name in empty:
        tell(DataError(f"'{source}' has no rows for {name}; give a source with more rows"))
    return _with_repeats(found, repeats)


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
            return tallies(data)
    except DataError as defect:
        on_defect(defect)
    return {name: Tally() for name in SPLITS}


def _refuse_unlike(facts: Facts, data: Dataset, folder: Path) -> None:
    """Refuse a set that is not the one that its facts, and records, know it by."""
    origin = facts.origin
    if origin is not None and buffers_hash(data, facts.task, origin.rules) != origin.hash:
        raise damaged(folder, "facts.json has the hash of another set")
