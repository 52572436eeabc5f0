"""First examples and shuffled tokens."""

import numpy as np
import pytest

from lra.core.dataset import SPLITS, Dataset, Split

DRAWS = np.random.default_rng(1)
SEQUENCES = [DRAWS.integers(1, 50, n).astype(np.uint8) for n in (3, 9, 5, 7, 6, 4)]
PAIRS = Split.of(SEQUENCES, [0, 1, 1], 2)
BY_TOKEN = Split.of([np.arange(1, n, dtype=np.uint8) for n in (4, 6)], np.arange(8), by_token=True)


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 9])
def test_the_first_examples(rows):
    few = PAIRS.first(rows)
    assert len(few) == min(rows, 3)
    assert few.labels.tolist() == [0, 1, 1][:rows]
    for place in range(2 * len(few)):
        assert np.array_equal(few.sequence(place), PAIRS.sequence(place))


def test_the_first_examples_with_their_tokens_labels():
    few = BY_TOKEN.first(1)
    assert (len(few), few.tokens.tolist(), few.labels.tolist()) == (1, [1, 2, 3], [0, 1, 2])


def whole(split):
    return Dataset(split, split, split, classes=2, vocabulary=50, length=9, inputs=split.inputs)


@pytest.mark.parametrize("name", SPLITS)
def test_shuffled_sequences_hold_the_same_tokens_in_another_order_always_the_same(name):
    one, again = (whole(PAIRS).shuffled().split(name) for _ in range(2))
    assert np.array_equal(one.tokens, again.tokens)
    assert np.array_equal(one.labels, PAIRS.labels) and np.array_equal(one.starts, PAIRS.starts)
    pairs = [(one.sequence(place), PAIRS.sequence(place)) for place in range(6)]
    assert all(sorted(mine) == sorted(theirs) for mine, theirs in pairs)
    assert sum(not np.array_equal(*pair) for pair in pairs) >= 5


def test_tokens_with_labels_are_not_shuffled_and_are_of_one_sequence():
    with pytest.raises(ValueError, match="lost with its place"):
        whole(BY_TOKEN).shuffled()
    rows = [np.ones(3, dtype=np.uint8)] * 4
    Split.of(rows, np.zeros(12), by_token=True)
    with pytest.raises(ValueError, match="2 sequences"):
        Split.of(rows, np.zeros(12), inputs=2, by_token=True)
