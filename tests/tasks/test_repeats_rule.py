"""Rules of thumb on texts: the part they look at, what returns there, and the threshold."""

import numpy as np
import pytest

from lra.core.dataset import Split
from tasks.solvers.repeats_rule import HALVES, MIDDLE, THIRDS, _fit, _Returns, rules


def split(*texts, labels, inputs=1):
    rows = [np.frombuffer(text.encode(), np.uint8) + np.uint8(1) for text in texts]
    return Split.of(rows, labels, inputs)


def returning(text, unit, part):
    return _Returns(split(text, labels=[0])).count(unit, part).tolist()


@pytest.mark.parametrize(
    ("part", "number"),
    [
        ((0, 12), 4),  # a, b, c, d
        ((0, 6), 2),  # abaacb
        ((3, 6), 0),  # acbdef
        ((6, 6), 1),  # defdcg
        ((0, 4), 1),  # abaa: a counts once
        ((4, 4), 0),
    ],
)
def test_bytes_that_return_are_counted_once_each_within_a_part(part, number):
    assert returning("abaacbdefdcg", 0, part) == [number]


def test_pairs_of_bytes_return_within_a_text_and_not_over_its_end():
    assert returning("abxabyabzzzz", 1, (0, 12)) == [2]  # ab and zz
    two = _Returns(split("ab", "ab", labels=[0, 1]))
    assert two.count(1, (0, 12)).tolist() == [0, 0]
    assert _Returns(split("xa", "bc", "ab", labels=[0] * 3)).count(1, (0, 12)).sum() == 0


def test_two_texts_are_told_by_the_difference_of_their_counts():
    pairs = _Returns(split("aabb", "aabb", "aabb", "abcd", labels=[1, 0], inputs=2))
    assert pairs.count(0, (0, 12)).tolist() == [0, 2]


@pytest.mark.parametrize(
    ("counts", "labels", "expected"),
    [
        ([0, 1, 5, 6], [0, 0, 1, 1], (4, 1, True)),
        ([0, 1, 5, 6], [1, 1, 0, 0], (4, 1, False)),
        ([3, 3, 3], [1, 1, 0], (2, -1, True)),  # all alike: the commonest label
        ([3, 3, 3], [1, 0, 0], (2, 3, True)),
    ],
)
def test_a_threshold_is_the_one_with_which_most_rows_are_right(counts, labels, expected):
    assert _fit(np.array(counts), np.array(labels) == 1) == expected


def drawn(inside, rows=400):
    """Texts of 24 different letters; in those of label 1, letters `inside` the text return."""
    rng = np.random.default_rng(0)
    made, labels = [], []
    for _ in range(rows):
        letters = rng.permutation(60)[:24]
        label = int(rng.integers(2))
        if label:
            first, second = inside
            letters[second] = letters[first]
        made.append((letters + 40).astype(np.uint8))
        labels.append(label)
    return Split.of(made, labels)


@pytest.mark.parametrize(
    ("inside", "seen"),
    [
        ((8, 15), {"middle_half", "one_half", "one_third"}),
        ((6, 17), {"middle_half", "one_half"}),
        ((0, 7), {"one_half", "one_third"}),
        ((12, 23), {"one_half"}),
        ((0, 23), set()),
        ((3, 16), set()),
    ],
)
def test_each_rule_sees_what_returns_within_its_parts_alone(inside, seen):
    texts = drawn(inside)
    found = rules(texts.first(300), texts)
    assert {name for name, share in found.items() if share == 1.0} == seen
    assert all(share < 0.6 for name, share in found.items() if name not in seen)


def test_parts_are_halves_and_thirds_of_a_text():
    assert set(MIDDLE) < set(HALVES) and {length for _, length in HALVES} == {6}
    assert {length for _, length in THIRDS} == {4}
    assert max(first + length for first, length in (*HALVES, *THIRDS)) == 12
