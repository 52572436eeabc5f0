"""Tasks of the probe: short ragged rows, on which ten steps reach every branch of a trainer."""

from __future__ import annotations

import numpy as np

from lra.core.cards import TaskCard
from lra.core.dataset import UNASKED, Split, SplitName
from tasks.contract import Task, TaskConfig

SHORTEST = 5
SEEDS: dict[SplitName, int] = {"train": 0, "validation": 1, "test": 2}


class Rows(Task):
    """A label for each sequence of 5 tokens or more."""

    Config = TaskConfig
    card = TaskCard(title="ragged rows", source="none", classes=4, vocabulary=17, picture=True)

    def generate(self, split: SplitName, rows: int) -> Split:
        """Make random tokens; the label follows from the first and the last."""
        draws = np.random.default_rng([SEEDS[split], self.card.inputs, self.length])
        lengths = draws.integers(SHORTEST, self.length, rows * self.card.inputs, endpoint=True)
        if self.card.picture:
            lengths[:] = self.length
        found = [draws.integers(1, 17, n).astype(np.uint8) for n in lengths]
        if self.card.asks == "example":
            labels = [(int(s[0]) + int(s[-1])) % 4 for s in found[:: self.card.inputs]]
            return Split.of(found, labels, self.card.inputs)
        # A token's label is the next token; nothing comes after the last.
        told = [np.append(s[1:].astype(np.int16) % 4, UNASKED) for s in found]
        return Split.of(found, np.concatenate(told), by_token=True)


class Ragged(Rows):
    """The same task with sequences of different lengths."""

    card = TaskCard(title="ragged rows", source="none", classes=4, vocabulary=17)


class Pairs(Rows):
    """A label for each pair of sequences."""

    card = TaskCard(title="ragged pairs", source="none", classes=4, vocabulary=17, inputs=2)


class Tokens(Rows):
    """A label for each token but the last."""

    card = TaskCard(
        title="ragged tokens", source="none", classes=4, vocabulary=17, asks="token",
        metric="bits_per_byte",
    )  # fmt: skip


class Sequences(Rows):
    """A source, and its tokens backwards as far as the length allows."""

    card = TaskCard(
        title="ragged sequences", source="none", classes=16, vocabulary=18, inputs=2,
        asks="sequence", answers_first=1,
    )  # fmt: skip

    def generate(self, split: SplitName, rows: int) -> Split:
        """Make random sources; an answer begins with the token 17."""
        draws = np.random.default_rng([SEEDS[split], self.length])
        tokens, labels = [], []
        for n in draws.integers(SHORTEST, self.length, rows, endpoint=True):
            source = draws.integers(1, 17, n).astype(np.uint8)
            answer = source[::-1]
            tokens += [source, np.append(np.uint8(17), answer[:-1])]
            labels += [np.full(n, UNASKED), answer.astype(np.int16) - 1]
        return Split.of(tokens, np.concatenate(labels), 2, by_token=True)
