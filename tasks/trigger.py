"""Trigger: one token stands at a random place and again at the end, and asks for what followed it.

The simplest form of induction (Olsson et al., "In-context Learning and Induction Heads", 2022,
arXiv 2209.11895), as a task of its own in Fu et al., "Hungry Hungry Hippos", ICLR 2023 (arXiv
2212.14052); made here from a seed, at any distance.
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

_TRIGGER, _FIRST = 1, 2
"""Token ids of the trigger and of symbol 0."""
_SYMBOLS, _PLACE = (number << 24 for number in range(2))
"""Where in an example's stream each kind of draw begins."""
_SHORTEST = 3
"""The trigger, a symbol after it, and the trigger again."""


class TriggerConfig(TaskConfig, frozen=True):
    """How many answers there are; the length says how far back they stand."""

    symbols: Annotated[int, msgspec.Meta(ge=2, le=32_000)] = 16
    """Different symbols there are, and so classes; each place beside the trigger's has any."""


class Trigger(Task):
    """The label of the last token is the number of the symbol after the first trigger."""

    card = TaskCard(
        title="Trigger",
        source="induction, Fu et al. 2023 (arXiv 2212.14052)",
        classes=16,
        vocabulary=18,
        asks="token",
    )
    Config = TriggerConfig

    def __init__(self, config: TaskConfig, *, length: int, rules: Rules = "fixed") -> None:
        super().__init__(config, length=length, rules=rules)
        self.asked = cast(TriggerConfig, config)
        if length < _SHORTEST:
            raise UsageError(
                f"trigger: two triggers and a symbol take {_SHORTEST} tokens, the length is "
                f"{length}; use a longer length"
            )

    @property
    def classes(self) -> int:
        """One class for each symbol."""
        return self.asked.symbols

    @property
    def vocabulary(self) -> int:
        """Padding, the trigger and the symbols."""
        return _FIRST + self.asked.symbols

    def generate(self, split: SplitName, rows: int) -> Split:
        """Make `rows` sequences as long as the length; tokens are uint16."""
        stream = stream_key("trigger", self.config.data_seed)
        return disjoint_split(self._draw, stream, split, rows)

    def shown(self, tokens: npt.NDArray[np.integer]) -> str:
        """Return symbols as 7 and the trigger as an exclamation mark."""
        return " ".join("!" if token == _TRIGGER else str(token - _FIRST) for token in tokens)

    def solve(self, split: Split) -> npt.NDArray[np.integer]:
        """Return the symbol after the first trigger."""
        tokens_EN = split.tokens.reshape(len(split), -1).astype(np.int64)
        answers_EN = np.full(tokens_EN.shape, UNASKED)
        first_E = (tokens_EN == _TRIGGER).argmax(axis=1)
        answers_EN[:, -1] = tokens_EN[np.arange(len(split)), first_E + 1] - _FIRST
        return answers_EN.ravel()

    def rules_of_thumb(self, data: Dataset) -> dict[str, float]:
        """Return the test accuracy of answering with the commonest symbol of the row, and with the
        symbol at the place where the answer stood most often in training."""
        tokens_EN = data.test.tokens.reshape(len(data.test), -1).astype(np.int64)
        labels_E = data.test.labels.reshape(tokens_EN.shape)[:, -1]
        symbols_EN = tokens_EN - _FIRST
        common_E = np.array([np.bincount(row[row >= 0]).argmax() for row in symbols_EN])
        train_EN = data.train.tokens.reshape(len(data.train), -1)
        place = 1 + np.bincount((train_EN == _TRIGGER).argmax(axis=1)).argmax()
        return {
            "a symbol of the row": float((labels_E == common_E).mean()),
            "a fixed place": float((labels_E == symbols_EN[:, place]).mean()),
        }

    def _draw(self, keys_R: U64) -> Drawn:
        rows, places = len(keys_R), self.length - _SHORTEST + 1
        symbols_RN = below(keys_R[:, None], _SYMBOLS + np.arange(self.length), self.asked.symbols)
        place_R = below(keys_R, _PLACE, places)
        tokens_RN = _FIRST + symbols_RN
        tokens_RN[np.arange(rows), place_R] = _TRIGGER
        tokens_RN[:, -1] = _TRIGGER
        labels_RN = np.full(tokens_RN.shape, UNASKED)
        labels_RN[:, -1] = symbols_RN[np.arange(rows), place_R + 1]
        kept_RIN = np.ones((rows, 1, self.length), dtype=np.bool_)
        return Drawn(
            tokens_RN[:, None].astype(np.uint16), kept_RIN, labels_RN[:, None].astype(np.int16)
        )
