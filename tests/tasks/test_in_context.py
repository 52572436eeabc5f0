"""Functions in context: prompts, best possible accuracy by demonstrations, no leak of answers."""

import numpy as np
import pytest
from every_task import made

from lra.core.dataset import UNASKED
from lra.core.errors import UsageError
from lra.core.protocol import Rows
from tasks.in_context import InContext, InContextConfig

BY_DEMONSTRATIONS = (0.194, 0.687, 0.973, 0.998, 1.0)
"""Best possible accuracy after 0 ... 4 demonstrations under a blank, of one pool of 16 functions of
16 symbols, by another program."""


def in_context(length=18, **settings):
    return InContext(InContextConfig(**settings), length=length)


def labels_of(split):
    """Labels of the arguments, (rows, arguments)."""
    return split.labels.reshape(len(split), -1)[:, 1::2]


class HeldOut(InContext):
    """Rows of functions that are not in the pool of the predictor."""

    def generate(self, split, rows):
        other = InContext(self.config, length=self.length)
        other.__dict__["pool"] = self.drawn_functions("held out")
        return other.generate(split, rows)


@pytest.mark.parametrize(
    "settings", [{}, {"demonstrations": 0}, {"functions": 3, "symbols": 5, "demonstrations": 4}]
)
def test_each_argument_asks_for_its_value_before_it_is_shown(settings):
    task = in_context(**settings)
    split = task.generate("train", 300)
    asked = task.asked
    assert (split.lengths == task.row_length).all()
    prompts, labels = task.prompts(split), labels_of(split)
    assert prompts.values_ED.shape == (300, asked.demonstrations)
    assert np.array_equal(prompts.values_ED, labels[:, :-1])
    assert all(len(set(row)) == asked.demonstrations + 1 for row in prompts.arguments_EA)
    assert (np.delete(split.labels.reshape(300, -1), np.s_[1::2], axis=1) == UNASKED).all()
    fits = (task.pool[:, prompts.arguments_EA] == labels).all(axis=2)
    assert fits.any(axis=0).all()
    named = prompts.named_E >= 0
    assert fits[prompts.named_E[named], np.flatnonzero(named)].all()
    # Six standard deviations of a share of 300 rows.
    assert abs(named.mean() - 0.5) < 6 * 0.5 / 300**0.5


def test_the_best_possible_accuracy_by_demonstrations():
    pools = 24
    found = np.zeros((pools, 9))
    for seed in range(pools):
        task = made("in_context", data_seed=seed)
        split = task.generate("test", 1000)
        named = task.prompts(split).named_E >= 0
        best = task.best_accuracies(split)
        assert (best[named] == 1.0).all()
        found[seed] = best[~named].mean(axis=0)
    # Each figure is of one pool: two standard deviations between pools, and its rounding.
    spread = found.std(axis=0, ddof=1)[:5]
    assert spread.max() < 0.025
    assert (abs(found.mean(axis=0)[:5] - BY_DEMONSTRATIONS) < 2 * spread + 0.0006).all()
    assert (np.diff(found.mean(axis=0)) >= 0).all(), "more demonstrations never tell less"


def test_the_best_answers_are_right_as_often_as_is_expected():
    task = made("in_context")
    data = task.generated(Rows(train=1, validation=1, test=4000))
    right = task.best_answers(data.test) == labels_of(data.test)
    expected = task.best_accuracies(data.test)
    assert task.floor(data) == pytest.approx(expected.mean())
    assert task.floor(data) == pytest.approx(0.936, abs=0.005)
    error = np.sqrt((expected * (1 - expected)).sum(axis=0)) / len(right)
    assert (abs(right.mean(axis=0) - expected.mean(axis=0)) <= 4 * error).all()


def test_a_function_outside_of_the_pool_is_known_to_nobody():
    """A leak of answers into the tokens up to a question would show as more than a guess."""
    task = HeldOut(InContextConfig(), length=18)
    split = task.generate("test", 4000)
    labels = labels_of(split)
    blank = task.prompts(split).named_E < 0
    right = task.best_answers(split) == labels
    # A pair that fits by chance narrows the pool to functions that say nothing of this one.
    assert right[blank].mean() == pytest.approx(1 / 16, abs=0.015)
    # Within a row no value tells another: neither the one before nor the commonest so far.
    assert (labels[:, 1:] == labels[:, :-1]).mean() == pytest.approx(1 / 16, abs=0.015)
    assert task.best_accuracies(split)[blank][:, -1].mean() == pytest.approx(1 / 16, abs=0.01)


def test_rules_of_thumb_at_mini():
    task = made("in_context")
    found = task.rules_of_thumb(task.generated(Rows(train=1, validation=1, test=4000)))
    # Named rows are known, blank ones as after no demonstration.
    assert found["the name alone"] == pytest.approx((1 + 0.19) / 2, abs=0.02)
    assert found["a value shown"] < 0.1


def test_without_demonstrations_the_name_is_all_there_is():
    task = in_context(length=2, demonstrations=0)
    data = task.generated(Rows(train=1, validation=1, test=100))
    name = task.rules_of_thumb(data)["the name alone"]
    assert name == (task.best_answers(data.test) == labels_of(data.test)).mean() > 0.4


def test_splits_share_the_pool_and_another_data_seed_has_its_own():
    one, same, other = in_context(), in_context(), in_context(data_seed=1)
    assert np.array_equal(one.pool, same.pool)
    assert (one.pool == other.pool).mean() < 0.2
    assert not np.array_equal(one.pool, one.drawn_functions("held out"))


def test_classes_and_vocabulary_follow_the_settings():
    task = in_context(functions=3, symbols=5, demonstrations=2)
    assert (task.classes, task.vocabulary, task.row_length) == (5, 10, 6)
    assert task.shown(np.array([1, 5, 6, 7, 8, 9])) == "_ 0:1 2:3 4"
    assert task.shown(np.array([4, 5])) == "f2 0"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"demonstrations": 16}, "need 17 symbols, there are 16; raise"),
        ({"demonstrations": 9}, "9 demonstrations take 20 tokens, the length is 18; lower"),
    ],
)
def test_demonstrations_that_do_not_fit_are_refused(settings, says):
    with pytest.raises(UsageError, match=says):
        in_context(**settings)
