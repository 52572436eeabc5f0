"""Retrieval's stand-in: pairs of poems that rhyme in the same way or not."""

import numpy as np
import pytest
from poem_reader import form, form_of, text, verses

from tasks.retrieval import Retrieval, RetrievalConfig


def generated(rows=1000, split="train", **config):
    return Retrieval(RetrievalConfig(**config), length=64).generate(split, rows)


def forms(split):
    """(rows, 2): the form of each poem, found by reading it."""
    return np.array([form(split.sequence(s)) for s in range(2 * len(split))]).reshape(-1, 2)


@pytest.mark.parametrize("split", ["train", "test"])
def test_label_is_whether_both_poems_have_the_same_form(split):
    made = generated(split=split)
    assert made.inputs == 2 and len(made.lengths) == 1000
    found = forms(made)
    assert np.array_equal(found[:, 0] == found[:, 1], made.labels == 1)


def test_test_pairs_are_balanced_so_that_neither_poem_alone_says_anything():
    made = generated(split="test", rows=4000)
    agree = (forms(made) == made.labels[:, None]).mean(axis=0)
    assert np.all(abs(agree - 0.5) < 0.03)
    assert abs(made.labels.mean() - 0.5) < 0.03


@pytest.mark.parametrize(("lean", "share"), [(90, 0.9), (50, 0.5)])
def test_training_pairs_that_belong_together_lean_to_one_form(lean, share):
    made = generated(rows=3000, lean_percent=lean)
    together, apart = (forms(made)[made.labels == label] for label in (1, 0))
    # `lean` percent are ABAB on purpose; the rest ABBA.
    assert abs(together.mean() - share) < 0.03
    assert np.all(apart.sum(axis=1) == 1) and abs(apart[:, 0].mean() - 0.5) < 0.05


def test_the_poems_of_a_pair_share_no_more_words_if_they_belong_together():
    made = generated(rows=2000)
    words = [set(np.concatenate(verses(made.sequence(s)))) for s in range(2 * len(made))]
    shared = np.array([len(words[s] & words[s + 1]) for s in range(0, len(words), 2)])
    by_label = [shared[made.labels == label].mean() for label in (0, 1)]
    assert abs(by_label[0] - by_label[1]) < 4 * shared.std() * np.sqrt(4 / len(made))


@pytest.mark.parametrize(("split", "share"), [("train", 0.9), ("test", 0.5)])
def test_of_poems_of_eight_verses_all_first_ones_lean(split, share):
    made = generated(rows=3000, split=split, both_ends=True)
    ends = [verses(made.sequence(s)) for s in range(2 * len(made))]
    found = np.array([form_of(lines[:2], lines[6:]) for lines in ends]).reshape(-1, 2)
    assert np.array_equal(found[:, 0] == found[:, 1], made.labels == 1)
    for label in (0, 1):
        assert abs(found[made.labels == label, 0].mean() - share) < 0.03
    task = Retrieval(RetrievalConfig(both_ends=True), length=64)
    assert np.array_equal(task.solve(made), made.labels)


def test_no_training_pair_has_the_words_of_a_test_pair():
    """From one stream a leaning pair would be another pair with the same words."""
    first = {
        split: {text(made.sequence(2 * row)).split("\n")[0] for row in range(len(made))}
        for split in ("train", "test")
        for made in [generated(rows=2000, split=split, both_ends=True)]
    }
    assert len(first["train"]) == len(first["test"]) == 2000
    assert not first["train"] & first["test"]
