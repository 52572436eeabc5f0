"""ROUGE: how much of a text stands in another, by runs of tokens and by their order.

Lin, "ROUGE: A Package for Automatic Evaluation of Summaries", 2004. Tokens are ids; scores are F1,
the harmonic mean of precision and recall, as shares of 1. The longest common subsequence is that of
the whole texts (ROUGE-L, and not the summary form of it).
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.integer]


class Rouge(NamedTuple):
    """Scores of a text against a reference, each 0 ... 1."""

    one: float
    """ROUGE-1: tokens in common, each as often as both have it."""
    two: float
    """ROUGE-2: pairs of neighbours in common."""
    longest: float
    """ROUGE-L: longest sequence of tokens that both have in the same order, with gaps."""


def rouge(written: Ids, reference: Ids) -> Rouge:
    """Return the scores of a text, (n,), against a reference, (m,); 0 where either has no tokens,
    or no pairs of them."""
    longest = longest_common(written, reference)
    return Rouge(
        _runs(written, reference, 1),
        _runs(written, reference, 2),
        _f1(longest, len(written), len(reference)),
    )


def longest_common(one: Ids, other: Ids) -> int:
    """Return the length of the longest common subsequence of two texts."""
    best = np.zeros(len(other) + 1, dtype=np.int64)
    for token in one:
        # Longer by one where the token meets its like, else as long as without either.
        met = np.where(other == token, best[:-1] + 1, best[1:])
        best[1:] = np.maximum.accumulate(met)
    return int(best[-1])


def _runs(written: Ids, reference: Ids, size: int) -> float:
    """F1 of runs of so many tokens."""
    one, other = (
        Counter(tuple(text[at : at + size].tolist()) for at in range(len(text) - size + 1))
        for text in (written, reference)
    )
    return _f1((one & other).total(), one.total(), other.total())


def _f1(common: int, one: int, other: int) -> float:
    return 2 * common / (one + other) if common else 0.0
