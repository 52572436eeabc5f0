"""Answers to examples with a source, row by row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from lra.core.dataset import UNASKED, Split

Ints = npt.NDArray[np.int64]


def answered(split: Split, answer: Callable[[Ints, Ints], Ints]) -> Ints:
    """Return labels in the form of a split's, from a function of an example's source and of the
    sequence that is asked, which returns one label for each token of the latter."""
    answers = np.full(len(split.tokens), UNASKED)
    for row in range(len(split)):
        source, given = (split.sequence(2 * row + side).astype(np.int64) for side in (0, 1))
        first = split.starts[2 * row + 1]
        answers[first : first + len(given)] = answer(source, given)
    return answers


def share_right(split: Split, answers: Ints) -> float:
    """Return the share of what is asked that has been answered rightly."""
    asked = split.labels != UNASKED
    return float((answers[asked] == split.labels[asked]).mean())
