"""Needle: what is asked, needles at every depth of their parts, figures of rules, settings
refused."""

from collections import Counter
from itertools import combinations, pairwise

import numpy as np
import pytest

from lra.core.dataset import UNASKED
from lra.core.errors import UsageError
from lra.core.protocol import Rows
from tasks.needle import Needle, NeedleConfig


def needle(length=64, **settings):
    given = {"needles": 4, "keys": 20, "values": 7, **settings}
    return Needle(NeedleConfig(**given), length=length)


def rows_of(task, rows):
    """Haystacks, queries and the labels of these, (rows, tokens)."""
    split = task.generate("train", rows)
    tokens, labels = (part.reshape(rows, -1) for part in (split.tokens.astype(int), split.labels))
    assert tokens.shape == (rows, task.length)
    haystack, asked = np.split(tokens, [-task.queries], axis=1)
    assert (labels[:, : -task.queries] == UNASKED).all()
    return haystack, asked, labels[:, -task.queries :]


def places_of(haystack, needles, keys=20):
    """Where each row's keys stand, in order, (rows, needles)."""
    return np.nonzero(haystack <= keys)[1].reshape(len(haystack), needles)


@pytest.mark.parametrize(
    ("length", "needles", "asked"),
    [(64, 4, None), (12, 4, None), (13, 4, 3), (50, 5, 1), (3, 1, None), (1000, 20, None)],
)
def test_each_query_is_the_key_of_a_needle_and_asks_for_its_value(length, needles, asked):
    rows = 200
    haystacks, queries, labels = rows_of(needle(length, needles=needles, asked=asked), rows)
    assert queries.shape == labels.shape == (rows, asked or needles)
    for haystack, wanted, answers in zip(haystacks, queries, labels, strict=True):
        places = np.flatnonzero(haystack <= 20)
        known = dict(zip(haystack[places], haystack[places + 1], strict=True))
        assert len(known) == needles
        assert min(known.values()) > 20 and haystack.max() <= 27
        assert len(set(wanted)) == len(wanted)
        assert [known[key] - 21 for key in wanted] == answers.tolist()
    assert set(queries.ravel()) == set(range(1, 21))
    assert set(labels.ravel()) == set(range(7))


@pytest.mark.parametrize(
    ("length", "begins"),
    [(12, [0, 2, 4, 6, 8]), (44, [0, 10, 20, 30, 40]), (46, [0, 10, 21, 31, 42])],
)
def test_a_needle_lies_anywhere_in_its_own_part_of_the_haystack(length, begins):
    rows, needles = 6000, 4
    task = needle(length)
    assert task.strata.tolist() == begins
    places = places_of(rows_of(task, rows)[0], needles)
    for number, (begin, end) in enumerate(pairwise(begins)):
        found = np.bincount(places[:, number] - begin, minlength=end - begin - 1)
        assert len(found) == end - begin - 1
        # Six standard deviations of a count at most.
        assert abs(found - rows / len(found)).max() < 6 * (rows / len(found)) ** 0.5


def test_keys_depths_and_the_order_of_queries_tell_nothing_of_each_other():
    rows = 6000
    # Two parts of four tokens: three places each.
    task = needle(10, needles=2, keys=3, values=20)
    haystack, queries, _ = rows_of(task, rows)
    places = places_of(haystack, 2, keys=3)
    keys = np.take_along_axis(haystack, places, axis=1)
    order = (queries[:, :1] == keys).argmax(axis=1)
    rows_of_each = (list(map(tuple, part.tolist())) for part in (keys, places))
    found = [*rows_of_each, order.tolist()]
    assert [len(set(part)) for part in found] == [6, 9, 2]
    for one, other in combinations(found, 2):
        counts = Counter(zip(one, other, strict=True))
        cells = len(set(one)) * len(set(other))
        assert len(counts) == cells
        # Six standard deviations of a cell's count at most.
        assert all(abs(n - rows / cells) < 6 * (rows / cells) ** 0.5 for n in counts.values())


def test_any_needle_may_be_the_only_one_asked_for():
    rows = 4000
    haystack, queries, _ = rows_of(needle(asked=1), rows)
    keys = np.take_along_axis(haystack, places_of(haystack, 4), axis=1)
    counts = np.bincount((keys == queries).argmax(axis=1), minlength=4)
    # Six standard deviations of a count at most.
    assert abs(counts - rows / 4).max() < 6 * (rows / 4) ** 0.5


def test_no_value_is_told_by_the_one_before_it_or_by_its_place():
    rows = 4000
    haystack, _, labels = rows_of(needle(values=4), rows)
    share, error = 1 / 4, (1 / 4 * 3 / 4 / rows) ** 0.5
    assert abs((labels[:, 1:] == labels[:, :-1]).mean() - share) < 6 * error
    # A part of 15 tokens has 14 places: there a fixed place has the one of four that is asked for.
    right = (haystack[:, :, None] - 21 == labels[:, None]).mean(axis=(0, 2))
    assert right.max() < share + 1 / 4 / 14 + 6 * error


def test_rules_of_thumb_are_far_from_the_solver():
    task = needle(128, needles=4, keys=32, values=32)
    found = task.rules_of_thumb(task.generated(Rows(train=1, validation=1, test=4000)))
    # Four values of 32: one of them is right for its own query, and twins are few.
    assert found["a value of the needles"] == pytest.approx(0.294, abs=0.015)
    assert found["a value of the haystack"] < 0.1


def test_classes_and_vocabulary_follow_the_settings():
    task = needle(3, needles=1, keys=10, values=5)
    assert (task.classes, task.vocabulary, task.queries) == (5, 16, 1)
    assert task.shown(np.array([1, 11, 10, 15])) == "k0 0 k9 4"


@pytest.mark.parametrize(
    ("length", "settings", "says"),
    [
        (64, {"needles": 21}, "21 needles need as many keys, there are 20; raise keys"),
        (64, {"asked": 5}, "5 keys are asked for, there are 4 needles; lower asked"),
        (11, {}, "4 needles and 4 queries take 12 tokens, the length is 11; lower needles"),
        (8, {"asked": 1}, "4 needles and 1 queries take 9 tokens"),
    ],
)
def test_needles_that_do_not_fit_are_refused(length, settings, says):
    with pytest.raises(UsageError, match=says):
        needle(length, **settings)
