"""Rows that stand in two splits: what is tested on and was trained on says less."""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b

from lra.core.dataset import SPLITS, Split, SplitName


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
