"""Summary: write one of several sentences, the one on the topic that is asked for.

A summary for a query, in symbols: each word of the source carries its sentence's topic, the answer
begins with a topic, and the words of its sentence follow in their order. Sentences are alike, so
that neither the first nor any other place is worth reading by itself. Made here from a seed; after
the meetings and queries of QMSum, Zhong et al., NAACL 2021 (arXiv 2104.05938).

R rows, S sentences, W words of a sentence and its end, N tokens
"""

from __future__ import annotations

from typing import Annotated, cast

import msgspec
import numpy as np
import numpy.typing as npt

from lra.core.cards import TaskCard
from lra.core.dataset import UNASKED, Dataset, Split, SplitName
from lra.core.errors import UsageError
from lra.core.protocol import Rules
from lra.core.rouge import Rouge, rouge
from tasks.contract import Task, TaskConfig
from tasks.generators.counter import U64, below, row_keys, shuffled, stream_key
from tasks.generators.disjoint import Drawn, disjoint_split

_WORDS, _TOPICS, _ASKED, _NUMBERS = (number << 24 for number in range(4))
"""Where in an example's stream each kind of draw begins."""

Ints = npt.NDArray[np.int64]


class SummaryConfig(TaskConfig, frozen=True):
    """How long sentences are; the length says how many there are."""

    sentence_words: Annotated[int, msgspec.Meta(ge=1)] = 16
    """Words of a sentence, or at most so many."""
    words: Annotated[int, msgspec.Meta(ge=2, le=32_000)] = 128
    """Different words there are; those of a sentence may be equal."""
    topics: Annotated[int, msgspec.Meta(ge=2, le=32_000)] = 128
    """Different topics there are; those of an example's sentences differ."""
    ragged: bool = False
    """Whether sentences have any number of words from one on, and an end after them; else all are
    equally long, without an end."""


class Summary(Task):
    """The second sequence is a topic and what was written so far; the label of each of its tokens
    is the number of the next word.

    `length` is the source's in tokens: as many sentences as fit, an end counted where there is one.
    A token has two parts, of which one may be missing: 1 + its word, and 1 + its topic. The end is
    a word after all others.
    """

    card = TaskCard(
        title="Summary",
        source="a summary for a query, as in QMSum, Zhong et al. 2021 (arXiv 2104.05938)",
        classes=128,
        vocabulary=129 * 129,
        inputs=2,
        asks="sequence",
        answers_first=1,
    )
    Config = SummaryConfig

    def __init__(self, config: TaskConfig, *, length: int, rules: Rules = "fixed") -> None:
        super().__init__(config, length=length, rules=rules)
        self.asked = cast(SummaryConfig, config)
        self.places = self.asked.sentence_words + self.asked.ragged
        """Tokens of the longest sentence, its end included."""
        self.sentences = length // self.places
        if self.sentences < 2:
            raise UsageError(
                f"summary: two sentences take {2 * self.places} tokens, the length is {length}; "
                "lower sentence_words, or use a longer length"
            )
        if self.sentences > self.asked.topics:
            raise UsageError(
                f"summary: {self.sentences} sentences need as many topics, there are "
                f"{self.asked.topics}; raise topics or sentence_words, or use a shorter length"
            )

    @property
    def classes(self) -> int:
        """One class for each word, and one for the end where there is one."""
        return self.asked.words + self.asked.ragged

    @property
    def vocabulary(self) -> int:
        """Every word or none with every topic or none."""
        return (1 + self.classes) * (1 + self.asked.topics)

    @property
    def token_parts(self) -> tuple[int, ...]:
        """Words and topics, 0 for none."""
        return 1 + self.classes, 1 + self.asked.topics

    def generate(self, split: SplitName, rows: int) -> Split:
        """Make `rows` pairs of a source and what is written of it; tokens are uint16, or int32
        where there are too many."""
        stream = stream_key("summary", self.config.data_seed)
        return disjoint_split(self._draw, stream, split, rows)

    def shown(self, tokens: npt.NDArray[np.integer]) -> str:
        """Return words as 7, words with their topic as t3:7, and an end as a full stop."""
        words, topics = self._parts(tokens)
        told = []
        for word, topic in zip(words.tolist(), topics.tolist(), strict=True):
            said = [] if word < 0 else ["." if word == self.asked.words else str(word)]
            told.append(":".join([f"t{topic}"] * (topic >= 0) + said))
        return " ".join(told)

    def solve(self, split: Split) -> Ints:
        """Return the words of the source that have the topic asked for."""
        from tasks.solvers.sources import answered

        def with_topic(source: Ints, given: Ints) -> Ints:
            words, topics = self._parts(source)
            asked: Ints = words[topics == self._parts(given)[1][0]]
            return asked

        return answered(split, with_topic)

    def rules_of_thumb(self, data: Dataset) -> dict[str, float]:
        """Return the test accuracy of writing a sentence without regard to the topic: one drawn
        anew for each row, the first, and where lengths differ the longest."""
        from tasks.solvers.sources import answered, share_right

        test = data.test
        drawn = iter(self._drawn_sentences(test))
        found = {
            "a random sentence": answered(
                test, lambda source, given: self._fit(next(drawn), given)
            ),
            "the first sentence": answered(
                test, lambda source, given: self._fit(self.told(source)[0], given)
            ),
        }
        if self.asked.ragged:
            found["the longest sentence"] = answered(
                test, lambda source, given: self._fit(max(self.told(source), key=len), given)
            )
        return {name: share_right(test, answers) for name, answers in found.items()}

    def overlap_of_a_random_sentence(self, split: Split) -> Rouge:
        """Return the mean ROUGE of the same drawn sentences against those asked for, ends left out:
        what is in common by chance."""
        wanted = [split.labels[split.starts[2 * row + 1] : split.starts[2 * row + 2]]
                  for row in range(len(split))]  # fmt: skip
        pairs = zip(self._drawn_sentences(split), wanted, strict=True)
        scores = [rouge(self._without_end(one), self._without_end(other)) for one, other in pairs]
        return Rouge(*np.mean(scores, axis=0).tolist())

    def told(self, source: Ints) -> list[Ints]:
        """Return the sentences of a source, as numbers of words."""
        words, topics = self._parts(source)
        return np.split(words, np.flatnonzero(np.diff(topics)) + 1)

    def _drawn_sentences(self, split: Split) -> list[Ints]:
        """A sentence of each row, by the row's number."""
        keys_R = row_keys(stream_key("summary", "a random sentence"), np.arange(len(split)))
        which_R = below(keys_R, 0, self.sentences).tolist()
        sources = (split.sequence(2 * row).astype(np.int64) for row in range(len(split)))
        return [self.told(source)[which] for source, which in zip(sources, which_R, strict=True)]

    def _fit(self, sentence: Ints, given: Ints) -> Ints:
        """The beginning of a sentence, with its last word again where it is too short."""
        return sentence[np.minimum(np.arange(len(given)), len(sentence) - 1)]

    def _without_end(self, words: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
        return words[: len(words) - self.asked.ragged]

    def _parts(self, tokens: npt.NDArray[np.integer]) -> tuple[Ints, Ints]:
        """Numbers of words and topics; -1 where a token has none."""
        topics, words = np.divmod(tokens.astype(np.int64), 1 + self.classes)
        return words - 1, topics - 1

    def _draw(self, keys_R: U64) -> Drawn:
        sentences, places, rows = self.sentences, self.places, len(keys_R)
        index_SW = np.arange(sentences * places).reshape(sentences, places)
        words_RSW = below(keys_R[:, None, None], _WORDS + index_SW, self.asked.words)
        numbers_RS1 = np.full((rows, sentences, 1), places)
        if self.asked.ragged:
            drawn_RS = below(keys_R[:, None], _NUMBERS + np.arange(sentences), places - 1)
            numbers_RS1 = 2 + drawn_RS[:, :, None]
            words_RSW = np.where(np.arange(places) < numbers_RS1 - 1, words_RSW, self.asked.words)
        kept_RSW = np.arange(places) < numbers_RS1
        topics_RS = shuffled(keys_R, _TOPICS, self.asked.topics)[:, :sentences]
        tags_RS = (1 + self.classes) * (1 + topics_RS)
        asked_R = below(keys_R, _ASKED, sentences)
        of_R = np.arange(rows), asked_R

        tokens_RIN = np.zeros((rows, 2, self.length), dtype=np.int64)
        kept_RIN = np.zeros(tokens_RIN.shape, dtype=np.bool_)
        labels_RIN = np.full(tokens_RIN.shape, UNASKED)
        whole = slice(sentences * places)
        tokens_RIN[:, 0, whole] = (tags_RS[:, :, None] + 1 + words_RSW).reshape(rows, -1)
        kept_RIN[:, 0, whole] = kept_RSW.reshape(rows, -1)
        tokens_RIN[:, 1, 0] = tags_RS[of_R]
        tokens_RIN[:, 1, 1:places] = 1 + words_RSW[of_R][:, :-1]
        kept_RIN[:, 1, :places] = kept_RSW[of_R]
        labels_RIN[:, 1, :places] = words_RSW[of_R]
        kind = np.uint16 if self.vocabulary <= 1 << 16 else np.int32
        tokens_RIN[~kept_RIN] = 0
        return Drawn(tokens_RIN.astype(kind), kept_RIN, labels_RIN.astype(np.int16))
