"""Rows with the same tokens: within a split, in an earlier one, and with another label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lra.core.dataset import SPLITS, Split, SplitName


class Clash(NamedTuple):
    """Tokens that have two labels."""

    split: SplitName
    """Where the second label stands."""
    tokens: npt.NDArray[np.integer]
    """(length,) of the first sequence."""
    labels: tuple[int, int]
    """The first that was met, and the second."""


class Repeats:
    """Counts rows whose tokens, whatever their labels, stood in a split before."""

    def __init__(self) -> None:
        self._rows: dict[SplitName, Counter[bytes]] = {name: Counter() for name in SPLITS}
        self._labels: dict[bytes, int | None] = {}
        """The label of each row, None once it had two."""

    def add(self, name: SplitName, split: Split) -> Iterator[Clash]:
        """Take rows of a split; yield tokens where they are met with a second label."""
        found = self._rows[name]
        for row in range(len(split)):
            first, last = row * split.inputs, (row + 1) * split.inputs
            # Where one sequence of a pair ends is part of what the pair is.
            digester = blake2b(
                (split.starts[first : last + 1] - split.starts[first]).data, digest_size=16
            )
            digester.update(split.tokens[split.starts[first] : split.starts[last]].data)
            digest = digester.digest()
            found[digest] += 1
            if split.by_token:
                continue
            label = int(split.labels[row])
            known = self._labels.setdefault(digest, label)
            if known is not None and known != label:
                self._labels[digest] = None
                yield Clash(name, split.sequence(first), (known, label))

    def within(self, name: SplitName) -> int:
        """Return how many rows of a split repeat an earlier one of it."""
        return self._rows[name].total() - len(self._rows[name])

    def elsewhere(self, name: SplitName) -> dict[SplitName, int]:
        """Return how many rows of a split stand in each split before it, where any do."""
        earlier = SPLITS[: SPLITS.index(name)]
        counts = {
            other: sum(self._rows[name][row] for row in self._rows[name].keys() & self._rows[other])
            for other in earlier
        }
        return {other: count for other, count in counts.items() if count}
