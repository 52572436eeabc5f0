"""Majority and bag of tokens: what they can see, and that order is not of it; `test_trees` has the
trees."""

import numpy as np
import pytest

from lra.core.dataset import Dataset, Split
from lra.measure import baselines as module
from lra.measure.baselines import baselines


def data(make, rows=400, inputs=1, classes=2):
    """A data set whose splits `make(rng)` fills: one call gives the sequences and the label."""

    def split(seed):
        rng = np.random.default_rng(seed)
        rows_made = [make(rng) for _ in range(rows)]
        sequences = [np.array(s, dtype=np.uint8) for parts, _ in rows_made for s in parts]
        return Split.of(sequences, [label for _, label in rows_made], inputs=inputs)

    return Dataset(split(0), split(1), split(2), classes, 8, 8, inputs)


def test_majority_answers_the_most_frequent_training_class():
    def lopsided(rng):
        label = int(rng.random() < 0.8)
        return [[int(rng.integers(1, 8))] * 8], label

    made = data(lopsided)
    assert baselines(made)["majority"] == np.mean(made.test.labels == 1)


def test_bag_of_tokens_sees_counts():
    def counted(rng):
        tokens = rng.integers(1, 3, 8)
        return [tokens], int((tokens == 1).sum() > 4)

    assert baselines(data(counted))["bag_of_tokens"] > 0.97


def test_bag_of_tokens_never_sees_order():
    def ordered(rng):
        label = int(rng.integers(2))
        return [[1, 2, 3, 4] if label else [4, 3, 2, 1]], label

    assert baselines(data(ordered))["bag_of_tokens"] < 0.6


def test_bag_of_a_pair_sees_whether_counts_agree():
    def matched(rng):
        label = int(rng.integers(2))
        first = rng.integers(1, 3)
        second = first if label else 3 - first
        return [[first] * 6, [second] * 6], label

    assert baselines(data(matched, inputs=2))["bag_of_tokens"] == 1.0


def test_one_class_alone_and_tokens_that_never_vary_are_no_trouble():
    def constant(rng):
        return [[1, 2, 3]], 0

    assert baselines(data(constant)) == {"majority": 1.0, "bag_of_tokens": 1.0, "trees": 1.0}


@pytest.mark.parametrize("seed", [0, 1])
def test_the_same_data_gives_the_same_figures(seed):
    def noise(rng):
        return [rng.integers(1, 8, 6)], int(rng.integers(2))

    made = data(noise, rows=100 + seed)
    assert baselines(made) == baselines(made)


def test_the_bag_is_fitted_to_the_first_rows_only(monkeypatch):
    """The first rows say the opposite of the rest, which is far more."""

    def turning(rng):
        turning.made += 1
        token = int(rng.integers(1, 3))
        return [[token] * 6], token - 1 if turning.made > 40 else 2 - token

    turning.made = 0
    made = data(turning)
    assert baselines(made)["bag_of_tokens"] > 0.95
    monkeypatch.setattr(module, "FITTED_ROWS", 40)
    assert baselines(made)["bag_of_tokens"] < 0.05
