"""Lookup: a source of pairs of a key and a value, and beside it keys alone, each asking for its
value.

Attention across two sequences in its barest form: the key-value retrieval of Graves, Wayne and
Danihelka, "Neural Turing Machines", 2014 (arXiv 1410.5401), where queries have no order; made here
from a seed. As `recall`, but what is asked stands in a sequence of its own.

R rows, P pairs, Q queries
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

_KEYS, _VALUES, _ORDER = (number << 24 for number in range(3))
"""Where in an example's stream each kind of draw begins."""

Ints = npt.NDArray[np.int64]


class LookupConfig(TaskConfig, frozen=True):
    """How much is looked up among how much; the length says how many pairs there are."""

    queries: Annotated[int, msgspec.Meta(ge=1)] = 64
    """Keys that are asked for, of as many different pairs."""
    keys: Annotated[int, msgspec.Meta(ge=1, le=32_000)] = 2048
    """Different keys there are; those of an example differ."""
    values: Annotated[int, msgspec.Meta(ge=2, le=32_000)] = 64
    """Different values there are, and so classes; those of an example may be equal."""
    apart: bool = False
    """Whether a key and its value stand in two tokens, one after the other, so that they have to be
    joined first; else both are parts of one token."""


class Lookup(Task):
    """The label of a query is the number of its key's value.

    `length` is the source's in tokens: a pair for each, or for every two where they stand apart.
    A token has two parts, of which one may be missing: 1 + its value, and 1 + its key.
    """

    card = TaskCard(
        title="Lookup",
        source="key-value retrieval, Graves et al. 2014 (arXiv 1410.5401)",
        classes=64,
        vocabulary=65 * 2049,
        inputs=2,
        asks="query",
    )
    Config = LookupConfig

    def __init__(self, config: TaskConfig, *, length: int, rules: Rules = "fixed") -> None:
        super().__init__(config, length=length, rules=rules)
        self.asked = cast(LookupConfig, config)
        self.pairs = length // self._slots
        if self.pairs > self.asked.keys:
            raise UsageError(
                f"lookup: {self.pairs} pairs need as many keys, there are {self.asked.keys}; raise "
                "keys, or use a shorter length"
            )
        if self.asked.queries > self.pairs:
            raise UsageError(
                f"lookup: {self.asked.queries} queries need as many pairs, and a length of "
                f"{length} has {self.pairs}; lower queries, or use a longer length"
            )

    @property
    def _slots(self) -> int:
        """Tokens of a pair."""
        return 1 + self.asked.apart

    @property
    def classes(self) -> int:
        """One class for each value."""
        return self.asked.values

    @property
    def vocabulary(self) -> int:
        """Every value or none with every key or none."""
        return (1 + self.asked.values) * (1 + self.asked.keys)

    @property
    def token_parts(self) -> tuple[int, ...]:
        """Values and keys, 0 for none."""
        return 1 + self.asked.values, 1 + self.asked.keys

    def generate(self, split: SplitName, rows: int) -> Split:
        """Make `rows` pairs of a source and queries; tokens are uint16, or int32 where there are
        too many."""
        stream = stream_key("lookup", self.config.data_seed)
        return disjoint_split(self._draw, stream, split, rows)

    def shown(self, tokens: npt.NDArray[np.integer]) -> str:
        """Return keys as k7, values as 7 and pairs as k7:7."""
        values, keys = self._parts(tokens)
        return " ".join(
            ":".join([f"k{key}"] * (key >= 0) + [str(value)] * (value >= 0))
            for value, key in zip(values.tolist(), keys.tolist(), strict=True)
        )

    def solve(self, split: Split) -> Ints:
        """Return the value of each key in the source."""
        from tasks.solvers.sources import answered

        def look_up(source: Ints, given: Ints) -> Ints:
            values, keys = self._pairs(source)
            known = dict(zip(keys.tolist(), values.tolist(), strict=True))
            return np.array([known[key] for key in self._parts(given)[1].tolist()])

        return answered(split, look_up)

    def rules_of_thumb(self, data: Dataset) -> dict[str, float]:
        """Return the test accuracy of always answering with the commonest value of the pairs: what
        can be had without matching a query to its key."""
        from tasks.solvers.sources import answered, share_right

        def commonest(source: Ints, given: Ints) -> Ints:
            values, _ = self._pairs(source)
            return np.full(len(given), np.bincount(values).argmax())

        return {"a value of the pairs": share_right(data.test, answered(data.test, commonest))}

    def _parts(self, tokens: npt.NDArray[np.integer]) -> tuple[Ints, Ints]:
        """Numbers of values and keys; -1 where a token has none."""
        keys, values = np.divmod(tokens.astype(np.int64), 1 + self.asked.values)
        return values - 1, keys - 1

    def _pairs(self, source: Ints) -> tuple[Ints, Ints]:
        """Values and keys of the pairs of a source, one for each."""
        values, keys = self._parts(source)
        return values[self.asked.apart :: self._slots], keys[:: self._slots]

    def _draw(self, keys_R: U64) -> Drawn:
        pairs, queries, rows = self.pairs, self.asked.queries, len(keys_R)
        keys_RP = shuffled(keys_R, _KEYS, self.asked.keys)[:, :pairs]
        values_RP = below(keys_R[:, None], _VALUES + np.arange(pairs), self.asked.values)
        order_RQ = shuffled(keys_R, _ORDER, pairs)[:, :queries]
        of_values_RP, of_keys_RP = 1 + values_RP, (1 + self.asked.values) * (1 + keys_RP)

        tokens_RIN = np.zeros((rows, 2, self.length), dtype=np.int64)
        kept_RIN = np.zeros(tokens_RIN.shape, dtype=np.bool_)
        labels_RIN = np.full(tokens_RIN.shape, UNASKED)
        tokens_RIN[:, 0, : pairs * self._slots : self._slots] = of_keys_RP
        # Into the same token, or into the one after it.
        tokens_RIN[:, 0, self.asked.apart : pairs * self._slots : self._slots] += of_values_RP
        kept_RIN[:, 0, : pairs * self._slots] = True
        tokens_RIN[:, 1, :queries] = np.take_along_axis(of_keys_RP, order_RQ, axis=1)
        labels_RIN[:, 1, :queries] = np.take_along_axis(values_RP, order_RQ, axis=1)
        kept_RIN[:, 1, :queries] = True
        kind = np.uint16 if self.vocabulary <= 1 << 16 else np.int32
        return Drawn(tokens_RIN.astype(kind), kept_RIN, labels_RIN.astype(np.int16))
