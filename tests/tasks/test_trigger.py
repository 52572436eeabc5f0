"""Trigger: the symbol after it, its place, figures of rules, settings refused."""

import numpy as np
import pytest
from every_task import made

from lra.core.dataset import UNASKED
from lra.core.errors import UsageError
from lra.core.protocol import Rows
from tasks.trigger import Trigger, TriggerConfig

TRIGGER, FIRST = 1, 2


def rows_of(task, rows):
    """Tokens and labels, (rows, length)."""
    split = task.generate("train", rows)
    return split.tokens.reshape(rows, -1).astype(int), split.labels.reshape(rows, -1)


@pytest.mark.parametrize("length", [3, 4, 64, 300])
def test_the_last_token_asks_for_the_symbol_after_the_first_trigger(length):
    tokens, labels = rows_of(Trigger(TriggerConfig(symbols=20), length=length), 400)
    assert tokens.shape == (400, length)
    assert ((tokens == TRIGGER).sum(axis=1) == 2).all() and (tokens[:, -1] == TRIGGER).all()
    first = (tokens == TRIGGER).argmax(axis=1)
    assert np.array_equal(labels[:, -1], tokens[np.arange(400), first + 1] - FIRST)
    assert (labels[:, :-1] == UNASKED).all()
    # Of 20 rows of three tokens some belong to other splits.
    assert length == 3 or set(labels[:, -1]) == set(range(20))


def test_the_trigger_stands_anywhere_and_tells_nothing_of_the_answer():
    rows, length, symbols = 6000, 8, 3
    tokens, labels = rows_of(Trigger(TriggerConfig(symbols=symbols), length=length), rows)
    first = (tokens == TRIGGER).argmax(axis=1)
    counts = np.zeros((length - 2, symbols))
    np.add.at(counts, (first, labels[:, -1]), 1)
    # Six standard deviations of a count at most.
    assert abs(counts - rows / counts.size).max() < 6 * (rows / counts.size) ** 0.5


def test_rules_of_thumb_at_mini_are_little_better_than_chance():
    task = made("trigger")
    found = task.rules_of_thumb(task.generated(Rows(train=4000, validation=1, test=4000)))
    assert found["a symbol of the row"] == pytest.approx(0.133, abs=0.025)
    assert found["a fixed place"] == pytest.approx(1 / 62 + 61 / 62 / 16, abs=0.02)


def test_a_row_of_three_has_its_answer_at_a_fixed_place():
    task = Trigger(TriggerConfig(symbols=500), length=3)
    data = task.generated(Rows(train=50, validation=1, test=50))
    assert task.rules_of_thumb(data) == {"a symbol of the row": 1.0, "a fixed place": 1.0}


def test_classes_and_vocabulary_follow_the_settings():
    task = Trigger(TriggerConfig(symbols=5), length=8)
    assert (task.classes, task.vocabulary) == (5, 7)
    assert task.shown(np.array([FIRST + 4, TRIGGER, FIRST])) == "4 ! 0"


def test_a_length_without_room_is_refused():
    with pytest.raises(UsageError, match="take 3 tokens, the length is 2; use a longer length"):
        Trigger(TriggerConfig(), length=2)
