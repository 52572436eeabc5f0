"""Recall: the queries of an example, the pairs that they are asked of, and settings refused."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from lra.core.dataset import UNASKED
from lra.core.errors import UsageError
from lra.core.protocol import Rows
from tasks.recall import Recall, RecallConfig


def recall(length=64, **settings):
    return Recall(RecallConfig(**settings), length=length)


def examples(task, rows):
    """Tokens, labels, and where something is asked, of each example."""
    split = task.generate("train", rows)
    tokens, labels = (part.reshape(rows, -1) for part in (split.tokens.astype(int), split.labels))
    for row in range(rows):
        yield tokens[row], labels[row], np.flatnonzero(labels[row] != UNASKED)


@pytest.mark.parametrize(("pairs", "gap", "length"), [(8, 0, 64), (1, 0, 3), (5, 30, 45)])
def test_every_key_is_asked_once_for_its_own_value(pairs, gap, length):
    task = recall(length, pairs=pairs, gap=gap, keys=20, values=7)
    for tokens, labels, asked in examples(task, 200):
        keys, values = tokens[0 : 2 * pairs : 2] - 1, tokens[1 : 2 * pairs : 2] - 21
        assert len(set(keys)) == pairs and keys.max() < 20
        assert values.min() >= 0 and values.max() < 7
        assert len(asked) == pairs and asked.min() >= 2 * pairs + gap
        known = dict(zip(keys, values, strict=True))
        assert dict(zip(tokens[asked] - 1, labels[asked], strict=True)) == known
        assert (np.delete(tokens, [*range(2 * pairs), *asked]) >= 21).all()


def test_queries_stand_anywhere_after_the_gap_in_any_order():
    places, orders = set(), set()
    for tokens, _, asked in examples(recall(40, pairs=4, gap=8), 500):
        places |= set(asked.tolist())
        orders.add(tuple(tokens[:8:2].tolist().index(key) for key in tokens[asked]))
    assert places == set(range(16, 40))
    assert len(orders) == 24


def test_keys_places_and_the_order_of_queries_tell_nothing_of_each_other():
    rows, found = 3600, []
    for tokens, _, asked in examples(recall(10, pairs=3, keys=3), rows):
        keys = tokens[:6:2].tolist()
        order = [keys.index(key) for key in tokens[asked]]
        found.append((tuple(keys), tuple(asked.tolist()), tuple(order)))
    for one, other in combinations(zip(*found, strict=True), 2):
        counts = Counter(zip(one, other, strict=True))
        cells = len(set(one)) * len(set(other))
        # Six standard deviations of a cell's count at most.
        assert len(counts) == cells
        assert all(abs(n - rows / cells) < 6 * (rows / cells) ** 0.5 for n in counts.values())


def test_the_rule_of_thumb_is_little_better_than_one_of_the_pairs():
    task = recall(pairs=4)
    (share,) = task.rules_of_thumb(task.generated(Rows(train=1, validation=1, test=500))).values()
    assert 0.25 <= share < 0.32


def test_shown_tells_keys_from_values():
    task = recall(3, pairs=1, keys=10, values=5)
    assert task.shown(np.array([1, 11, 10, 15])) == "k0 0 k9 4"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"pairs": 65}, "65 pairs need as many keys, there are 64"),
        ({"pairs": 22}, "take 66 tokens, the length is 64"),
        ({"pairs": 8, "gap": 41}, "take 65 tokens"),
    ],
)
def test_pairs_that_do_not_fit_are_refused(settings, says):
    with pytest.raises(UsageError, match=says):
        recall(**settings)
