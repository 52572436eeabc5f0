"""Rules of thumb on texts: how much returns within a part of a text, with one threshold.

Nothing outside of that part is looked at: no half and no third of a text ought to tell what a whole
text is made to ask. A poem that rhymes ABBA has twice the same words in its middle half.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lra.core.dataset import Split

MOST_ROWS = 20_000
MOST_TOKENS = 8_000_000
"""Bounds of what is read of a split; the rules' answers hardly depend on more."""

TWELFTHS = 12
"""Steps in which parts of a text begin and end, for one."""
MIDDLE = ((3, 6),)
HALVES = tuple((first, 6) for first in range(TWELFTHS - 6 + 1))
THIRDS = tuple((first, 4) for first in range(TWELFTHS - 4 + 1))
"""Parts of a text: beginning and length in twelfths."""

Ints = npt.NDArray[np.int64]
Part = tuple[int, int]


def rules(train: Split, test: Split) -> dict[str, float]:
    """Return the test accuracy of each rule on labels 0 and 1, a share of 1.

    Each counts the different bytes that return within a part of a text, or the different pairs of
    neighbouring bytes; of two texts the rule takes the difference of their counts. It answers by a
    threshold. Part, count and threshold are those with which most training rows are right:
    `middle_half` has one part, `one_half` and `one_third` have all that begin at a twelfth.
    """
    known, asked = _Returns(_some(train)), _Returns(_some(test))
    found = {"middle_half": MIDDLE, "one_half": HALVES, "one_third": THIRDS}
    return {name: _tested(known, asked, parts) for name, parts in found.items()}


class _Returns:
    """Returning bytes, and pairs of bytes, of the texts of a split."""

    def __init__(self, split: Split) -> None:
        self.labels_R = split.labels == 1
        self._inputs, self._starts = split.inputs, split.starts
        single = split.tokens.astype(np.int64)
        # The last byte of a text and the first of the next are no pair.
        pairs = np.append(single[:-1] << 16 | single[1:], -1)[: len(single)]
        pairs[self._starts[1:] - 1] = -1
        self._earlier = [_find_earlier(units, self._starts) for units in (single, pairs)]

    def count(self, unit: int, part: Part) -> Ints:
        """Return how many different bytes (unit 0) or pairs of them (1) return in a part."""
        lengths = np.diff(self._starts)
        first = self._starts[:-1] - (-lengths * part[0] // TWELFTHS)
        last = self._starts[:-1] - (-lengths * (part[0] + part[1]) // TWELFTHS)
        once, twice = self._earlier[unit]
        from_P = np.repeat(first, lengths)
        # The second time in the part: later ones do not count again.
        returns = (once >= from_P) & (twice < from_P)
        before = np.append(0, returns.cumsum())
        counts_S: Ints = before[last] - before[first]
        return counts_S if self._inputs == 1 else abs(counts_S[0::2] - counts_S[1::2])


def _find_earlier(units: Ints, starts: Ints) -> tuple[Ints, Ints]:
    """Return where each unit stood last before in its text, and where before that; -1 for nowhere,
    and for units below 0."""
    texts = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    order = np.lexsort((units, texts))
    same = (np.diff(units[order]) == 0) & (np.diff(texts[order]) == 0) & (units[order][1:] >= 0)
    once = np.full(len(units), -1, np.int64)
    once[order[1:][same]] = order[:-1][same]
    return once, np.where(once >= 0, once[once], -1)


def _some(split: Split) -> Split:
    longest = int(split.lengths.sum(axis=1).max())
    return split.first(min(MOST_ROWS, max(1, MOST_TOKENS // longest)))


def _tested(known: _Returns, asked: _Returns, parts: Sequence[Part]) -> float:
    """Test accuracy with the part, the count and the threshold that fit the training rows best."""
    fits = [
        (*_fit(known.count(unit, part), known.labels_R), unit, part)
        for unit in (0, 1)
        for part in parts
    ]
    _, threshold, above, unit, part = max(fits, key=lambda fit: fit[0])
    answers_R = (asked.count(unit, part) > threshold) == above
    return float((answers_R == asked.labels_R).mean())


def _fit(counts_R: Ints, labels_R: npt.NDArray[np.bool_]) -> tuple[int, int, bool]:
    """Return how many rows are right with the best threshold, that threshold, and whether rows
    above it are those of label 1."""
    size = int(counts_R.max()) + 1
    ones = np.bincount(counts_R[labels_R], minlength=size)
    zeros = np.bincount(counts_R[~labels_R], minlength=size)
    # Right where the rows above the threshold are 1, by threshold -1, 0, ...
    right = np.append(0, zeros.cumsum()) + ones.sum() - np.append(0, ones.cumsum())
    both = np.stack([right, len(counts_R) - right])
    below, place = np.unravel_index(int(both.argmax()), both.shape)
    return int(both.max()), int(place) - 1, not below
