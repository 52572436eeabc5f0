"""Rows that stand twice: counted with their tokens; and tokens that have two labels."""

import numpy as np

from lra.core.dataset import Split
from tasks.sources.repeats import Repeats


def repeats(*splits, inputs=1, labels=None):
    """The counts of rows, all of one label or of those given, and the clashes met."""
    found, clashes = Repeats(), []
    for name, *rows in splits:
        sequences = [np.array(list(row.encode()), np.uint8) for row in rows]
        given = labels[name] if labels else [0] * (len(rows) // inputs)
        clashes += found.add(name, Split.of(sequences, given, inputs))
    return found, [(split, bytes(tokens.astype(np.uint8)), both) for split, tokens, both in clashes]


def test_every_row_that_stands_in_an_earlier_split_counts():
    found, clashes = repeats(
        ("train", "one", "two"),
        ("train", "three"),
        ("validation", "two", "four"),
        ("test", "three", "three", "two", "five", "four", "six", "six"),
    )
    assert found.elsewhere("train") == {}
    assert found.elsewhere("validation") == {"train": 1}
    assert found.elsewhere("test") == {"train": 3, "validation": 2}
    assert clashes == []


def test_every_row_that_stands_earlier_in_its_split_counts():
    found, _ = repeats(("train", "a", "b", "a"), ("train", "c", "a"), ("test", "a", "d"))
    assert [found.within(name) for name in ("train", "validation", "test")] == [2, 0, 0]


def test_a_pair_is_both_of_its_sequences_and_where_the_first_ends():
    test = ("test", "a", "bc", "ab", "c", "y", "x")
    found, _ = repeats(("train", "ab", "c", "x", "y"), test, inputs=2)
    assert found.elsewhere("test") == {"train": 1}


def test_tokens_with_two_labels_are_told_once_where_the_second_stands():
    rows = ("a", "b", "a", "a")
    _, clashes = repeats(
        ("train", *rows),
        ("test", "b", "c", "a", "c"),
        labels={"train": [1, 0, 1, 0], "test": [1, 2, 2, 2]},
    )
    assert clashes == [("train", b"a", (1, 0)), ("test", b"b", (0, 1))]


def test_a_text_whose_tokens_have_labels_has_no_label_of_its_own():
    found = Repeats()
    tokens = [np.array([1, 2]), np.array([1, 2])]
    clashes = found.add("train", Split.of(tokens, [1, 2, 1, 3], by_token=True))
    assert list(clashes) == [] and found.within("train") == 1
