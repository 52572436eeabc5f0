"""Recall: pairs of a key and a value, then keys alone, each asking for its value.

Multi-query associative recall: Arora et al., "Zoology: Measuring and Improving Recall in Efficient
Language Models", ICLR 2024 (arXiv 2312.04927), after Ba et al. 2016; made here from a seed, with
any number of pairs at any distance. Asked of each query key by itself, of nothing else.
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

_VALUES, _FILLERS, _KEYS, _ORDER, _PLACES = (number << 24 for number in range(5))
"""Where in an example's stream each kind of draw begins."""


class RecallConfig(TaskConfig, frozen=True):
    """How much there is to remember, and for how long."""

    pairs: Annotated[int, msgspec.Meta(ge=1)] = 8
    """Pairs of a key and its value, at the beginning; each key is asked for once after them."""
    keys: Annotated[int, msgspec.Meta(ge=1, le=32_000)] = 64
    """Different keys there are; those of an example differ."""
    values: Annotated[int, msgspec.Meta(ge=2, le=32_000)] = 64
    """Different values there are, and so classes; those of an example may be equal."""
    gap: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Tokens at least between the last pair and the first query."""


class Recall(Task):
    """Ids 1 ... keys are keys, those after them values; the label of a query is its value's number.

    Every token outside of pairs and queries is a random value without a label.
    """

    card = TaskCard(
        title="Recall",
        source="multi-query associative recall, Arora et al. 2024 (arXiv 2312.04927)",
        classes=64,
        vocabulary=129,
        asks="token",
    )
    Config = RecallConfig

    def __init__(self, config: TaskConfig, *, length: int, rules: Rules = "fixed") -> None:
        super().__init__(config, length=length, rules=rules)
        self.asked = cast(RecallConfig, config)
        if self.asked.pairs > self.asked.keys:
            raise UsageError(
                f"recall: {self.asked.pairs} pairs need as many keys, there are {self.asked.keys}; "
                "raise keys or lower pairs"
            )
        needed = 3 * self.asked.pairs + self.asked.gap
        if needed > length:
            raise UsageError(
                f"recall: {self.asked.pairs} pairs, a gap of {self.asked.gap} and as many queries "
                f"take {needed} tokens, the length is {length}; lower pairs or gap, or use a "
                "longer length"
            )

    @property
    def classes(self) -> int:
        """One class for each value."""
        return self.asked.values

    @property
    def vocabulary(self) -> int:
        """Padding, keys and values."""
        return 1 + self.asked.keys + self.asked.values

    def generate(self, split: SplitName, rows: int) -> Split:
        """Make `rows` sequences as long as the length; tokens are uint16."""
        stream = stream_key("recall", self.config.data_seed)
        return disjoint_split(self._draw, stream, split, rows)

    def shown(self, tokens: npt.NDArray[np.integer]) -> str:
        """Return keys as k7 and values as 7."""
        first_value = 1 + self.asked.keys
        return " ".join(
            f"k{token - 1}" if token < first_value else str(token - first_value) for token in tokens
        )

    def solve(self, split: Split) -> npt.NDArray[np.integer]:
        """Return the value that stands behind each asked key's first mention."""
        tokens_EN = split.tokens.reshape(len(split), -1).astype(np.int64)
        answers_EN = np.full(tokens_EN.shape, UNASKED)
        asked_EN = split.labels.reshape(tokens_EN.shape) != UNASKED
        for tokens, answers, asked in zip(tokens_EN, answers_EN, asked_EN, strict=True):
            pairs = tokens[: 2 * self.asked.pairs].tolist()
            known = dict(zip(pairs[::2], pairs[1::2], strict=True))
            answers[asked] = [known[key] - 1 - self.asked.keys for key in tokens[asked].tolist()]
        return answers_EN.ravel()

    def rules_of_thumb(self, data: Dataset) -> dict[str, float]:
        """Return the test accuracy of always answering with the commonest value of the pairs: what
        can be had without matching a query to its key."""
        tokens_EN = data.test.tokens.reshape(len(data.test), -1).astype(np.int64)
        labels_EN = data.test.labels.reshape(len(data.test), -1)
        values_EP = tokens_EN[:, 1 : 2 * self.asked.pairs : 2] - 1 - self.asked.keys
        common_E = np.array([np.bincount(values_P).argmax() for values_P in values_EP])
        right_EN = labels_EN == common_E[:, None]
        return {"a value of the pairs": float(right_EN[labels_EN != UNASKED].mean())}

    def _draw(self, keys_R: U64) -> Drawn:
        pairs, rows = self.asked.pairs, len(keys_R)
        keys_RP = shuffled(keys_R, _KEYS, self.asked.keys)[:, :pairs]
        values_RP = below(keys_R[:, None], _VALUES + np.arange(pairs), self.asked.values)
        fillers_RN = below(keys_R[:, None], _FILLERS + np.arange(self.length), self.asked.values)
        tokens_RN = 1 + self.asked.keys + fillers_RN
        tokens_RN[:, 0 : 2 * pairs : 2] = 1 + keys_RP
        tokens_RN[:, 1 : 2 * pairs : 2] = 1 + self.asked.keys + values_RP

        first = 2 * pairs + self.asked.gap
        places_RP = first + np.sort(shuffled(keys_R, _PLACES, self.length - first)[:, :pairs], 1)
        order_RP = shuffled(keys_R, _ORDER, pairs)
        row_R1 = np.arange(rows)[:, None]
        tokens_RN[row_R1, places_RP] = 1 + keys_RP[row_R1, order_RP]
        labels_RN = np.full(tokens_RN.shape, UNASKED)
        labels_RN[row_R1, places_RP] = values_RP[row_R1, order_RP]
        kept_RIN = np.ones((rows, 1, self.length), dtype=np.bool_)
        return Drawn(
            tokens_RN[:, None].astype(np.uint16), kept_RIN, labels_RN[:, None].astype(np.int16)
        )
