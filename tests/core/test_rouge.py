"""ROUGE against values worked by hand, Lin's own example among them."""

from itertools import combinations

import numpy as np
import pytest

from lra.core.rouge import longest_common, rouge


def ids(text, known):
    return np.array([known.setdefault(word, len(known)) for word in text.split()], dtype=np.uint8)


def scores(written, reference):
    known: dict[str, int] = {}
    return tuple(rouge(ids(written, known), ids(reference, known)))


@pytest.mark.parametrize(
    ("written", "reference", "one", "two", "longest"),
    [
        # Lin 2004, section 3: by pairs both are alike, by order they are not.
        ("police kill the gunman", "police killed the gunman", 3 / 4, 1 / 3, 3 / 4),
        ("the gunman kill police", "police killed the gunman", 3 / 4, 1 / 3, 2 / 4),
        # Precision 5/7 and recall 5/6; pairs the-cat, on-the: 2/6 and 2/5.
        ("the cat lay on the old mat", "the cat sat on the mat", 10 / 13, 4 / 11, 10 / 13),
        # A word counts as often as both have it.
        ("the the the the", "the cat the", 4 / 7, 0, 4 / 7),
        ("a b c", "a b c", 1, 1, 1),
        ("a b", "c d", 0, 0, 0),
        # A single word has no pairs.
        ("a", "a", 1, 0, 1),
        ("", "a b", 0, 0, 0),
        ("", "", 0, 0, 0),
    ],
)
def test_worked_values(written, reference, one, two, longest):
    assert scores(written, reference) == pytest.approx((one, two, longest))
    assert scores(reference, written) == pytest.approx((one, two, longest))


def is_within(part, whole):
    """Whether a sequence is left of another where some of it is left out."""
    rest = iter(whole)
    return all(token in rest for token in part)


def test_the_longest_common_subsequence_is_the_longest_there_is():
    draws = np.random.default_rng(0)
    for _ in range(60):
        one, other = (draws.integers(0, 3, draws.integers(0, 8)) for _ in range(2))
        parts = (
            size
            for size in range(len(one) + 1)
            for part in combinations(one.tolist(), size)
            if is_within(part, other.tolist())
        )
        assert longest_common(one, other) == max(parts)
