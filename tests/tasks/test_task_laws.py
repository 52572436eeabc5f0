"""Laws of every task of the catalogue, at the settings of the scale mini and few rows."""

import msgspec
import numpy as np
import pytest
from every_task import examples, made, tried
from set_reader import same

from lra.core.cards import TaskCard
from lra.core.catalogue import find, names
from lra.core.dataset import UNASKED
from lra.core.loading import load
from lra.core.protocol import Rows
from tasks.contract import Task, TaskConfig

ROWS = Rows(train=1100, validation=100, test=100)
"""More than generators draw at a time."""
A_CLASS = 20
"""Rows for each class at least: of equally frequent classes, e^-20 of them have none."""

TASKS = list(tried())


@pytest.fixture(scope="module", params=TASKS)
def task(request):
    return made(request.param)


@pytest.fixture(scope="module")
def data(task):
    """The task's data, made once."""
    return task.generated(rows_of(task))


def rows_of(task):
    if task.card.asks != "example":
        return ROWS
    return msgspec.structs.replace(ROWS, train=max(ROWS.train, A_CLASS * task.classes))


def test_there_are_tasks():
    assert len(TASKS) >= 5


@pytest.mark.parametrize("name", names("task"))
def test_every_task_loads(name):
    kind = load(find("task", name))
    assert issubclass(kind, Task) and isinstance(kind.card, TaskCard)
    assert isinstance(kind.Config(), TaskConfig)
    for declared in (kind.card, kind.Config()):
        # A literal is not checked until it is read: types, words and bounds.
        assert msgspec.convert(msgspec.to_builtins(declared), type(declared)) == declared


def test_the_same_bytes_again_without_the_methods_that_the_hash_leaves_out(task, data, monkeypatch):
    def reached(*args):
        raise AssertionError("data must not depend on it")

    again = made(task.name)
    for left_out in ("solve", "rules_of_thumb", "shown", "parts", "wanted", "cut", "joined"):
        monkeypatch.setattr(type(again), left_out, reached)
    assert all(same(split, again.generate(part, len(split))) for part, split in data)


@pytest.mark.parametrize("rows", [1, 37])
def test_more_rows_keep_the_earlier(task, data, rows):
    for part, many in data:
        few = task.generate(part, rows)
        assert len(few) == rows
        assert np.array_equal(few.starts, many.starts[: rows * few.inputs + 1])
        assert np.array_equal(few.tokens, many.tokens[: len(few.tokens)])
        assert np.array_equal(few.labels, many.labels[: len(few.labels)])


def test_no_example_stands_in_two_splits(data):
    found = [set(examples(split)) for _, split in data]
    assert sum(map(len, found)) == len(set.union(*found))


def test_tokens_labels_and_lengths_are_what_the_task_says(task, data):
    assert (data.classes, data.length) == (task.classes, task.length)
    assert (data.vocabulary, data.inputs) == (task.vocabulary, task.card.inputs)
    assert data.parts == task.token_parts
    found = set()
    for part, split in data:
        assert len(split) == rows_of(task).of(part) and split.inputs == data.inputs
        assert split.tokens.min() >= 0 and split.tokens.max() < data.vocabulary
        assert split.lengths.min() >= 1 and split.lengths.max() <= data.length
        assert split.by_token == (task.card.asks != "example")
        found |= set(split.labels.tolist()) - {UNASKED}
    every = set(range(data.classes))
    assert found <= every
    # A text need not hold every byte.
    assert found == every or task.card.metric == "bits_per_byte", (
        f"{task.name} has {data.classes} classes, and {sum(len(split) for _, split in data)} rows "
        f"never one of {sorted(every - found)}"
    )


def test_another_data_seed_makes_other_data(task, data):
    for part, split in data:
        other = made(task.name, data_seed=1).generate(part, 100)
        # Where few examples exist, some are in both.
        assert len(set(examples(other)) & set(examples(split)[:100])) < 20
        assert not np.array_equal(other.labels, split.labels[: len(other.labels)])


def test_examples_are_shown_as_text_that_tells_them_apart(task, data):
    sequences = [data.test.sequence(s) for s in range(50)]
    shown = [task.shown(sequence) for sequence in sequences]
    assert all(isinstance(text, str) and text.strip() for text in shown)
    assert len(set(shown)) == len({sequence.tobytes() for sequence in sequences})


def test_rules_of_thumb_are_shares_or_bits(task, data):
    most = 1 if task.card.metric == "accuracy" else 8
    for name, score in task.rules_of_thumb(data).items():
        assert name and isinstance(score, float) and 0 <= score <= most


def test_sources_are_asked_nothing_and_all_else_is(task, data):
    if task.card.asks not in ("sequence", "query"):
        pytest.skip("it has no sources")
    for _, split in data:
        for row in range(len(split)):
            source, given = labels_of(split, row)
            assert (source == UNASKED).all() and (given != UNASKED).all()


def test_an_answer_is_what_is_given_next(task, data):
    if task.card.asks != "sequence":
        pytest.skip("its answers are not given")
    for _, split in data:
        for row in range(len(split)):
            given, (_, labels) = split.sequence(2 * row + 1), labels_of(split, row)
            assert np.array_equal(given[1:], labels[:-1] + 1)
            # A start is no symbol.
            assert given[0] > task.classes


def labels_of(split, row):
    """The labels of the two sequences of a row."""
    return [split.labels[split.starts[s] : split.starts[s + 1]] for s in (2 * row, 2 * row + 1)]
