"""Selective copy: symbols at random places among noise, then as many queries, each asking for the
next of them.

Gu and Dao, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces", COLM 2024 (arXiv
2312.00752), after Jing et al. 2019; made here from a seed. Distances differ from row to row, so
that the order of the symbols has to be counted.
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
from tasks.generators.counter import U64, below, shuffled, stream_key
from tasks.generators.disjoint import Drawn, disjoint_split

_NOISE, _QUERY, _FIRST = 1, 2, 3
"""Token ids of noise, of a query, and of symbol 0."""
_SYMBOLS, _PLACES = (number << 24 for number in range(2))
"""Where in an example's stream each kind of draw begins."""


class SelectiveCopyConfig(TaskConfig, frozen=True):
    """How much there is to copy, and whether its places differ."""

    items: Annotated[int, msgspec.Meta(ge=1)] = 16
    """Symbols to copy, and queries at the end; noise fills the length up."""
    symbols: Annotated[int, msgspec.Meta(ge=2, le=32_000)] = 16
    """Different symbols there are, and so classes; those of an example may be equal."""
    scattered: bool = True
    """Whether symbols stand at random places; else at the beginning, each at the same distance
    from its query: a control that positions alone solve."""


class SelectiveCopy(Task):
    """The label of the i-th query is the i-th symbol's number."""

    card = TaskCard(
        title="Selective copy",
        source="selective copying, Gu and Dao 2024 (arXiv 2312.00752)",
        classes=16,
        vocabulary=19,
        asks="token",
    )
    Config = SelectiveCopyConfig

    def __init__(self, config: TaskConfig, *, length: int, rules: Rules = "fixed") -> None:
        super().__init__(config, length=length, rules=rules)
        self.asked = cast(SelectiveCopyConfig, config)
        if 2 * self.asked.items > length:
            raise UsageError(
                f"selective_copy: {self.asked.items} items and as many queries take "
                f"{2 * self.asked.items} tokens, the length is {length}; lower items, or use a "
                "longer length"
            )

    @property
    def classes(self) -> int:
        """One class for each symbol."""
        return self.asked.symbols

    @property
    def vocabulary(self) -> int:
        """Padding, noise, the query and the symbols."""
        return _FIRST + self.asked.symbols

    @property
    def slots(self) -> int:
        """Places before the queries."""
        return self.length - self.asked.items

    def generate(self, split: SplitName, rows: int) -> Split:
        """Make `rows` sequences as long as the length; tokens are uint16."""
        stream = stream_key("selective_copy", self.config.data_seed)
        return disjoint_split(self._draw, stream, split, rows)

    def shown(self, tokens: npt.NDArray[np.integer]) -> str:
        """Return symbols as 7, noise as a dot and queries as a question mark."""
        marks = {_NOISE: ".", _QUERY: "?"}
        return " ".join(marks.get(token, str(token - _FIRST)) for token in tokens.tolist())

    def solve(self, split: Split) -> npt.NDArray[np.integer]:
        """Return the symbols in their order, one for each query."""
        tokens_EN = split.tokens.reshape(len(split), -1).astype(np.int64)
        answers_EN = np.full(tokens_EN.shape, UNASKED)
        for tokens, answers in zip(tokens_EN, answers_EN, strict=True):
            answers[tokens == _QUERY] = tokens[tokens >= _FIRST] - _FIRST
        return answers_EN.ravel()

    def rules_of_thumb(self, data: Dataset) -> dict[str, float]:
        """Return the test accuracy of answering with the commonest of the row's symbols, and with
        the symbol at the place where each query's own stood most often in training."""
        items, rows = self.asked.items, len(data.test)
        tokens_EN, labels_EI = self._split(data.test)
        train_EN, _ = self._split(data.train)
        symbols_EN = tokens_EN[:, : self.slots] - _FIRST
        common_E = np.array([np.bincount(row[row >= 0]).argmax() for row in symbols_EN])
        # The places of each row in order, (train rows, I): `nonzero` goes from row to row.
        places_EI = np.nonzero(train_EN >= _FIRST)[1].reshape(len(train_EN), items)
        place_I = [np.bincount(places_E).argmax() for places_E in places_EI.T]
        there_EI = symbols_EN[:, place_I]
        # Noise there says nothing, and any symbol is as good.
        answers_EI = np.where(there_EI >= 0, there_EI, common_E[:, None])
        return {
            "a symbol of the row": float((labels_EI == common_E[:, None]).mean()),
            "a fixed place": float((labels_EI == answers_EI).sum() / (rows * items)),
        }

    def _split(self, split: Split) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.integer]]:
        """Tokens (E, N), and labels of the queries (E, I)."""
        tokens_EN = split.tokens.reshape(len(split), -1).astype(np.int64)
        return tokens_EN, split.labels.reshape(tokens_EN.shape)[:, self.slots :]

    def _draw(self, keys_R: U64) -> Drawn:
        items, rows = self.asked.items, len(keys_R)
        symbols_RI = below(keys_R[:, None], _SYMBOLS + np.arange(items), self.asked.symbols)
        places_RI = np.broadcast_to(np.arange(items), (rows, items))
        if self.asked.scattered:
            places_RI = np.sort(shuffled(keys_R, _PLACES, self.slots)[:, :items], 1)
        tokens_RN = np.full((rows, self.length), _NOISE)
        tokens_RN[np.arange(rows)[:, None], places_RI] = _FIRST + symbols_RI
        tokens_RN[:, self.slots :] = _QUERY
        labels_RN = np.full(tokens_RN.shape, UNASKED)
        labels_RN[:, self.slots :] = symbols_RI
        kept_RIN = np.ones((rows, 1, self.length), dtype=np.bool_)
        return Drawn(
            tokens_RN[:, None].astype(np.uint16), kept_RIN, labels_RN[:, None].astype(np.int16)
        )
