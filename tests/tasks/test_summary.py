"""Summary: sentences and topics, ragged or not, figures of its rules, settings refused."""

import numpy as np
import pytest
from every_task import made

from lra.core.errors import UsageError
from lra.core.protocol import Rows
from tasks.summary import Summary, SummaryConfig


def summary(length=24, **settings):
    given = {"sentence_words": 4, "words": 9, "topics": 11, **settings}
    return Summary(SummaryConfig(**given), length=length)


def rows_of(task, rows):
    """Source and given tokens as (word, topic), 0 for none, and labels of each row."""
    split = task.generate("train", rows)
    words, topics = task.token_parts
    assert words * topics == task.vocabulary
    for row in range(rows):
        source, given = (split.sequence(2 * row + side).astype(int) for side in (0, 1))
        labels = split.labels[split.starts[2 * row + 1] : split.starts[2 * row + 2]]
        yield (
            [(t % words, t // words) for t in source],
            [(t % words, t // words) for t in given],
            (labels.tolist()),
        )


def sentences(source):
    """Words by topic, in the order of the source."""
    found: dict[int, list[int]] = {}
    for word, topic in source:
        found.setdefault(topic, []).append(word)
    return found


@pytest.mark.parametrize("length", [24, 27, 8])
def test_the_sentence_on_the_topic_is_written(length):
    places = []
    for source, given, labels in rows_of(summary(length), 300):
        told = sentences(source)
        assert len(told) == length // 4 and all(len(words) == 4 for words in told.values())
        assert [topic for _, topic in source] == [topic for topic in told for _ in range(4)]
        (no_word, topic), *others = given
        assert no_word == 0 and [word - 1 for word in told[topic]] == labels
        assert others == [(label + 1, 0) for label in labels[:-1]]
        places.append([*told].index(topic))
    number = length // 4
    # Six standard deviations of a count at most: each sentence is asked for as often.
    mean = 300 / number
    assert abs(np.bincount(places, minlength=number) - mean).max() < 6 * mean**0.5


def test_ragged_sentences_have_any_number_of_words_and_an_end():
    numbers = []
    for source, given, labels in rows_of(summary(25, ragged=True), 2000):
        told = sentences(source)
        assert len(told) == 5
        for words in told.values():
            assert words[-1] == 10 and 10 not in words[:-1] and len(words) >= 2
        assert labels[-1] == 9 and [word - 1 for word in told[given[0][1]]] == labels
        numbers.append(len(labels) - 1)
    found, counts = np.unique(numbers, return_counts=True)
    assert found.tolist() == [1, 2, 3, 4]
    assert abs(counts - 500).max() < 6 * 500**0.5


def test_all_words_and_topics_occur():
    rows = list(rows_of(summary(), 300))
    assert {word for source, *_ in rows for word, _ in source} == set(range(1, 10))
    assert {topic for source, *_ in rows for _, topic in source} == set(range(1, 12))


def test_rules_of_thumb_at_mini_are_far_from_the_solver():
    task = made("summary")
    data = task.generated(Rows(train=1, validation=1, test=1000))
    # One sentence of six is the right one, another is right in a word of sixteen.
    chance = 1 / 6 + 5 / 6 / 16
    assert task.rules_of_thumb(data) == {
        "a random sentence": pytest.approx(chance, abs=0.04),
        "the first sentence": pytest.approx(chance, abs=0.04),
    }
    overlap = task.overlap_of_a_random_sentence(data.test)
    assert overlap.one > overlap.longest > overlap.two > 1 / 6 - 0.04
    assert overlap.one == pytest.approx(0.34, abs=0.04)


def test_where_lengths_differ_the_longest_sentence_is_a_rule_too():
    task = summary(50, ragged=True)
    data = task.generated(Rows(train=1, validation=1, test=500))
    found = task.rules_of_thumb(data)
    assert set(found) == {"a random sentence", "the first sentence", "the longest sentence"}
    assert all(0.1 < score < 0.5 for score in found.values())
    # An end that both have is no word in common.
    assert task.overlap_of_a_random_sentence(data.test).one < 0.5


def test_a_rule_that_knows_the_sentence_would_be_right_everywhere(monkeypatch):
    task = summary(ragged=True)
    data = task.generated(Rows(train=1, validation=1, test=200))
    answers = []
    for row in range(200):
        source, given = (data.test.sequence(2 * row + side).astype(np.int64) for side in (0, 1))
        topics = source // task.token_parts[0]
        answers.append(source[topics == given[0] // task.token_parts[0]] % task.token_parts[0] - 1)
    monkeypatch.setattr(task, "_drawn_sentences", lambda split: answers)
    assert task.rules_of_thumb(data)["a random sentence"] == 1.0
    # Sentences of one word have no pairs.
    overlap = task.overlap_of_a_random_sentence(data.test)
    assert overlap.one == overlap.longest == 1.0 > overlap.two > 0.5


def test_tokens_are_shown_by_their_parts():
    task = summary(ragged=True)
    assert task.shown(np.array([11 * 3, 11 * 3 + 5, 11 * 3 + 10, 5])) == "t2 t2:4 t2:. 4"


def test_what_does_not_fit_is_refused():
    with pytest.raises(UsageError, match="two sentences take 10 tokens, the length is 9; lower"):
        summary(9, ragged=True)
    with pytest.raises(UsageError, match="12 sentences need as many topics, there are 11; raise"):
        summary(48)
