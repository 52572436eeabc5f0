"""Rows that stand in two splits: counted with their tokens, whatever their labels."""

import numpy as np

from lra.core.dataset import Split
from tasks.sources.repeats import Repeats


def split(*rows, inputs=1):
    sequences = [np.array(list(row.encode()), np.uint8) for row in rows]
    return Split.of(sequences, np.arange(len(rows) // inputs), inputs)


def test_every_row_that_stands_in_an_earlier_split_counts():
    repeats = Repeats()
    repeats.add("train", split("one", "two"))
    repeats.add("train", split("three"))
    repeats.add("validation", split("two", "four"))
    repeats.add("test", split("three", "three", "two", "five", "four"))
    assert repeats.found("train") == {}
    assert repeats.found("validation") == {"train": 1}
    assert repeats.found("test") == {"train": 3, "validation": 2}


def test_twice_in_one_split_is_no_repeat():
    repeats = Repeats()
    repeats.add("test", split("one", "one"))
    assert repeats.found("test") == {}


def test_a_pair_is_both_of_its_sequences_and_where_the_first_ends():
    repeats = Repeats()
    repeats.add("train", split("ab", "c", "x", "y", inputs=2))
    repeats.add("test", split("a", "bc", "ab", "c", "y", "x", inputs=2))
    assert repeats.found("test") == {"train": 1}
