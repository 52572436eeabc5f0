"""What holds for every task of the catalogue, at the settings of the scale mini and few rows."""

import msgspec
import numpy as np
import pytest
from every_task import made, tried

from lra.core.cards import TaskCard
from lra.core.catalogue import find, load, names
from lra.core.dataset import UNASKED
from lra.core.protocol import Rows
from tasks.contract import Task, TaskConfig

ROWS = Rows(train=1100, validation=100, test=100)
"""More than generators draw at a time."""
A_CLASS = 20
"""Rows for each class at least: of equally frequent classes, e^-20 of them have none."""

TASKS = list(tried())


@pytest.fixture(scope="module")
def generated():
    """The task and its data by name, made once."""
    found = {}

    def of(name):
        if name not in found:
            task = made(name)
            found[name] = task, task.generated(rows_of(task))
        return found[name]

    return of


def rows_of(task):
    if task.card.asks == "token":
        return ROWS
    return msgspec.structs.replace(ROWS, train=max(ROWS.train, A_CLASS * task.classes))


def examples(split):
    """The bytes of each example, of a pair in either order."""
    sequences = [split.sequence(s).tobytes() for s in range(len(split) * split.inputs)]
    return [
        tuple(sorted(sequences[i : i + split.inputs]))
        for i in range(0, len(sequences), split.inputs)
    ]


def same(one, other):
    return all(
        mine.dtype == theirs.dtype and np.array_equal(mine, theirs)
        for mine, theirs in (
            (one.tokens, other.tokens),
            (one.starts, other.starts),
            (one.labels, other.labels),
        )
    )


def test_there_are_tasks():
    assert len(TASKS) >= 5


@pytest.mark.parametrize("name", names("task"))
def test_every_task_loads(name):
    kind = load(find("task", name))
    assert issubclass(kind, Task) and isinstance(kind.card, TaskCard)
    assert isinstance(kind.Config(), TaskConfig)
    for declared in (kind.card, kind.Config()):
        # What was written down is not checked until it is read: types, words and bounds.
        assert msgspec.convert(msgspec.to_builtins(declared), type(declared)) == declared


@pytest.mark.parametrize("name", TASKS)
def test_no_data_is_made_by_what_its_hash_leaves_out(name, generated, monkeypatch):
    def reached(*args):
        raise AssertionError("data must not depend on it")

    _, data = generated(name)
    task = made(name)
    for left_out in ("solve", "rules_of_thumb", "shown", "parts", "wanted", "cut", "joined"):
        monkeypatch.setattr(type(task), left_out, reached)
    assert same(data.test, task.generate("test", len(data.test)))


@pytest.mark.parametrize("name", TASKS)
def test_the_same_bytes_twice(name, generated):
    _, data = generated(name)
    assert all(same(split, made(name).generate(part, len(split))) for part, split in data)


@pytest.mark.parametrize("name", TASKS)
def test_more_rows_keep_the_earlier(name, generated):
    task, data = generated(name)
    for part, many in data:
        for rows in (1, 37):
            few = task.generate(part, rows)
            assert len(few) == rows
            assert np.array_equal(few.starts, many.starts[: rows * few.inputs + 1])
            assert np.array_equal(few.tokens, many.tokens[: len(few.tokens)])
            assert np.array_equal(few.labels, many.labels[: len(few.labels)])


@pytest.mark.parametrize("name", TASKS)
def test_no_example_stands_in_two_splits(name, generated):
    _, data = generated(name)
    train, validation, test = (set(examples(split)) for _, split in data)
    assert not train & validation and not train & test and not validation & test


@pytest.mark.parametrize("name", TASKS)
def test_tokens_labels_and_lengths_are_what_the_task_says(name, generated):
    task, data = generated(name)
    assert (data.classes, data.length) == (task.classes, task.length)
    assert (data.vocabulary, data.inputs) == (task.vocabulary, task.card.inputs)
    told = set()
    for part, split in data:
        assert len(split) == rows_of(task).of(part) and split.inputs == data.inputs
        assert split.tokens.min() >= 0 and split.tokens.max() < data.vocabulary
        assert split.lengths.min() >= 1 and split.lengths.max() <= data.length
        assert split.by_token == (task.card.asks == "token")
        told |= set(split.labels.tolist()) - {UNASKED}
    assert told <= set(range(data.classes))
    # A text need not hold every byte.
    assert len(told) == data.classes or task.card.metric == "bits_per_byte", (
        f"{name} has {data.classes} classes, and {sum(len(split) for _, split in data)} rows never "
        f"one of {sorted(set(range(data.classes)) - told)}"
    )


@pytest.mark.parametrize("name", TASKS)
def test_another_data_seed_makes_other_data(name, generated):
    _, data = generated(name)
    for part, split in data:
        other = made(name, data_seed=1).generate(part, 100)
        # Where few examples exist, some are in both.
        assert len(set(examples(other)) & set(examples(split)[:100])) < 20
        assert not np.array_equal(other.labels, split.labels[: len(other.labels)])


@pytest.mark.parametrize("name", TASKS)
def test_examples_are_shown_as_text_that_tells_them_apart(name, generated):
    task, data = generated(name)
    sequences = [data.test.sequence(s) for s in range(50)]
    shown = [task.shown(sequence) for sequence in sequences]
    assert all(isinstance(text, str) and text.strip() for text in shown)
    assert len(set(shown)) == len({sequence.tobytes() for sequence in sequences})


@pytest.mark.parametrize("name", TASKS)
def test_rules_of_thumb_are_shares_or_bits(name, generated):
    task, data = generated(name)
    most = 1 if task.card.metric == "accuracy" else 8
    rules = task.rules_of_thumb(data)
    assert all(
        name and isinstance(score, float) and 0 <= score <= most for name, score in rules.items()
    )
