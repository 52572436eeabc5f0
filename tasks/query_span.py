"""Query span: in which of equal parts of a long meeting is the passage that answers a query?

Where the original, QMSum of Zhong et al., NAACL 2021 (arXiv 2104.05938), asks for a summary of what
a query is about, only the place is asked for here; offline, in meetings made from a seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, cast

import msgspec
import numpy as np
import numpy.typing as npt

from lra.core.cards import TaskCard
from lra.core.dataset import Dataset, Split, SplitName
from tasks import _preview
from tasks.contract import Part, Task, TaskConfig
from tasks.generators.counter import row_keys, stream_key
from tasks.generators.meetings import MeetingSize, meetings

SEPARATOR = 257
"""The token between query and meeting; that of a byte is the byte plus 1."""

_TOKENS_AT_ONCE = 1 << 21
_TOKENS_OF_A_PART = 1 << 25


class QuerySpanConfig(TaskConfig, frozen=True):
    """In how many parts a meeting is cut, and how it is made where it is not real."""

    parts: Annotated[int, msgspec.Meta(ge=3, le=256)] = 16
    """Parts, of equally many bytes, and so classes; of real meetings too."""
    letters: Annotated[int, msgspec.Meta(ge=1, le=16)] = 1
    """Letters of a word of the made meetings."""


class QuerySpan(Task):
    """The label is the part of the meeting, as far as it is kept, with the passage's middle byte.

    A sequence is the query, a separator and the meeting, cut on the right to the length.
    """

    card = TaskCard(
        title="Query span",
        source="QMSum, Zhong et al. 2021 (arXiv 2104.05938)",
        classes=16,
        vocabulary=258,
        stand_in="meetings about one topic after another: where is the one with both words?",
    )
    Config = QuerySpanConfig
    # A shorter meeting has other parts.
    cuttable = False

    @property
    def classes(self) -> int:
        """One class for each part."""
        return cast(QuerySpanConfig, self.config).parts

    @property
    def part_rows(self) -> int:
        """Rows that are made in some seconds."""
        return max(1, _TOKENS_OF_A_PART // self.length)

    def generate(self, split: SplitName, rows: int) -> Split:
        """Make `rows` queries with their meetings; tokens are uint16."""
        return self.generate_part(split, 0, rows)

    def generate_part(self, split: SplitName, first: int, rows: int) -> Split:
        """Make the rows from number `first` on.

        Splits have streams of their own: the words of the smallest meetings alone are drawn from
        more than 2**90.
        """
        size = self._size()
        stream = stream_key("query_span", self.config.data_seed, split)
        tokens: list[npt.NDArray[np.uint16]] = []
        labels: list[npt.NDArray[np.int64]] = []
        step = max(1, _TOKENS_AT_ONCE // self.length)
        for start in range(first, first + rows, step):
            keys_R = row_keys(stream, np.arange(start, min(start + step, first + rows)))
            queries_RN, meetings_RN, parts_R = meetings(keys_R, size)
            between_R1 = np.full((len(keys_R), 1), SEPARATOR, dtype=np.uint16)
            one = np.uint16(1)
            tokens.append(np.concatenate([queries_RN + one, between_R1, meetings_RN + one], axis=1))
            labels.append(parts_R)
        made_RN = np.concatenate(tokens)
        starts = np.arange(rows + 1) * made_RN.shape[1]
        return Split(made_RN.reshape(-1), starts, np.concatenate(labels))

    def parts(self, source: str) -> Sequence[Part]:
        """Return the queries of real meetings; see `tasks.sources.meeting_files`."""
        from tasks.sources.meeting_files import query_parts

        return query_parts(source, self.length, self.classes, SEPARATOR)

    def left_out(self, source: str) -> Mapping[SplitName, int]:
        """Return how many queries of real meetings are left out, as the passage begins beyond the
        length."""
        from tasks.sources.meeting_files import count_beyond

        return count_beyond(source, self.length)

    def real_dataset(self, splits: Mapping[SplitName, Split]) -> Dataset:
        """Wrap splits of a real set: it is cut in as many parts as a made one."""
        return self.dataset(splits)

    def solve(self, split: Split) -> npt.NDArray[np.integer]:
        """Return the part whose middle turn says both words of the query, -1 where none does."""
        size = self._size()
        found = np.full(len(split), -1)
        for row, (query, meeting) in enumerate(_texts(split)):
            wanted, turns = {*query.split()}, meeting.split(b"\n")
            middle = turns[size.middle : size.turns : size.turns_a_part]
            right = [part for part, turn in enumerate(middle) if wanted <= {*turn.split()}]
            found[row] = right[0] if right else -1
        return found

    def rules_of_thumb(self, data: Dataset) -> dict[str, float]:
        """Return the test accuracy of the part that the ranking BM25 puts first."""
        from tasks.solvers.bm25 import best_part

        found = [best_part(query, meeting, data.classes) for query, meeting in _texts(data.test)]
        return {"BM25": float(np.mean(np.array(found) == data.test.labels))}

    def shown(self, tokens: npt.NDArray[np.integer]) -> str:
        """Return query and meeting as quoted strings."""
        return " ".join(map(_preview.text, _halves(tokens)))

    def _size(self) -> MeetingSize:
        config = cast(QuerySpanConfig, self.config)
        return MeetingSize.of(self.length, config.parts, config.letters)


def _halves(tokens: npt.NDArray[np.integer]) -> list[npt.NDArray[np.integer]]:
    """Query and meeting."""
    (place,) = np.flatnonzero(tokens == SEPARATOR)
    return [tokens[:place], tokens[place + 1 :]]


def _texts(split: Split) -> Iterator[tuple[bytes, bytes]]:
    """Query and meeting of each row."""
    for row in range(len(split)):
        query, meeting = (
            (half - 1).astype(np.uint8).tobytes() for half in _halves(split.sequence(row))
        )
        yield query, meeting
