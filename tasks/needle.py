"""Needle: pairs of a key and a value at all depths of a haystack, and keys at its end, each asking
for its value.

The needle in a haystack with several needles and several queries of Hsieh et al., "RULER: What's
the Real Context Size of Your Long-Context Language Models?", COLM 2024 (arXiv 2404.06654), after
Kamradt 2023; made here from a seed, out of symbols. As `recall`, but the pairs are spread over the
whole row: how far a model finds its way back is the subject.

R rows, E examples, N tokens, M needles, A asked
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

_KEYS, _VALUES, _FILLERS, _PLACES, _ORDER = (number << 24 for number in range(5))
"""Where in an example's stream each kind of draw begins."""
_WIDTH = 2
"""Tokens of a needle: a key, and its value after it."""

Ints = npt.NDArray[np.int64]


class NeedleConfig(TaskConfig, frozen=True):
    """How many needles a haystack has; the length says how far apart they stand."""

    needles: Annotated[int, msgspec.Meta(ge=1)] = 16
    """Pairs of a key and its value, one in each of as many equal parts of the haystack."""
    keys: Annotated[int, msgspec.Meta(ge=1, le=32_000)] = 64
    """Different keys there are; those of an example differ."""
    values: Annotated[int, msgspec.Meta(ge=2, le=32_000)] = 64
    """Different values there are, and so classes; those of an example may be equal."""
    asked: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Keys that are asked for at the end; None: all. Few labels a row are learned late or never."""


class Needle(Task):
    """Ids 1 ... keys are keys, those after them values; the label of a query is its value's number.

    The haystack is random values without a label, so that no false key stands in it.
    """

    card = TaskCard(
        title="Needle",
        source="multi-query needle in a haystack, Hsieh et al. 2024 (arXiv 2404.06654)",
        classes=64,
        vocabulary=129,
        asks="token",
    )
    Config = NeedleConfig

    def __init__(self, config: TaskConfig, *, length: int, rules: Rules = "fixed") -> None:
        super().__init__(config, length=length, rules=rules)
        self.settings = cast(NeedleConfig, config)
        needles, keys = self.settings.needles, self.settings.keys
        self.queries = self.settings.asked or needles
        if needles > keys:
            raise UsageError(
                f"needle: {needles} needles need as many keys, there are {keys}; raise keys or "
                "lower needles"
            )
        if self.queries > needles:
            raise UsageError(
                f"needle: {self.queries} keys are asked for, there are {needles} needles; lower "
                "asked or raise needles"
            )
        needed = _WIDTH * needles + self.queries
        if needed > length:
            raise UsageError(
                f"needle: {needles} needles and {self.queries} queries take {needed} tokens, the "
                f"length is {length}; lower needles or asked, or use a longer length"
            )

    @property
    def classes(self) -> int:
        """One class for each value."""
        return self.settings.values

    @property
    def vocabulary(self) -> int:
        """Padding, keys and values."""
        return self._first_value + self.settings.values

    @property
    def _first_value(self) -> int:
        return 1 + self.settings.keys

    @property
    def strata(self) -> Ints:
        """Where the part of each needle begins, and where the haystack ends, (M + 1,) tokens."""
        haystack = self.length - self.queries
        return np.arange(self.settings.needles + 1) * haystack // self.settings.needles

    def generate(self, split: SplitName, rows: int) -> Split:
        """Make `rows` sequences as long as the length; tokens are uint16."""
        stream = stream_key("needle", self.config.data_seed)
        return disjoint_split(self._draw, stream, split, rows)

    def shown(self, tokens: npt.NDArray[np.integer]) -> str:
        """Return keys as k7 and values as 7."""
        first = self._first_value
        return " ".join(
            f"k{token - 1}" if token < first else str(token - first) for token in tokens.tolist()
        )

    def solve(self, split: Split) -> Ints:
        """Return the value that stands behind each asked key in the haystack."""
        tokens_EN, keys_EM, values_EM = self._read(split)
        asked_EA = tokens_EN[:, -self.queries :] - 1
        matches_EAM = asked_EA[:, :, None] == keys_EM[:, None]
        answers_EN = np.full(tokens_EN.shape, UNASKED)
        answers_EN[:, -self.queries :] = np.take_along_axis(
            values_EM, matches_EAM.argmax(axis=2), axis=1
        )
        return answers_EN.ravel()

    def rules_of_thumb(self, data: Dataset) -> dict[str, float]:
        """Return the test accuracy of always answering with the commonest value of the needles, and
        with that of the whole haystack: neither matches a query to its key."""
        tokens_EN, _, values_EM = self._read(data.test)
        labels_EA = data.test.labels.reshape(tokens_EN.shape)[:, -self.queries :]
        haystack_EN = tokens_EN[:, : -self.queries] - self._first_value
        of_needles_E = np.array([np.bincount(values).argmax() for values in values_EM])
        of_all_E = np.array([np.bincount(row[row >= 0]).argmax() for row in haystack_EN])
        return {
            "a value of the needles": float((labels_EA == of_needles_E[:, None]).mean()),
            "a value of the haystack": float((labels_EA == of_all_E[:, None]).mean()),
        }

    def _read(self, split: Split) -> tuple[Ints, Ints, Ints]:
        """Tokens (E, N), and numbers of the needles' keys and values (E, M), from first to last."""
        tokens_EN = split.tokens.reshape(len(split), -1).astype(np.int64)
        rows, places = np.nonzero(tokens_EN[:, : -self.queries] < self._first_value)
        keys, values = tokens_EN[rows, places] - 1, tokens_EN[rows, places + 1] - self._first_value
        return tokens_EN, keys.reshape(len(split), -1), values.reshape(len(split), -1)

    def _draw(self, keys_R: U64) -> Drawn:
        needles, first = self.settings.needles, self._first_value
        keys_RM = shuffled(keys_R, _KEYS, self.settings.keys)[:, :needles]
        numbers_M = np.arange(needles)
        values_RM = below(keys_R[:, None], _VALUES + numbers_M, self.settings.values)
        begin_M, width_M = self.strata[:-1], np.diff(self.strata)
        # A needle lies in its own part whole, so no two overlap.
        rooms_M = width_M - _WIDTH + 1
        places_RM = begin_M + below(keys_R[:, None], _PLACES + numbers_M, rooms_M)
        order_RA = shuffled(keys_R, _ORDER, needles)[:, : self.queries]

        slots_N = np.arange(self.length)
        tokens_RN = first + below(keys_R[:, None], _FILLERS + slots_N, self.settings.values)
        rows_R1 = np.arange(len(keys_R))[:, None]
        tokens_RN[rows_R1, places_RM] = 1 + keys_RM
        tokens_RN[rows_R1, places_RM + 1] = first + values_RM
        tokens_RN[:, -self.queries :] = 1 + keys_RM[rows_R1, order_RA]
        labels_RN = np.full(tokens_RN.shape, UNASKED)
        labels_RN[:, -self.queries :] = values_RM[rows_R1, order_RA]
        kept_RIN = np.ones((len(keys_R), 1, self.length), dtype=np.bool_)
        return Drawn(
            tokens_RN[:, None].astype(np.uint16), kept_RIN, labels_RN[:, None].astype(np.int16)
        )
