"""Text's stand-in: poems whose form shows only in which words return where."""

import numpy as np
import pytest
from poem_reader import form, form_of, text, verses

from lra.core.errors import UsageError
from tasks.generators.counter import row_keys, stream_key
from tasks.generators.verses import ABAB, ABBA, Poetics, poems
from tasks.text import Text, TextConfig


def generated(length=128, rows=400, **config):
    return Text(TextConfig(**config), length=length).generate("train", rows)


@pytest.mark.parametrize(
    ("length", "letters"), [(32, 1), (61, 1), (128, 1), (255, 1), (256, 2), (1000, 2)]
)
def test_label_is_what_a_reader_finds_and_every_word_stands_twice(length, letters):
    split = generated(length, rows=200)
    for row, label in enumerate(split.labels):
        lines = verses(split.sequence(row), letters)
        assert form(split.sequence(row), letters) == label
        # Every verse holds as many.
        assert len(lines) == 4 and len({len(line) for line in lines}) == 1
        _, counts = np.unique(np.concatenate(lines), return_counts=True)
        assert set(counts) == {2}


@pytest.mark.parametrize(("length", "letters"), [(64, 1), (128, 1), (256, 2)])
def test_the_two_forms_of_a_poem_differ_in_which_words_return_where_alone(length, letters):
    """Made from the same keys: no half alone, no count of bytes and no layout tells the form."""
    keys = row_keys(stream_key("test", length), np.arange(300))
    size = Poetics.of("text", length, 10)
    abba, abab = (zip(*poems(keys, np.full(300, f), size), strict=True) for f in (ABBA, ABAB))
    for pair in zip(abba, abab, strict=True):
        one, other = (tokens[kept] for tokens, kept in pair)
        assert not np.array_equal(one, other)
        assert (form(one, letters), form(other, letters)) == (ABBA, ABAB)
        assert text(one).split("\n")[:2] == text(other).split("\n")[:2]
        # Spaces and newlines stand in the same places, so verses are as long and hold as many.
        layout, layout_of_other = (
            ["x" if c.strip() else c for c in text(poem)] for poem in (one, other)
        )
        assert layout == layout_of_other
        later, later_of_other = (
            sorted(verse[2] + verse[3]) for verse in (verses(one, letters), verses(other, letters))
        )
        assert later == later_of_other


@pytest.mark.parametrize(("length", "letters"), [(64, 1), (128, 1), (512, 2)])
def test_no_half_of_a_poem_of_eight_verses_has_words_of_both_ends(length, letters):
    split = generated(length, rows=300, both_ends=True)
    shared = []
    for row, label in enumerate(split.labels):
        poem = text(split.sequence(row))
        lines = verses(split.sequence(row), letters)
        assert len(lines) == 8 and len({len(line) for line in lines}) == 1
        assert form_of(lines[:2], lines[6:]) == label
        # Two verses of the middle hold all words of both ends, and so does each part with words of
        # both ends.
        ends, middle = sorted(lines[0] + lines[1]), lines[2:6]
        assert sorted(middle[0] + middle[1]) == sorted(middle[2] + middle[3]) == ends
        assert sorted(lines[6] + lines[7]) == ends and len(set(ends)) == len(ends)
        assert sum(len(line) + 1 for line in poem.split("\n")[2:6]) >= len(poem) / 2
        shared.append([len({*end} & {*middle[0]}) for end in (lines[0], lines[6])])
    # Which words stand in which verse of the middle says nothing.
    one, other = (np.array(shared)[split.labels == label].mean(axis=0) for label in (0, 1))
    assert np.all(abs(one - other) < 4 * np.std(shared, axis=0) * np.sqrt(4 / len(split)))


def test_the_forms_of_eight_verses_differ_in_the_last_two_alone():
    keys = row_keys(stream_key("test", "eight"), np.arange(200))
    size = Poetics.of("text", 128, 10, both_ends=True)
    abba, abab = (zip(*poems(keys, np.full(200, f), size), strict=True) for f in (ABBA, ABAB))
    for pair in zip(abba, abab, strict=True):
        one, other = (text(tokens[kept]).split("\n") for tokens, kept in pair)
        assert one[:6] == other[:6] and one[6:] != other[6:]
        assert sorted("".join(one[6:])) == sorted("".join(other[6:]))


def test_a_poem_that_rhymes_at_both_ends_needs_eight_bytes_a_verse():
    with pytest.raises(UsageError, match="length 64"):
        generated(63, both_ends=True)


def test_some_words_go_astray_but_never_most():
    split = generated(rows=2000)
    shares = []
    for row, label in enumerate(split.labels):
        first, _, third, fourth = map(set, verses(split.sequence(row)))
        shares.append(len(first & (third if label else fourth)) / len(first))
    assert min(shares) > 0.5 and abs(np.mean(shares) - 0.9) < 0.01


@pytest.mark.parametrize("length", [32, 100, 1024, 4096])
def test_lengths_fill_and_never_pass_the_task_s(length):
    split = generated(length, rows=200)
    assert split.lengths.max() <= length and split.lengths.min() > length * 0.6
    assert abs(split.labels.mean() - 0.5) < 0.15


def test_too_short_a_length_is_refused():
    with pytest.raises(UsageError, match="length 32"):
        generated(31)


def test_original_rules_validate_on_test():
    task = Text(TextConfig(), length=64, rules="lra2021")
    assert np.array_equal(task.generate("validation", 20).tokens, task.generate("test", 20).tokens)
