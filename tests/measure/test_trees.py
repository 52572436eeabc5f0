"""Boosted trees on counts by segment: what they see of a sequence, and what not."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from lra.core.dataset import Dataset, Split
from lra.measure import trees as module
from lra.measure.trees import trees
from tasks.retrieval import Retrieval, RetrievalConfig
from tasks.text import Text, TextConfig

VOCABULARY = 20


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    monkeypatch.setattr(module, "TREES", 40)


def data(make, rows=1500, inputs=1, classes=2):
    """A data set whose splits `make(rng)` fills: one call gives the sequences and the label."""

    def split(seed):
        rng = np.random.default_rng(seed)
        made = [make(rng) for _ in range(rows)]
        sequences = [np.array(s, dtype=np.uint8) for parts, _ in made for s in parts]
        return Split.of(sequences, [label for _, label in made], inputs=inputs)

    return Dataset(split(0), split(1), split(2), classes, VOCABULARY, 40, inputs)


def in_the_last_quarter(rng):
    """More of token 1 than of token 2 in the last of four segments."""
    tokens = rng.integers(1, 3, int(rng.integers(28, 41)))
    last = tokens[-(len(tokens) // 4) :]
    return [tokens], int((last == 1).sum() > (last == 2).sum())


def at_one_place(rng):
    tokens = rng.integers(1, 9, 24)
    return [tokens], int(tokens[13] > 4)


def at_the_beginning(rng):
    tokens = rng.integers(1, 5, int(rng.integers(20, 40)))
    return [tokens], int(tokens[0]) - 1


def half_of_different_tokens(rng):
    """The first half repeats its tokens or does not; any token may."""
    label = int(rng.integers(2))
    letters = rng.permutation(np.arange(1, VOCABULARY))
    first = letters[:8] if label else np.tile(letters[:4], 2)
    return [[*rng.permutation(first), *rng.integers(1, VOCABULARY, 8)]], label


def shared_first_half(rng):
    label = int(rng.integers(2))
    letters = rng.permutation(np.arange(1, VOCABULARY))
    again = letters[:6] if label else letters[6:12]
    ends = rng.integers(1, VOCABULARY, (2, 6))
    return [[*letters[:6], *ends[0]], [*rng.permutation(again), *ends[1]]], label


def far_order(rng):
    """The parity of four places far apart: no count, no place and no three places say anything."""
    tokens = rng.integers(1, 3, 40)
    where = [3, 14, 25, 36]
    return [tokens], int(tokens[where].sum() % 2)


def equal_far_words(rng):
    """Whether a later part repeats the first in its order, or with neighbours changed."""
    label = int(rng.integers(2))
    first = rng.permutation(np.arange(1, 9))
    again = first if label else first.reshape(-1, 2)[:, ::-1].ravel()
    # At both lengths each pair of neighbours stands in one eighth.
    return [[*first, *([0] * 32), *again, *([0] * int(rng.choice([16, 19])))]], label


@pytest.mark.parametrize(
    ("make", "inputs", "classes", "least"),
    [
        (in_the_last_quarter, 1, 2, 0.9),
        (at_one_place, 1, 2, 1.0),
        (at_the_beginning, 1, 4, 1.0),
        (half_of_different_tokens, 1, 2, 1.0),
        (shared_first_half, 2, 2, 0.9),
    ],
)
def test_trees_see_what_is_local(make, inputs, classes, least):
    assert trees(data(make, inputs=inputs, classes=classes)) >= least


@pytest.mark.parametrize("make", [far_order, equal_far_words])
def test_trees_do_not_see_what_far_tokens_say_together(make):
    assert abs(trees(data(make)) - 0.5) < 0.08


@pytest.mark.parametrize(
    ("kind", "settings", "length"),
    [(Text, TextConfig, 128), (Retrieval, RetrievalConfig, 64)],
)
def test_trees_do_not_tell_poems_that_rhyme_at_both_ends(kind, settings, length):
    task = kind(settings(both_ends=True), length=length)
    rows = {"train": 3000, "validation": 10, "test": 1000}
    made = task.dataset({split: task.generate(split, number) for split, number in rows.items()})
    assert trees(made) < 0.75


def test_trees_tell_the_same_of_four_verses():
    task = Text(TextConfig(), length=128)
    rows = {"train": 3000, "validation": 10, "test": 600}
    assert trees(task.dataset({split: task.generate(split, n) for split, n in rows.items()})) > 0.95


def test_one_class_alone_is_no_trouble():
    made = data(lambda rng: ([rng.integers(1, 5, 8)], 0), rows=30)
    assert trees(made) == 1.0


def test_trees_are_fitted_to_the_first_rows_only(monkeypatch):
    def turning(rng):
        turning.made += 1
        token = int(rng.integers(1, 3))
        return [[token] * 6], token - 1 if turning.made > 60 else 2 - token

    turning.made = 0
    made = data(turning, rows=400)
    assert trees(made) > 0.95
    monkeypatch.setattr(module, "FITTED_ROWS", 60)
    assert trees(made) < 0.05


def test_a_long_picture_is_read_at_places_spread_over_it(monkeypatch):
    monkeypatch.setattr(module, "PLACES", 8)
    fixed = Split.of([np.zeros(24, np.uint8)] * 2, [0, 1])
    assert module._places(fixed, fixed).tolist() == [0, 3, 6, 9, 12, 15, 18, 21]
    varied = Split.of([np.zeros(24, np.uint8), np.zeros(9, np.uint8)], [0, 1])
    assert module._places(varied, varied).tolist() == list(range(16))


def test_the_same_figure_again_whatever_the_threads_outside():
    made = data(far_order, rows=600)
    with threadpool_limits(1):
        alone = trees(made)
    with threadpool_limits(2):
        assert trees(made) == alone
    assert 0.3 < alone < 0.7
