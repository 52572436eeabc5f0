"""Selective copy: symbols and their queries, figures of rules, the control, settings refused."""

import numpy as np
import pytest
from every_task import made

from lra.core.dataset import UNASKED
from lra.core.errors import UsageError
from lra.core.protocol import Rows
from tasks.selective_copy import SelectiveCopy, SelectiveCopyConfig

NOISE, QUERY, FIRST = 1, 2, 3


def selective_copy(length=56, **settings):
    return SelectiveCopy(SelectiveCopyConfig(**{"items": 8, **settings}), length=length)


def rows_of(task, rows):
    """Tokens and labels, (rows, length)."""
    split = task.generate("train", rows)
    return split.tokens.reshape(rows, -1).astype(int), split.labels.reshape(rows, -1)


@pytest.mark.parametrize(("items", "length"), [(8, 56), (1, 2), (5, 10), (3, 100)])
def test_each_query_asks_for_the_next_symbol(items, length):
    tokens, labels = rows_of(selective_copy(length, items=items, symbols=20), 300)
    before, queries = tokens[:, :-items], tokens[:, -items:]
    assert (queries == QUERY).all() and (labels[:, :-items] == UNASKED).all()
    for row, asked in zip(before, labels[:, -items:], strict=True):
        assert np.array_equal(row[row != NOISE] - FIRST, asked)
    # Of 20 rows of two tokens some belong to other splits.
    assert length == 2 or set(labels[:, -items:].ravel()) == set(range(20))


def test_symbols_stand_anywhere_and_tell_nothing_of_their_places():
    rows = 4000
    tokens, labels = rows_of(selective_copy(12, items=2, symbols=100), rows)
    places = np.nonzero(tokens[:, :10] != NOISE)[1].reshape(rows, 2)
    pairs, counts = np.unique(places, axis=0, return_counts=True)
    assert len(pairs) == 45
    # Six standard deviations of a count at most.
    assert abs(counts - rows / 45).max() < 6 * (rows / 45) ** 0.5
    early = places[:, 0] < np.median(places[:, 0])
    means = [labels[early, -2].mean(), labels[~early, -2].mean()]
    # Uniform draws below 100 have a standard deviation of 28.9.
    assert abs(means[0] - means[1]) < 6 * 28.9 * (1 / early.sum() + 1 / (~early).sum()) ** 0.5


def test_rules_of_thumb_at_mini_are_far_from_the_solver():
    task = made("selective_copy")
    found = task.rules_of_thumb(task.generated(Rows(train=4000, validation=1, test=1000)))
    # Eight symbols of sixteen: the commonest stands there twice or three times.
    assert found["a symbol of the row"] == pytest.approx(0.253, abs=0.015)
    assert found["a fixed place"] == pytest.approx(0.305, abs=0.02)


def test_where_nothing_is_scattered_a_fixed_place_solves_it():
    task = selective_copy(scattered=False)
    tokens, _ = rows_of(task, 100)
    assert (tokens[:, :8] >= FIRST).all() and (tokens[:, 8:48] == NOISE).all()
    found = task.rules_of_thumb(task.generated(Rows(train=100, validation=1, test=100)))
    assert found["a fixed place"] == 1.0 and found["a symbol of the row"] < 0.4


def test_classes_and_vocabulary_follow_the_settings():
    task = selective_copy(symbols=5)
    assert (task.classes, task.vocabulary, task.slots) == (5, 8, 48)
    assert task.shown(np.array([NOISE, FIRST, FIRST + 4, QUERY])) == ". 0 4 ?"


def test_items_that_do_not_fit_are_refused():
    with pytest.raises(UsageError, match=r"take 58 tokens, the length is 56; .*longer length$"):
        selective_copy(items=29)
