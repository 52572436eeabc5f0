"""Text's stand-in: poems whose form shows only in which words return where."""

import hashlib

import numpy as np
import pytest
from poem_reader import form, verses

from lra.core.errors import UsageError
from lra.core.protocol import Rows
from tasks.text import Text, TextConfig

PINNED = "1d01dc55ecc18fe3"


def generated(length=128, rows=400, split="train", **config):
    return Text(TextConfig(**config), length=length).generate(split, rows)


@pytest.mark.parametrize("length", [32, 61, 128, 200])
def test_label_is_what_a_reader_finds(length):
    split = generated(length)
    assert [form(split.sequence(row)) for row in range(len(split))] == split.labels.tolist()


def test_every_word_stands_twice_and_every_verse_holds_as_many():
    split = generated()
    for row in range(len(split)):
        lines = verses(split.sequence(row))
        assert len(lines) == 4 and len({len(line) for line in lines}) == 1
        _, counts = np.unique(list("".join(lines)), return_counts=True)
        assert set(counts) == {2}


def test_neither_half_alone_and_no_count_of_bytes_depends_on_the_form():
    """The two forms of one poem differ in verses 3 and 4 alone, and there in order alone."""
    split = generated(rows=4000)
    lengths = split.lengths[:, 0]
    for statistic in (lengths, np.array([len(verses(split.sequence(i))[3]) for i in range(4000)])):
        by_form = [statistic[split.labels == label] for label in (0, 1)]
        spread = statistic.std() * np.sqrt(1 / len(by_form[0]) + 1 / len(by_form[1]))
        assert abs(by_form[0].mean() - by_form[1].mean()) < 4 * spread


def test_some_words_go_astray_but_never_most():
    split = generated(rows=2000)
    shares = []
    for row in range(len(split)):
        first, _, third, fourth = map(set, verses(split.sequence(row)))
        home = third if split.labels[row] else fourth
        shares.append(len(first & home) / len(first))
    assert min(shares) > 0.5 and abs(np.mean(shares) - 0.9) < 0.01


@pytest.mark.parametrize("length", [32, 100, 1024, 4096])
def test_lengths_fill_and_never_pass_the_task_s(length):
    split = generated(length, rows=200)
    assert split.lengths.max() <= length and split.lengths.min() > length * 0.6
    assert abs(split.labels.mean() - 0.5) < 0.15


def test_too_short_a_length_is_refused():
    with pytest.raises(UsageError, match="use length 32 or more"):
        generated(31)


def test_no_poem_in_two_splits_and_more_rows_keep_the_earlier():
    task = Text(TextConfig(), length=64)
    data = task.generated(Rows(train=1000, validation=300, test=300))
    texts = [split.sequence(i).tobytes() for _, split in data for i in range(len(split))]
    assert len(set(texts)) == len(texts)
    few = task.generate("train", 10)
    assert np.array_equal(few.tokens, data.train.tokens[: len(few.tokens)])


def test_original_rules_validate_on_test():
    task = Text(TextConfig(), length=64, rules="lra2021")
    assert np.array_equal(task.generate("validation", 20).tokens, task.generate("test", 20).tokens)


def test_bytes_are_the_same_on_every_machine():
    """Pinned: a change here changes the data set, and so must be meant."""
    split = generated(rows=200)
    digest = hashlib.sha256(split.tokens.tobytes() + split.labels.tobytes()).hexdigest()
    assert digest[:16] == PINNED
