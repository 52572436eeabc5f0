"""Functions in context: which of a pool of functions is it, by its name or by demonstrations?

A row is a name or a blank, then pairs of an argument and its value, then an argument alone: zero,
one and few shots of Brown et al., "Language Models are Few-Shot Learners", NeurIPS 2020 (arXiv
2005.14165), on functions as in Garg et al., "What Can Transformers Learn In-Context?", NeurIPS 2022
(arXiv 2208.01066), but of symbols, so that the best possible prediction is known exactly. Each
value is asked for before it is shown.

E examples, D demonstrations, A arguments asked (D + 1), T functions of the pool, V symbols
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, NamedTuple, cast

import msgspec
import numpy as np
import numpy.typing as npt

from lra.core.cards import TaskCard
from lra.core.dataset import UNASKED, Dataset, Split, SplitName
from lra.core.errors import UsageError
from lra.core.protocol import Rules
from tasks.contract import Task, TaskConfig
from tasks.generators.counter import U64, below, row_keys, shuffled, stream_key
from tasks.generators.disjoint import Drawn, disjoint_split

_BLANK, _FIRST_NAME = 1, 2
"""Token ids of the blank and of the first name; symbols come after the names."""
_FUNCTION, _IS_NAMED, _ARGUMENTS = (number << 24 for number in range(3))
"""Where in an example's stream each kind of draw begins."""

Ints = npt.NDArray[np.int64]
Shares = npt.NDArray[np.float64]


class InContextConfig(TaskConfig, frozen=True):
    """How many functions there are to tell apart, and how much is shown of one."""

    functions: Annotated[int, msgspec.Meta(ge=1, le=32_000)] = 16
    """Functions in the pool, drawn once from the data seed; half of the rows name theirs."""
    symbols: Annotated[int, msgspec.Meta(ge=2, le=32_000)] = 16
    """Different symbols there are, arguments and values alike, and so classes."""
    demonstrations: Annotated[int, msgspec.Meta(ge=0)] = 8
    """Pairs shown in a row; its arguments differ."""


class Prompts(NamedTuple):
    """Rows read back from their tokens."""

    named_E: Ints
    """Number of the named function; -1 where the name is blank."""
    arguments_EA: Ints
    values_ED: Ints


class InContext(Task):
    """The label of an argument is the number of its value."""

    card = TaskCard(
        title="Functions in context",
        source="in-context learning, Brown et al. 2020 (arXiv 2005.14165), Garg et al. 2022",
        classes=16,
        vocabulary=34,
        asks="token",
    )
    Config = InContextConfig

    def __init__(self, config: TaskConfig, *, length: int, rules: Rules = "fixed") -> None:
        super().__init__(config, length=length, rules=rules)
        self.asked = cast(InContextConfig, config)
        if self.asked.demonstrations >= self.asked.symbols:
            raise UsageError(
                f"in_context: {self.asked.demonstrations} demonstrations and a question need "
                f"{self.asked.demonstrations + 1} symbols, there are {self.asked.symbols}; raise "
                "symbols or lower demonstrations"
            )
        if self.row_length > length:
            raise UsageError(
                f"in_context: {self.asked.demonstrations} demonstrations take {self.row_length} "
                f"tokens, the length is {length}; lower demonstrations, or use a longer length"
            )

    @property
    def classes(self) -> int:
        """One class for each symbol."""
        return self.asked.symbols

    @property
    def vocabulary(self) -> int:
        """Padding, the blank, names and symbols."""
        return self._first_symbol + self.asked.symbols

    @property
    def row_length(self) -> int:
        """Tokens of every row: the name, the pairs and the last argument."""
        return 2 + 2 * self.asked.demonstrations

    @property
    def _first_symbol(self) -> int:
        return _FIRST_NAME + self.asked.functions

    @cached_property
    def pool(self) -> Ints:
        """The value of each function at each symbol, (T, V)."""
        return self.drawn_functions("pool")

    def drawn_functions(self, name: str) -> Ints:
        """Return random functions, (T, V); each name of a pool has its own."""
        stream = stream_key("in_context", name, self.config.data_seed)
        keys_T = row_keys(stream, np.arange(self.asked.functions))
        return below(keys_T[:, None], np.arange(self.asked.symbols), self.asked.symbols)

    def generate(self, split: SplitName, rows: int) -> Split:
        """Make `rows` sequences, all of the length of a row; tokens are uint16."""
        stream = stream_key("in_context", self.config.data_seed)
        return disjoint_split(self._draw, stream, split, rows)

    def shown(self, tokens: npt.NDArray[np.integer]) -> str:
        """Return the name as f3, or _ for a blank, and pairs as 7:2."""
        first, *symbols = tokens.tolist()
        name = "_" if first == _BLANK else f"f{first - _FIRST_NAME}"
        told = [str(symbol - self._first_symbol) for symbol in symbols]
        return " ".join([name, *(":".join(told[at : at + 2]) for at in range(0, len(told), 2))])

    def floor(self, data: Dataset) -> float:
        """Return the accuracy that the best possible prediction has on the test split."""
        return float(self.best_accuracies(data.test).mean())

    def best_accuracies(self, split: Split) -> Shares:
        """Return the probability that the best answer is right, (E, A): exactly, by Bayes.

        Every function of the pool that fits what is shown is as likely as any other; the best
        answer is the value that most of them have. Where none fits, it is a guess.
        """
        votes_EAV = self._votes(self.prompts(split))
        number_EA = votes_EAV.sum(axis=2)
        best_EA = votes_EAV.max(axis=2) / np.maximum(number_EA, 1)
        return np.where(number_EA > 0, best_EA, 1 / self.asked.symbols)

    def best_answers(self, split: Split) -> Ints:
        """Return the value that most of the fitting functions have, (E, A), the lowest of equals;
        0 where none fits."""
        answers_EA: Ints = self._votes(self.prompts(split)).argmax(axis=2)
        return answers_EA

    def rules_of_thumb(self, data: Dataset) -> dict[str, float]:
        """Return the test accuracy of the commonest value shown so far, and of the best prediction
        from the name, without any demonstration."""
        prompts = self.prompts(data.test)
        labels_EA = data.test.labels.reshape(len(data.test), -1)[:, 1::2]
        shown_EDV = np.eye(self.asked.symbols, dtype=np.int64)[prompts.values_ED].cumsum(axis=1)
        before_EAV = np.concatenate([np.zeros_like(shown_EDV[:, :1]), shown_EDV], axis=1)
        if not self.asked.demonstrations:
            before_EAV = np.zeros((*labels_EA.shape, self.asked.symbols), dtype=np.int64)
        by_name_EAV = self._votes(prompts, are_shown=False)
        return {
            "a value shown": float((before_EAV.argmax(axis=2) == labels_EA).mean()),
            "the name alone": float((by_name_EAV.argmax(axis=2) == labels_EA).mean()),
        }

    def prompts(self, split: Split) -> Prompts:
        """Return what the rows of a generated split say."""
        tokens_EN = split.tokens.reshape(len(split), -1).astype(np.int64)
        return Prompts(
            np.where(tokens_EN[:, 0] == _BLANK, -1, tokens_EN[:, 0] - _FIRST_NAME),
            tokens_EN[:, 1::2] - self._first_symbol,
            tokens_EN[:, 2::2] - self._first_symbol,
        )

    def _votes(self, prompts: Prompts, *, are_shown: bool = True) -> Ints:
        """Number of functions that fit the name and, if these are shown, the pairs before, by their
        value at each argument, (E, A, V)."""
        arguments_EA, values_ED = prompts.arguments_EA, prompts.values_ED
        votes_EAV = np.zeros((*arguments_EA.shape, self.asked.symbols), dtype=np.int64)
        rows_E1 = np.arange(len(arguments_EA))[:, None]
        places_1A = np.arange(arguments_EA.shape[1])[None]
        for number, values_V in enumerate(self.pool):
            told_EA = values_V[arguments_EA]
            fits_EA = np.ones(told_EA.shape, dtype=np.bool_)
            if are_shown:
                right_ED = told_EA[:, :-1] == values_ED
                fits_EA[:, 1:] = np.logical_and.accumulate(right_ED, axis=1)
            fits_EA &= ((prompts.named_E == number) | (prompts.named_E < 0))[:, None]
            votes_EAV[rows_E1, places_1A, told_EA] += fits_EA
        return votes_EAV

    def _draw(self, keys_R: U64) -> Drawn:
        asked, rows = self.asked.demonstrations + 1, len(keys_R)
        function_R = below(keys_R, _FUNCTION, self.asked.functions)
        is_named_R = below(keys_R, _IS_NAMED, 2) == 1
        arguments_RA = shuffled(keys_R, _ARGUMENTS, self.asked.symbols)[:, :asked]
        values_RA = self.pool[function_R[:, None], arguments_RA]
        tokens_RN = np.empty((rows, self.row_length), dtype=np.int64)
        tokens_RN[:, 0] = np.where(is_named_R, _FIRST_NAME + function_R, _BLANK)
        tokens_RN[:, 1::2] = self._first_symbol + arguments_RA
        tokens_RN[:, 2::2] = self._first_symbol + values_RA[:, :-1]
        labels_RN = np.full(tokens_RN.shape, UNASKED)
        labels_RN[:, 1::2] = values_RA
        kept_RIN = np.ones((rows, 1, self.row_length), dtype=np.bool_)
        return Drawn(
            tokens_RN[:, None].astype(np.uint16), kept_RIN, labels_RN[:, None].astype(np.int16)
        )
