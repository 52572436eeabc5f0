"""Copy: write the symbols of another sequence again, one after the other.

The plainest task from sequence to sequence: what is asked stands in the source, each symbol at the
place of its answer, so that a decoder has to attend across and cannot do with a summary. Graves,
Wayne and Danihelka, "Neural Turing Machines", 2014 (arXiv 1410.5401); made here from a seed.

R rows, N places
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
from tasks.contract import Task, TaskConfig
from tasks.generators.counter import U64, below, stream_key
from tasks.generators.disjoint import Drawn, disjoint_split

_SYMBOLS, _NUMBER = (number << 24 for number in range(2))
"""Where in an example's stream each kind of draw begins."""

Ints = npt.NDArray[np.int64]


class CopyConfig(TaskConfig, frozen=True):
    """How many symbols there are; the length says how many a row has."""

    symbols: Annotated[int, msgspec.Meta(ge=2, le=32_000)] = 64
    """Different symbols there are; those of an example may be equal."""
    ragged: bool = False
    """Whether a row has any number of symbols, from one to as many as fit, and an end after them;
    else all rows are equally long, without an end."""


class Copy(Task):
    """The second sequence is a start and what was written so far; the label of each of its tokens
    is the next symbol's number.

    `length` is the source's in tokens: that many symbols, or at most one fewer and an end. Token 0
    is padding, label c the token c + 1; the end's label comes after the symbols', the start after
    all.
    """

    card = TaskCard(
        title="Copy",
        source="copying, Graves et al. 2014 (arXiv 1410.5401)",
        classes=64,
        vocabulary=66,
        inputs=2,
        asks="sequence",
        answers_first=1,
    )
    Config = CopyConfig

    def __init__(self, config: TaskConfig, *, length: int, rules: Rules = "fixed") -> None:
        super().__init__(config, length=length, rules=rules)
        self.asked = cast(CopyConfig, config)
        self.most = length - self.asked.ragged
        """Symbols of the longest row."""
        if self.most < 1:
            raise UsageError(
                f"{self.name}: a symbol and an end take 2 tokens, the length is {length}; use a "
                "longer length, or leave ragged out"
            )

    @property
    def classes(self) -> int:
        """One class for each symbol, and one for the end where there is one."""
        return self.asked.symbols + self.asked.ragged

    @property
    def vocabulary(self) -> int:
        """Padding, symbols, the end where there is one, and the start."""
        return 2 + self.classes

    @property
    def _start(self) -> int:
        return 1 + self.classes

    def generate(self, split: SplitName, rows: int) -> Split:
        """Make `rows` pairs of a source and what is written of it; tokens are uint16."""
        stream = stream_key(self.name, self.config.data_seed)
        return disjoint_split(self._draw, stream, split, rows)

    def shown(self, tokens: npt.NDArray[np.integer]) -> str:
        """Return symbols as 7, the start as ^ and an end as a full stop."""
        marks = {self._start: "^"} | ({self.classes: "."} if self.asked.ragged else {})
        return " ".join(marks.get(token, str(token - 1)) for token in tokens.tolist())

    def solve(self, split: Split) -> Ints:
        """Return what is to be written, read from the source alone."""
        from tasks.solvers.sources import answered

        return answered(split, lambda source, given: self.answer(source) - 1)

    def answer(self, source_N: Ints) -> Ints:
        """Return the tokens to write for those of a source, an end included."""
        return source_N

    def rules_of_thumb(self, data: Dataset) -> dict[str, float]:
        """Return the test accuracy of always writing the commonest symbol of the source: what can
        be had without knowing which comes next."""
        from tasks.solvers.sources import answered, share_right

        found = answered(
            data.test, lambda source, given: np.full(len(given), np.bincount(source).argmax() - 1)
        )
        return {"a symbol of the source": share_right(data.test, found)}

    def _draw(self, keys_R: U64) -> Drawn:
        places_N, rows = np.arange(self.length), len(keys_R)
        numbers_R1 = np.full((rows, 1), self.most)
        if self.asked.ragged:
            numbers_R1 = 1 + below(keys_R[:, None], _NUMBER, self.most)
        symbols_RN = below(keys_R[:, None], _SYMBOLS + places_N, self.asked.symbols)
        # After its symbols a row has the end, or nothing.
        source_RN = np.where(places_N < numbers_R1, symbols_RN, self.asked.symbols)
        answers_RN = np.take_along_axis(source_RN, self._order(numbers_R1), axis=1)
        kept_RN = places_N < numbers_R1 + self.asked.ragged
        given_RN = np.concatenate([np.full((rows, 1), self._start), 1 + answers_RN[:, :-1]], axis=1)
        tokens_RIN = np.stack([1 + source_RN, given_RN], axis=1)
        kept_RIN = np.stack([kept_RN, kept_RN], axis=1)
        return Drawn(
            np.where(kept_RIN, tokens_RIN, 0).astype(np.uint16),
            kept_RIN,
            np.stack([np.full_like(answers_RN, UNASKED), answers_RN], axis=1).astype(np.int16),
        )

    def _order(self, numbers_R1: Ints) -> Ints:
        """Return the place in the source of what is written at each place, (R, N)."""
        return np.broadcast_to(np.arange(self.length), (len(numbers_R1), self.length))
