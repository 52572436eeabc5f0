"""Query span: made meetings, where their topics lie and what is said of them; figures of rules."""

import numpy as np
import pytest

from lra.core.errors import UsageError
from lra.core.protocol import Rows
from tasks.generators.counter import row_keys, stream_key
from tasks.generators.meetings import MeetingSize, _topics
from tasks.query_span import QuerySpan, QuerySpanConfig

SIZES = [(128, 16, 1), (201, 3, 1), (600, 8, 1), (1000, 5, 3), (2500, 16, 4)]
"""Length, parts and letters of a word."""


def query_span(length, parts=8, letters=1):
    return QuerySpan(QuerySpanConfig(parts=parts, letters=letters), length=length)


def rows_of(task, rows):
    """The words of the query, the turns as (speaker, words), and the label of each row."""
    split = task.generate("train", rows)
    for row in range(rows):
        tokens = split.sequence(row)
        (place,) = np.flatnonzero(tokens == 257)
        query, meeting = (
            bytes((half - 1).astype(np.uint8)).decode()
            for half in (tokens[:place], tokens[place + 1 :])
        )
        assert meeting.endswith("\n")
        turns = [line.split(": ") for line in meeting.split("\n")[:-1]]
        yield query.split(), [(who, said.split()) for who, said in turns], int(split.labels[row])


@pytest.mark.parametrize(("length", "parts", "letters"), SIZES)
def test_the_label_is_the_part_with_the_middle_of_the_turns_on_the_topic(length, parts, letters):
    task = query_span(length, parts, letters)
    size = MeetingSize.of(length, parts, letters)
    keys = row_keys(stream_key("query_span", 0, "train"), np.arange(200))
    for topics, (query, turns, label) in zip(_topics(keys, size), rows_of(task, 200), strict=True):
        assert len(set(query)) == 2 and {len(word) for word in query} == {letters}
        assert len(turns) == len(topics) == size.turns
        (on_topic,) = np.nonzero(topics == label)
        # In a row, and its middle in the part: in halves of a turn, for whole numbers.
        assert np.array_equal(on_topic, np.arange(on_topic[0], on_topic[-1] + 1))
        assert (on_topic[0] + on_topic[-1] + 1) * parts // (2 * len(turns)) == label
        both = [place for place, (_, said) in enumerate(turns) if {*query} <= {*said}]
        assert both and set(both) <= set(on_topic)
        # Each word is said on another topic too.
        for word in query:
            assert any(word in said for place, (_, said) in enumerate(turns)
                       if place not in on_topic)  # fmt: skip


def test_topics_have_two_words_and_words_two_topics_that_are_asked_about_by_both():
    """Two that share a word with a topic follow each other, but for a topic at the ends."""
    checked = 0
    size = MeetingSize.of(1000, 7, 2)
    keys = row_keys(stream_key("query_span", 0, "train"), np.arange(100))
    for topics, (query, turns, label) in zip(
        _topics(keys, size), rows_of(query_span(1000, 7, 2), 100), strict=True
    ):
        said = [{word for t in np.flatnonzero(topics == topic) for word in turns[t][1]}
                for topic in range(7)]  # fmt: skip
        common = {word for word in set.union(*said) if sum(word in of for of in said) > 2}
        own = [of - common for of in said]
        # A common word that is rare may be taken for one of a topic.
        if any(len(of) != 2 for of in own):
            continue
        checked += 1
        assert own[label] == {*query} and len({frozenset(of) for of in own}) == 7
        sharing = [[other for other, of in enumerate(own) if len(of & mine) == 1] for mine in own]
        assert all(len(others) == 2 for others in sharing)
        assert sum(later - earlier > 1 for earlier, later in sharing) == 1
    assert checked > 20


def test_parts_are_asked_for_equally_often_and_turns_are_alike_in_length():
    rows = list(rows_of(query_span(600), 4000))
    labels = np.array([label for *_, label in rows])
    # Six standard deviations of a count at most.
    assert abs(np.bincount(labels, minlength=8) - 500).max() < 6 * 500**0.5
    assert {who for _, turns, _ in rows[:50] for who, _ in turns} == {"1", "2", "3", "4"}
    assert len({len(said) for _, turns, _ in rows for _, said in turns}) == 1


@pytest.mark.parametrize(("length", "parts", "letters"), SIZES)
def test_the_rule_is_right_everywhere(length, parts, letters):
    task = query_span(length, parts, letters)
    split = task.generate("test", 300)
    assert np.array_equal(task.solve(split), split.labels)


def test_bm25_at_many_turns_a_part_is_better_than_chance_and_not_right_everywhere():
    task = query_span(4096, 16, 2)
    found = task.rules_of_thumb(task.generated(Rows(train=1, validation=1, test=300)))
    assert set(found) == {"BM25"} and 0.3 < found["BM25"] < 0.95


def test_stretches_of_rows_are_those_of_the_whole():
    task = query_span(5000)
    whole = task.generate("validation", 900)
    parts = [task.generate_part("validation", first, 300) for first in (0, 300, 600)]
    assert np.array_equal(np.concatenate([part.tokens for part in parts]), whole.tokens)
    assert np.array_equal(np.concatenate([part.labels for part in parts]), whole.labels)


def test_query_and_meeting_are_shown_apart():
    tokens = np.array([*(byte + 1 for byte in b"a b"), 257, *(byte + 1 for byte in b"1: a\n")])
    assert query_span(600).shown(tokens) == r"'a b' '1: a\n'"


def test_what_does_not_fit_is_refused():
    with pytest.raises(UsageError, match="115 tokens are too few for 16 parts; use length 116"):
        query_span(115, 16).generate("train", 1)
    assert len(query_span(116, 16).generate("train", 1)) == 1
    with pytest.raises(UsageError, match="26 parts need more words than the 26 of one letter"):
        query_span(2000, 26).generate("train", 1)
