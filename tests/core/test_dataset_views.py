"""First examples and shuffled tokens."""

import numpy as np
import pytest

from lra.core.dataset import SPLITS, Dataset, Split

DRAWS = np.random.default_rng(1)
PAIRS = Split.of(
    [DRAWS.integers(1, 50, n).astype(np.uint8) for n in (3, 9, 5, 7, 6, 4)], [0, 1, 1], 2
)
TOLD = Split.of([np.arange(1, n, dtype=np.uint8) for n in (4, 6)], np.arange(8), by_token=True)


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 9])
def test_the_first_examples(rows):
    few = PAIRS.first(rows)
    assert len(few) == min(rows, 3)
    assert few.labels.tolist() == [0, 1, 1][:rows]
    for place in range(2 * len(few)):
        assert np.array_equal(few.sequence(place), PAIRS.sequence(place))


def test_the_first_examples_with_their_tokens_labels():
    few = TOLD.first(1)
    assert (len(few), few.tokens.tolist(), few.labels.tolist()) == (1, [1, 2, 3], [0, 1, 2])


def whole(split):
    return Dataset(split, split, split, classes=2, vocabulary=50, length=9, inputs=split.inputs)


@pytest.mark.parametrize("name", SPLITS)
def test_shuffled_sequences_hold_the_same_tokens_in_another_order_always_the_same(name):
    one, again = (whole(PAIRS).shuffled().split(name) for _ in range(2))
    assert np.array_equal(one.tokens, again.tokens)
    assert np.array_equal(one.labels, PAIRS.labels) and np.array_equal(one.starts, PAIRS.starts)
    moved = 0
    for place in range(6):
        mine, theirs = one.sequence(place), PAIRS.sequence(place)
        assert sorted(mine) == sorted(theirs)
        moved += not np.array_equal(mine, theirs)
    assert moved >= 5


def test_tokens_with_labels_are_not_shuffled():
    with pytest.raises(ValueError, match="lost with its place"):
        whole(TOLD).shuffled()


def test_tokens_have_labels_in_examples_of_one_sequence() -> None:
    rows = [np.ones(3, dtype=np.uint8)] * 4
    Split.of(rows, np.zeros(12), by_token=True)
    with pytest.raises(ValueError, match="2 sequences"):
        Split.of(rows, np.zeros(12), inputs=2, by_token=True)
