"""Simple baseline of local counts: boosted trees on how often tokens stand in which part of a
sequence.

They see what a rule on counts could see: which tokens stand at the beginning, how many different
ones a half holds, how bright a pixel is. Which tokens meet where, they do not.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from lra.core.dataset import Dataset, Split

FITTED_ROWS = 10_000
"""Largest number of rows that trees are fitted to."""
TREES = 300
"""Trees in all, of 31 leaves at most; for more than two classes shared among these."""
SEGMENTS = 8
"""Equal parts of a sequence in which tokens are counted: as many as long poems have verses."""
COUNTED = 16
"""Tokens that are counted in each segment: those that are most frequent in training."""
FIRST = 16
"""Tokens that are read from the beginning of sequences whose lengths vary."""
PLACES = 1024
"""Largest number of places that are read of sequences of one length; spread over longer ones."""

_BINS = 64
_EXAMPLES_AT_ONCE = 1_000

Features = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


def trees(dataset: Dataset) -> float:
    """Return the test accuracy of boosted trees, a share of 1; a function of the data alone.

    Their features are, for each sequence: its length; counts of frequent tokens by segment; the
    number of different tokens in each run of segments; tokens by place, all of them where all
    sequences have one length. For a pair also the number of different tokens that both have in a
    run of segments.
    """
    train = dataset.train.first(FITTED_ROWS)
    if len(np.unique(train.labels)) == 1:
        return float(np.mean(dataset.test.labels == train.labels[0]))
    seen = np.bincount(train.tokens, minlength=dataset.vocabulary)
    frequent = np.sort(np.argsort(-seen, kind="stable")[:COUNTED])
    places = _places(train, dataset.test)
    read = [_features(s, dataset.vocabulary, frequent, places) for s in (train, dataset.test)]
    classes = len(np.unique(train.labels))
    model = HistGradientBoostingClassifier(
        max_iter=max(1, TREES // classes) if classes > 2 else TREES,
        max_bins=_BINS,
        early_stopping=False,
        random_state=0,
    )
    # On several threads sums are rounded in another order, and take no less time when all are busy.
    with threadpool_limits(1):
        model.fit(read[0], train.labels)
        return float(model.score(read[1], dataset.test.labels))


def _places(train: Split, test: Split) -> Ints:
    """The places at which tokens are read."""
    lengths = np.unique(np.concatenate([train.lengths.ravel(), test.lengths.ravel()]))
    if len(lengths) > 1:
        return np.arange(min(FIRST, int(lengths[-1])))
    number = min(PLACES, int(lengths[0]))
    return np.arange(number) * int(lengths[0]) // number


def _features(split: Split, vocabulary: int, frequent: Ints, places: Ints) -> Features:
    """Features of each example, (examples, features)."""
    step = _EXAMPLES_AT_ONCE * split.inputs
    found = []
    for first in range(0, len(split.starts) - 1, step):
        starts = split.starts[first : first + step + 1]
        tokens = split.tokens[starts[0] : starts[-1]].astype(np.int64)
        starts = starts - starts[0]
        counts_SGV = _count(tokens, starts, vocabulary)
        held_SNV = _held(counts_SGV)
        own_SF = np.concatenate(
            [
                np.diff(starts)[:, None],
                counts_SGV[..., frequent].reshape(len(counts_SGV), -1),
                held_SNV.sum(axis=2),
                _at_places(tokens, starts, places),
            ],
            axis=1,
        )
        if split.inputs == 2:
            shared_RN = (held_SNV[0::2] & held_SNV[1::2]).sum(axis=2)
            own_SF = np.concatenate([own_SF[0::2], own_SF[1::2], shared_RN], axis=1)
        found.append(own_SF.astype(np.float32))
    return np.concatenate(found)


def _count(tokens: Ints, starts: Ints, vocabulary: int) -> Ints:
    """How often each token stands in each segment, (sequences, segments, vocabulary)."""
    lengths = np.diff(starts)
    sequence = np.repeat(np.arange(len(lengths)), lengths)
    place = np.arange(len(tokens)) - np.repeat(starts[:-1], lengths)
    cells = (sequence * SEGMENTS + place * SEGMENTS // lengths[sequence]) * vocabulary + tokens
    size = len(lengths) * SEGMENTS * vocabulary
    return np.bincount(cells, minlength=size).reshape(-1, SEGMENTS, vocabulary)


def _held(counts_SGV: Ints) -> npt.NDArray[np.bool_]:
    """Which tokens each run of segments holds, (sequences, runs, vocabulary)."""
    runs = combinations(range(SEGMENTS + 1), 2)
    return np.stack([counts_SGV[:, a:b].sum(axis=1) > 0 for a, b in runs], axis=1)


def _at_places(tokens: Ints, starts: Ints, places: Ints) -> Ints:
    """The tokens at places of each sequence, (sequences, places); -1 past its end."""
    padded = np.append(tokens, -1)
    where = starts[:-1, None] + places
    return padded[np.where(where < starts[1:, None], where, len(tokens))]
