"""Simple baselines of tasks with a source: those of examples, each asked token being an example.

It is a pair: the source, and the one token that is asked. So a baseline sees all of the source and
that token, but not what was given before it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lra.core.dataset import UNASKED, Dataset, Split
from lra.measure.baselines import FITTED_ROWS, baselines

SCORED = 10_000
"""Largest number of asked test tokens that the fitted baselines are scored on, from the first."""

Ints = npt.NDArray[np.int64]


def baselines_by_source(dataset: Dataset) -> dict[str, float]:
    """Return the test accuracy of a bag of tokens and of trees, as shares of 1; see `baselines`.

    They are fitted to as many asked tokens as other tasks have rows. A token of several parts
    counts as each of these.
    """
    sizes = dataset.parts or (dataset.vocabulary,)
    alone = Dataset(
        train=_each_alone(dataset.train, FITTED_ROWS, sizes),
        validation=_each_alone(dataset.validation, 1, sizes),
        test=_each_alone(dataset.test, SCORED, sizes),
        classes=dataset.classes,
        vocabulary=sum(sizes),
        length=dataset.length * len(sizes),
        inputs=2,
    )
    found = baselines(alone)
    # The majority needs no fit: all that is asked tells it.
    return {name: score for name, score in found.items() if name != "majority"}


def _each_alone(split: Split, most: int, sizes: Sequence[int]) -> Split:
    """Return the first asked tokens of a split as pairs of a source and a token, with its label."""
    sequences, labels = [], []
    for row in range(len(split)):
        first, second, end = split.starts[2 * row : 2 * row + 3]
        source = _apart(split.tokens[first:second], sizes)
        for place in second + np.flatnonzero(split.labels[second:end] != UNASKED):
            sequences += [source, _apart(split.tokens[place : place + 1], sizes)]
            labels.append(int(split.labels[place]))
        if len(labels) >= most:
            break
    return Split.of(sequences[: 2 * most], labels[:most], inputs=2)


def _apart(tokens: npt.NDArray[np.integer], sizes: Sequence[int]) -> Ints:
    """Return the parts of each token, one after the other, with ids of their own; those that a
    token has not are left out."""
    if len(sizes) == 1:
        return tokens.astype(np.int64)
    rest, first, parts = tokens.astype(np.int64), 0, []
    for size in sizes:
        parts.append(np.where(rest % size, first + rest % size, 0))
        rest, first = rest // size, first + size
    apart = np.stack(parts, axis=-1).ravel()
    return apart[apart > 0]
