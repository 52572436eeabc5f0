"""Bigrams in context: each row is a Markov chain of its own, to be learned while it is read.

Edelman et al., "The Evolution of Statistical Induction Heads: In-Context Learning Markov Chains",
NeurIPS 2024 (arXiv 2402.11004); made here from a seed. A row's transitions are drawn from a
Dirichlet distribution. Polya's urns draw such a chain without the transitions, in integers: after
each symbol the next has a weight of alpha and one for each time that it came next before
(Blackwell and MacQueen 1973). So the probability of every symbol is known exactly, and with it the
least loss that a prediction can have.

R rows, N symbols of a row, V different symbols, C contexts
"""

from __future__ import annotations

from typing import Annotated, cast

import msgspec
import numpy as np
import numpy.typing as npt

from lra.core.cards import TaskCard
from lra.core.dataset import Dataset, Split, SplitName
from lra.core.errors import UsageError
from lra.core.protocol import Rules
from tasks.contract import Task, TaskConfig
from tasks.generators.counter import U64, below, stream_key
from tasks.generators.disjoint import Drawn, disjoint_split

_FIRST = 1
"""Token id of symbol 0."""
_LARGEST = 4096
"""Weights of a row: those of a batch of rows have to fit into memory."""

Ints = npt.NDArray[np.int64]


class BigramsConfig(TaskConfig, frozen=True):
    """How many symbols there are, and how surely one follows from those before it."""

    symbols: Annotated[int, msgspec.Meta(ge=2)] = 32
    """Different symbols there are, and so classes."""
    alpha_percent: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 30
    """Hundred times the parameter of the Dirichlet distribution, the same for each symbol: the
    less, the surer the next symbol."""
    order: Annotated[int, msgspec.Meta(ge=2, le=4)] = 2
    """Symbols of an n-gram: the next depends on one fewer before it."""


class Bigrams(Task):
    """The label of each symbol is the number of the one after it."""

    card = TaskCard(
        title="Bigrams in context",
        source="in-context Markov chains, Edelman et al. 2024 (arXiv 2402.11004)",
        classes=32,
        vocabulary=33,
        asks="token",
        answers_first=1,
        metric="nat",
    )
    Config = BigramsConfig

    def __init__(self, config: TaskConfig, *, length: int, rules: Rules = "fixed") -> None:
        super().__init__(config, length=length, rules=rules)
        self.asked = cast(BigramsConfig, config)
        weights = self.asked.symbols**self.asked.order
        if weights > _LARGEST:
            raise UsageError(
                f"bigrams: {self.asked.symbols} symbols at order {self.asked.order} are {weights} "
                f"n-grams, more than {_LARGEST}; lower symbols or order"
            )

    @property
    def classes(self) -> int:
        """One class for each symbol."""
        return self.asked.symbols

    @property
    def vocabulary(self) -> int:
        """Padding and the symbols."""
        return _FIRST + self.asked.symbols

    def generate(self, split: SplitName, rows: int) -> Split:
        """Make `rows` sequences as long as the length; tokens are uint16."""
        stream = stream_key("bigrams", self.config.data_seed)
        return disjoint_split(self._draw, stream, split, rows)

    def shown(self, tokens: npt.NDArray[np.integer]) -> str:
        """Return the symbols' numbers."""
        return " ".join(str(token - _FIRST) for token in tokens.tolist())

    def floor(self, data: Dataset) -> float:
        """Return the mean loss of the best possible prediction on the test split, in nat."""
        return float(self.least_losses(data.test).mean())

    def least_losses(self, split: Split) -> npt.NDArray[np.float64]:
        """Return the loss of the best possible prediction at each token, in nat, (R, N).

        It predicts by the n-grams counted so far, each with alpha added: exactly how the row was
        drawn.
        """
        texts_RN = _texts(split)
        lost_RN = np.full((len(texts_RN), self.length), np.log(self.asked.symbols))
        urns = _Urns(self.asked, len(texts_RN))
        for place in range(self.length + 1):
            if place >= urns.start:
                lost_RN[:, place - 1] = -np.log(urns.shares(texts_RN[:, place]))
            urns.take(texts_RN[:, place])
        return lost_RN

    def rules_of_thumb(self, data: Dataset) -> dict[str, float]:
        """Return the test loss, in nat, of predicting the frequencies of the symbols so far, each
        plus one: what can be had without looking at what followed what."""
        texts_RN = _texts(data.test)
        counts_RNV = np.eye(self.asked.symbols, dtype=np.int64)[texts_RN[:, :-1]].cumsum(axis=1)
        shares_RNV = (counts_RNV + 1) / (counts_RNV.sum(axis=2, keepdims=True) + self.asked.symbols)
        right_RN = np.take_along_axis(shares_RNV, texts_RN[:, 1:, None], axis=2)
        return {"counts of symbols": float(-np.log(right_RN).mean())}

    def _draw(self, keys_R: U64) -> Drawn:
        urns = _Urns(self.asked, len(keys_R))
        texts_RN = np.empty((len(keys_R), self.length + 1), dtype=np.int64)
        for place in range(self.length + 1):
            texts_RN[:, place] = urns.draw(keys_R, place)
            urns.take(texts_RN[:, place])
        tokens_RIN = (_FIRST + texts_RN[:, None, :-1]).astype(np.uint16)
        labels_RIN = texts_RN[:, None, 1:].astype(np.int16)
        return Drawn(tokens_RIN, np.ones(tokens_RIN.shape, dtype=np.bool_), labels_RIN)


class _Urns:
    """How often each symbol followed each context in R rows, in hundredths and with alpha."""

    def __init__(self, asked: BigramsConfig, rows: int) -> None:
        self.symbols, self.start = asked.symbols, asked.order - 1
        """The first symbols, fewer than a context has, are as likely as any others."""
        self.contexts = asked.symbols**self.start
        self.rows_R = np.arange(rows)
        shape = (rows, self.contexts, asked.symbols)
        self.weights_RCV = np.full(shape, asked.alpha_percent, dtype=np.int32)
        self.context_R = np.zeros(rows, dtype=np.int64)
        self.place = 0

    def weights(self) -> Ints:
        """Return the weight of each symbol to come next, (R, V)."""
        if self.place < self.start:
            return np.ones((len(self.rows_R), self.symbols), dtype=np.int64)
        return self.weights_RCV[self.rows_R, self.context_R].astype(np.int64)

    def shares(self, symbols_R: Ints) -> npt.NDArray[np.float64]:
        """Return the probability of these symbols to come next, (R,)."""
        weights_RV = self.weights()
        shares_R: npt.NDArray[np.float64] = weights_RV[self.rows_R, symbols_R] / weights_RV.sum(
            axis=1
        )
        return shares_R

    def draw(self, keys_R: U64, index: int) -> Ints:
        """Return a symbol for each row, (R,), by the weights."""
        ends_RV = self.weights().cumsum(axis=1)
        drawn_R = below(keys_R, index, ends_RV[:, -1])
        symbols_R: Ints = (ends_RV <= drawn_R[:, None]).sum(axis=1)
        return symbols_R

    def take(self, symbols_R: Ints) -> None:
        """Go on by one symbol of each row."""
        if self.place >= self.start:
            self.weights_RCV[self.rows_R, self.context_R, symbols_R] += 100
        self.context_R = (self.context_R * self.symbols + symbols_R) % self.contexts
        self.place += 1


def _texts(split: Split) -> Ints:
    """The symbols of each row and the one after its last token, (R, N + 1)."""
    tokens_RN = split.tokens.reshape(len(split), -1).astype(np.int64) - _FIRST
    labels_RN = split.labels.reshape(len(split), -1).astype(np.int64)
    return np.concatenate([tokens_RN, labels_RN[:, -1:]], axis=1)
