"""Baselines of tasks that ask for each token, against counts made by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lra.core.dataset import UNASKED, Dataset, Split
from lra.measure.baselines_by_token import baselines_by_token

VOCABULARY, CLASSES = 4, 3


def split(*asked: tuple[int, int]) -> Split:
    """One example of these (token, label)."""
    tokens, labels = zip(*asked, strict=True)
    return Split.of([np.array(tokens, dtype=np.uint8)], labels, by_token=True)


def scores(train: Split, test: Split, metric: str) -> dict[str, float]:
    # The validation split says the opposite, and has no say.
    other = split(*[(token, 2) for token in range(VOCABULARY)] * 20)
    return baselines_by_token(
        Dataset(train, other, test, CLASSES, VOCABULARY, len(test.tokens)), metric
    )


# Token 1: label 0 twice, 1 once. Token 2: label 1 four times. Together: 1 five times, 0 twice.
TRAIN = split((1, 0), (1, 0), (1, 1), (2, 1), (2, 1), (2, 1), (2, 1))


def test_each_answers_the_most_frequent_training_label() -> None:
    test = split((1, 0), (1, 0), (1, 0), (1, 1), (2, 1), (2, 1), (2, 0), (2, 2))
    assert scores(TRAIN, test, "accuracy") == {"majority": 3 / 8, "current_token": 5 / 8}


def test_bits_are_of_training_counts_each_plus_one() -> None:
    shares = [(2 + 1) / (3 + CLASSES), (0 + 1) / (4 + CLASSES), 1 / CLASSES]
    test = split((1, 0), (2, 2), (3, 1))
    found = scores(TRAIN, test, "bits_per_byte")
    assert found["current_token"] == pytest.approx(-sum(map(math.log2, shares)) / 3)
    # One is added to the count of each label, and not for each token.
    of_labels = [(2 + 1) / (7 + CLASSES), (0 + 1) / (7 + CLASSES), (5 + 1) / (7 + CLASSES)]
    assert found["majority"] == pytest.approx(-sum(map(math.log2, of_labels)) / 3)


def test_nat_are_bits_times_the_logarithm_of_two() -> None:
    test = split((1, 0), (2, 2), (3, 1))
    bits, nat = (scores(TRAIN, test, metric) for metric in ("bits_per_byte", "nat"))
    assert nat == pytest.approx({name: value * math.log(2) for name, value in bits.items()})


def test_bits_of_the_majority_are_the_entropy_of_what_many_tokens_say() -> None:
    # Half, a quarter, a quarter: a bit and a half, where the plus ones are lost among many.
    many = split(*[(token, label) for token in range(VOCABULARY) for label in (0, 1, 0, 2)] * 500)
    assert scores(many, many, "bits_per_byte")["majority"] == pytest.approx(1.5, rel=1e-3)


def test_a_label_that_training_never_had_costs_many_bits_and_not_all_there_are() -> None:
    found = scores(TRAIN, split((1, 2), (3, 2)), "bits_per_byte")
    assert all(math.log2(CLASSES) < bits < 10 for bits in found.values())


@pytest.mark.parametrize("metric", ["accuracy", "bits_per_byte", "nat"])
def test_tokens_that_nothing_is_asked_of_count_for_nothing(metric: str) -> None:
    test = split((1, 0), (2, 1), (2, 2))
    unasked = [(token, UNASKED) for token in range(VOCABULARY)] * 3
    among = [
        split(*zip(part.tokens.tolist(), part.labels.tolist(), strict=True), *unasked)
        for part in (TRAIN, test)
    ]
    assert scores(*among, metric) == scores(TRAIN, test, metric)
