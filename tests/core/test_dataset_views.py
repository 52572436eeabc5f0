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


def test_tokens_with_labels_are_not_shuffled():
    with pytest.raises(ValueError, match="lost with its place"):
        whole(BY_TOKEN).shuffled()


def test_tokens_with_labels_are_of_one_sequence_or_of_a_source_and_another():
    rows = [np.ones(3, dtype=np.uint8)] * 6
    one, two = (Split.of(rows, np.zeros(18), inputs=n, by_token=True) for n in (1, 2))
    assert [split.has_source for split in (one, two, PAIRS)] == [False, True, False]
    assert len(two) == 3 and two.first(2).labels.shape == (12,)
    with pytest.raises(ValueError, match="3 sequences"):
        Split.of(rows, np.zeros(18), inputs=3, by_token=True)
    with pytest.raises(ValueError, match="do not fit 17 labels of tokens"):
        Split.of(rows, np.zeros(17), inputs=2, by_token=True)


def test_parts_of_tokens_make_up_the_vocabulary():
    known = {"classes": 2, "length": 9, "inputs": 2}
    assert Dataset(PAIRS, PAIRS, PAIRS, vocabulary=50, parts=(5, 10), **known).parts == (5, 10)
    with pytest.raises(ValueError, match=r"\(5, 9\) make 45 tokens, the vocabulary has 50"):
        Dataset(PAIRS, PAIRS, PAIRS, vocabulary=50, parts=(5, 9), **known)
