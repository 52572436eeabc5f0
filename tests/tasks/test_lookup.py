"""Lookup: pairs and queries, joined and apart, the figure of its rule, settings refused."""

import numpy as np
import pytest
from every_task import made

from lra.core.errors import UsageError
from lra.core.protocol import Rows
from tasks.lookup import Lookup, LookupConfig


def lookup(length=12, **settings):
    given = {"queries": 6, "keys": 40, "values": 9, **settings}
    return Lookup(LookupConfig(**given), length=length)


def rows_of(task, rows):
    """Source, queries and labels of each row; a token as its two parts, (value, key)."""
    split = task.generate("train", rows)
    values, keys = task.token_parts
    assert values * keys == task.vocabulary
    parts = np.stack([split.tokens % values, split.tokens // values], axis=1).astype(int)
    source, *_ = split.lengths[0]
    width = split.lengths[0].sum()
    rows_EN2 = parts.reshape(rows, width, 2)
    labels_EN = split.labels.reshape(rows, width)
    return rows_EN2[:, :source], rows_EN2[:, source:], labels_EN[:, source:]


@pytest.mark.parametrize(("length", "queries"), [(12, 6), (1, 1), (30, 30)])
def test_a_query_is_a_key_of_the_source_and_asks_for_its_value(length, queries):
    source, asked, labels = rows_of(lookup(length, queries=queries), 400)
    assert source.shape == (400, length, 2) and asked.shape == (400, queries, 2)
    assert (source > 0).all() and (asked[..., 0] == 0).all()
    for pairs, wanted, answers in zip(source, asked, labels, strict=True):
        known = {key: value for value, key in pairs}
        assert len(known) == length
        keys = wanted[:, 1].tolist()
        assert len(set(keys)) == queries
        assert [known[key] - 1 for key in keys] == answers.tolist()
    assert set(source[..., 1].ravel()) == set(range(1, 41))
    assert set(labels.ravel()) == set(range(9))


@pytest.mark.parametrize("length", [12, 13])
def test_apart_a_value_stands_behind_its_key(length):
    source, asked, labels = rows_of(lookup(length, apart=True), 200)
    assert source.shape == (200, 12, 2) and asked.shape == (200, 6, 2)
    keys, values = source[:, 0::2], source[:, 1::2]
    assert (keys[..., 0] == 0).all() and (values[..., 1] == 0).all()
    for row in range(200):
        known = dict(zip(keys[row, :, 1], values[row, :, 0], strict=True))
        assert [known[key] - 1 for key in asked[row, :, 1]] == labels[row].tolist()


def test_where_a_pair_stands_says_nothing_of_where_it_is_asked_for():
    source, asked, _ = rows_of(lookup(4, queries=1), 4000)
    places = (source[..., 1] == asked[..., 1]).argmax(axis=1)
    # Six standard deviations of a count at most.
    assert abs(np.bincount(places, minlength=4) - 1000).max() < 6 * 1000**0.5


def test_the_rule_of_thumb_at_mini_is_far_from_the_solver():
    task = made("lookup")
    found = task.rules_of_thumb(task.generated(Rows(train=1, validation=1, test=1000)))
    # Twelve values of 32: the commonest stands there twice in most rows.
    assert found == {"a value of the pairs": pytest.approx(0.168, abs=0.02)}


def test_many_pairs_of_key_and_value_take_wider_tokens():
    small, large = lookup(), lookup(values=300, keys=300)
    assert large.vocabulary == 301**2
    assert small.generate("test", 3).tokens.dtype == np.uint16
    assert large.generate("test", 3).tokens.dtype == np.int32


def test_tokens_are_shown_by_their_parts():
    task = lookup()
    assert task.shown(np.array([10 * 3 + 5, 10 * 3, 5])) == "k2:4 k2 4"


def test_what_does_not_fit_is_refused():
    with pytest.raises(UsageError, match="41 pairs need as many keys, there are 40; raise keys"):
        lookup(41)
    with pytest.raises(UsageError, match=r"6 queries need as many pairs, .* 10 has 5; lower"):
        lookup(10, apart=True)
