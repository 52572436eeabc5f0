"""Bigrams in context: chains of urns, least loss by place, counts of symbols, settings refused."""

import hashlib
import math
from itertools import pairwise

import numpy as np
import pytest
from every_task import made

from lra.core.errors import UsageError
from lra.core.protocol import Rows
from lra.measure.baselines_by_token import baselines_by_token
from tasks.bigrams import Bigrams, BigramsConfig
from tasks.generators.counter import row_keys


def bigrams(length=128, **settings):
    return Bigrams(BigramsConfig(**{"symbols": 8, **settings}), length=length)


def texts(split):
    """The symbols of each row and the one after them, (rows, length + 1)."""
    tokens = split.tokens.reshape(len(split), -1).astype(int) - 1
    return np.concatenate([tokens, split.labels.reshape(len(split), -1)[:, -1:]], axis=1)


@pytest.fixture(scope="module")
def data():
    return made("bigrams").generated(Rows(train=4000, validation=1, test=6000))


def test_each_symbol_asks_for_the_next(data):
    tokens = data.test.tokens.reshape(6000, -1).astype(int)
    labels = data.test.labels.reshape(6000, -1)
    assert np.array_equal(tokens[:, 1:] - 1, labels[:, :-1])
    assert set(np.unique(tokens)) == set(range(1, 9)) and set(np.unique(labels)) == set(range(8))


def test_losses_at_mini_are_those_of_the_specification(data):
    """1.514, 1.941 and 2.079 nat, each measured there on 1,000 rows."""
    task = made("bigrams")
    by_row = task.least_losses(data.test).mean(axis=1)
    both_samples = by_row.std() * (1 / 6000 + 1 / 1000) ** 0.5
    assert task.floor(data) == pytest.approx(by_row.mean())
    assert abs(by_row.mean() - 1.514) < 3 * both_samples < 0.04
    assert task.rules_of_thumb(data)["counts of symbols"] == pytest.approx(1.941, abs=0.03)
    simple = baselines_by_token(data, "nat")
    assert simple["majority"] == pytest.approx(math.log(8), abs=1e-3)
    assert simple["current_token"] == pytest.approx(2.067, abs=0.01)


def test_the_least_loss_is_that_of_the_counts_so_far(data):
    """Against counts by hand, without the urns that drew the rows."""
    losses = made("bigrams").least_losses(data.test)
    for text, lost in zip(texts(data.test)[:20], losses, strict=False):
        seen = np.full((8, 8), 0.3)
        for place, (one, after) in enumerate(pairwise(text)):
            assert lost[place] == pytest.approx(-math.log(seen[one, after] / seen[one].sum()))
            seen[one, after] += 1


def test_urns_draw_what_transitions_from_a_dirichlet_distribution_do():
    """Repeated symbols, and different ones of a row, against numpy's."""
    alpha, symbols, rows = 0.3, 4, 20_000
    # All candidates: rows so short repeat each other, and each is in one split alone.
    drawn = bigrams(40, symbols=symbols)._draw(row_keys(1, np.arange(rows)))
    tokens, labels = drawn.tokens_RIN[:, 0].astype(int) - 1, drawn.labels[:, 0].astype(int)
    ours = np.concatenate([tokens, labels[:, -1:]], axis=1)
    draws = np.random.default_rng(0)
    tables = draws.dirichlet([alpha] * symbols, (rows, symbols)).cumsum(axis=2)
    theirs = np.zeros_like(ours)
    theirs[:, 0] = draws.integers(0, symbols, rows)
    for place in range(1, ours.shape[1]):
        ends = tables[np.arange(rows), theirs[:, place - 1]]
        drawn = (ends < draws.random((rows, 1))).sum(axis=1)
        theirs[:, place] = drawn.clip(max=symbols - 1)
    repeats = [(text[:, 1:] == text[:, :-1]).mean(axis=1) for text in (ours, theirs)]
    kinds = [np.array([len(set(row)) for row in text]) for text in (ours, theirs)]
    for one, other in (repeats, kinds):
        error = (one.var() / len(one) + other.var() / len(other)) ** 0.5
        assert abs(one.mean() - other.mean()) < 4 * error
        assert one.std() == pytest.approx(other.std(), rel=0.03)


def test_the_least_loss_falls_with_the_place_from_a_guess_on(data):
    by_place = made("bigrams").least_losses(data.test).mean(axis=0)
    assert by_place[0] == pytest.approx(math.log(8))
    blocks = by_place.reshape(8, 16).mean(axis=1)
    assert (np.diff(blocks) < 0).all() and blocks[-1] < 1.4


@pytest.mark.parametrize("order", [2, 3, 4])
def test_longer_contexts_tell_more_and_take_longer_to_learn(order):
    task = bigrams(200, symbols=4, order=order)
    test = task.generate("test", 300)
    least = task.least_losses(test)
    # The first symbols of a row are guesses.
    assert least[:, : order - 2] == pytest.approx(math.log(4))
    assert least[:, order - 2] == pytest.approx(math.log(4))
    assert least[:, -40:].mean() < 1.0
    lower = bigrams(200, symbols=4, order=2)
    if order > 2:
        assert lower.least_losses(test)[:, -40:].mean() > least[:, -40:].mean() + 0.1


def test_alpha_says_how_sure_the_next_symbol_is():
    def least(alpha_percent):
        task = bigrams(alpha_percent=alpha_percent)
        return task.least_losses(task.generate("test", 300)).mean()

    found = [least(alpha_percent) for alpha_percent in (5, 30, 10_000)]
    assert found == sorted(found)
    assert found[0] < 0.8 and found[-1] == pytest.approx(math.log(8), abs=0.01)


def test_bytes_are_the_same_on_every_machine():
    made = bigrams().generate("train", 200)
    content = b"".join(array.tobytes() for array in (made.tokens, made.starts, made.labels))
    assert hashlib.sha256(content).hexdigest()[:16] == "8dacbacd68c9a43c"


def test_classes_and_vocabulary_follow_the_settings():
    task = bigrams(symbols=5)
    assert (task.classes, task.vocabulary) == (5, 6)
    assert task.shown(np.array([1, 5, 3])) == "0 4 2"


@pytest.mark.parametrize(("symbols", "order"), [(65, 2), (17, 3), (9, 4)])
def test_more_n_grams_than_fit_are_refused(symbols, order):
    with pytest.raises(UsageError, match=f"{symbols**order} n-grams, more than 4096; lower"):
        bigrams(symbols=symbols, order=order)
