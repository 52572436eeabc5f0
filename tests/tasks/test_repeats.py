"""Rows that stand in two splits: counted with their tokens, whatever their labels."""

import numpy as np

from lra.core.dataset import Split
from tasks.sources.checking import Repeats


def repeats(*splits, inputs=1):
    found = Repeats()
    for name, *rows in splits:
        sequences = [np.array(list(row.encode()), np.uint8) for row in rows]
        found.add(name, Split.of(sequences, np.arange(len(rows) // inputs), inputs))
    return found


def test_every_row_that_stands_in_an_earlier_split_counts():
    found = repeats(
        ("train", "one", "two"),
        ("train", "three"),
        ("validation", "two", "four"),
        ("test", "three", "three", "two", "five", "four", "six", "six"),
    )
    assert found.found("train") == {}
    assert found.found("validation") == {"train": 1}
    assert found.found("test") == {"train": 3, "validation": 2}


def test_a_pair_is_both_of_its_sequences_and_where_the_first_ends():
    test = ("test", "a", "bc", "ab", "c", "y", "x")
    assert repeats(("train", "ab", "c", "x", "y"), test, inputs=2).found("test") == {"train": 1}
