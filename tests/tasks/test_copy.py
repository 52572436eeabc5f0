"""Copy and reverse: what is written of which source, rows of any length, rules, settings."""

import numpy as np
import pytest
from every_task import made

from lra.core.errors import UsageError
from lra.core.protocol import Rows
from tasks.copy import Copy, CopyConfig
from tasks.reverse import Reverse

KINDS = {Copy: lambda symbols: symbols, Reverse: lambda symbols: symbols[::-1]}


def task_of(kind, length=12, **settings):
    return kind(CopyConfig(**{"symbols": 20, **settings}), length=length)


def rows_of(split):
    """Source, given tokens and labels of each row."""
    for row in range(len(split)):
        at = split.starts[2 * row + 1], split.starts[2 * row + 2]
        yield split.sequence(2 * row), split.sequence(2 * row + 1), split.labels[slice(*at)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [1, 2, 12, 301])
def test_all_symbols_are_written_in_their_order(kind, length):
    split = task_of(kind, length).generate("train", 200)
    assert (split.lengths == length).all()
    for source, given, labels in rows_of(split):
        assert np.array_equal(labels, KINDS[kind](source.astype(int) - 1))
        assert given[0] == 21 and source.min() >= 1 and source.max() <= 20
    symbols, counts = np.unique(np.concatenate([s for s, *_ in rows_of(split)]), return_counts=True)
    # Some of the twenty rows of one token belong to other splits.
    assert length == 1 or len(symbols) == 20
    # Six standard deviations of a count at most.
    mean = 200 * length / 20
    assert length < 12 or abs(counts - mean).max() < 6 * mean**0.5


@pytest.mark.parametrize("kind", KINDS)
def test_ragged_rows_have_any_number_of_symbols_and_an_end(kind):
    split = task_of(kind, 6, ragged=True).generate("train", 3000)
    numbers = []
    for source, given, labels in rows_of(split):
        assert source[-1] == 21 and labels[-1] == 20 and given[0] == 22
        assert source[:-1].max() <= 20
        assert np.array_equal(labels[:-1], KINDS[kind](source[:-1].astype(int) - 1))
        numbers.append(len(source) - 1)
    found, counts = np.unique(numbers, return_counts=True)
    assert found.tolist() == [1, 2, 3, 4, 5]
    # Twenty rows of one symbol are there, some of them in other splits.
    assert abs(counts[1:] - 600).max() < 6 * 600**0.5 and counts[0] > 200


def test_both_tasks_have_sources_of_their_own():
    one, other = (task_of(kind).generate("train", 100) for kind in KINDS)
    assert not np.array_equal(one.tokens, other.tokens)


@pytest.mark.parametrize("name", ["copy", "reverse"])
def test_the_rule_of_thumb_at_mini_is_far_from_the_solver(name):
    task = made(name)
    found = task.rules_of_thumb(task.generated(Rows(train=1, validation=1, test=1000)))
    # Twelve symbols of sixteen: the commonest stands there two or three times.
    assert found == {"a symbol of the source": pytest.approx(0.222, abs=0.01)}


def test_classes_and_vocabulary_follow_the_settings():
    plain, ragged = (task_of(Copy, symbols=5, ragged=ragged) for ragged in (False, True))
    assert [(task.classes, task.vocabulary) for task in (plain, ragged)] == [(5, 7), (6, 8)]
    assert plain.shown(np.array([6, 1, 5])) == "^ 0 4"
    assert ragged.shown(np.array([7, 1, 5, 6])) == "^ 0 4 ."


def test_an_end_needs_a_place():
    with pytest.raises(UsageError, match=r"reverse: .* the length is 1; .*leave ragged out$"):
        task_of(Reverse, 1, ragged=True)
    assert task_of(Reverse, 1).most == 1
