"""Simple baselines of tasks with a label for each example: majority class, a bag of tokens, trees.

The trained ones, no mixing and local mixing, are models around `identity` and `local`, in cells of
their own.
"""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from lra.core.dataset import Dataset, Split
from lra.measure.trees import trees

FITTED_ROWS = 10_000
"""Largest number of rows that the bag of tokens is fitted to."""
STEPS = 200
"""Largest number of L-BFGS steps."""

Counts = npt.NDArray[np.float64]


def baselines(dataset: Dataset) -> dict[str, float]:
    """Return the test accuracy of each simple baseline, by name, as shares of 1.

    `majority` answers the most frequent class of the training rows. `bag_of_tokens` is a logistic
    regression on token counts; for a pair, on the counts of each sequence and on their absolute
    difference. `trees` are boosted on counts by segment and on tokens by place. All are functions
    of the data alone.
    """
    return {
        "majority": _majority(dataset),
        "bag_of_tokens": _bag_of_tokens(dataset),
        "trees": trees(dataset),
    }


def _majority(dataset: Dataset) -> float:
    frequent = np.bincount(dataset.train.labels, minlength=dataset.classes).argmax()
    return float(np.mean(dataset.test.labels == frequent))


def _bag_of_tokens(dataset: Dataset) -> float:
    rows = min(len(dataset.train), FITTED_ROWS)
    labels = dataset.train.labels[:rows]
    if len(np.unique(labels)) == 1:
        return _majority(dataset)
    train = _features(dataset.train, rows, dataset.vocabulary)
    test = _features(dataset.test, len(dataset.test), dataset.vocabulary)
    # Tokens with a constant count say nothing, and have no scale to divide by.
    spread = train.std(axis=0)
    varies = spread > 0
    if not varies.any():
        return _majority(dataset)
    mean, spread = train[:, varies].mean(axis=0), spread[varies]
    model = LogisticRegression(max_iter=STEPS)
    with warnings.catch_warnings():
        # A fixed effort, converged or not.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit((train[:, varies] - mean) / spread, labels)
    return float(model.score((test[:, varies] - mean) / spread, dataset.test.labels))


def _features(split: Split, rows: int, vocabulary: int) -> Counts:
    """Token counts of the first rows, (rows, vocabulary), or (rows, 3 vocabulary) for pairs."""
    counts = np.zeros((rows, split.inputs, vocabulary))
    for sequence, row in enumerate(counts.reshape(-1, vocabulary)):
        row[:] = np.bincount(split.sequence(sequence), minlength=vocabulary)
    if split.inputs == 2:
        difference = np.abs(counts[:, 0] - counts[:, 1])
        return np.concatenate([counts[:, 0], counts[:, 1], difference], axis=1)
    return counts.reshape(rows, -1)
