"""Data as flat buffers, from a task to the trainer and the baselines. numpy only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

import numpy as np
import numpy.typing as npt

from lra.core.protocol import SPLITS, Rows, SplitName

__all__ = ["PAD", "SPLITS", "UNASKED", "Dataset", "Split", "SplitName"]

PAD = 0
"""Token id that fills up a batch. The mask says which positions are real, never the id."""

UNASKED = -1
"""Label of a token without a question."""


@dataclass(frozen=True)
class Split:
    """Examples of one split, unpadded, one after the other.

    Sequence s holds tokens[starts[s]:starts[s + 1]]; example i owns the sequences
    inputs * i ... inputs * i + inputs - 1 (two for pairs of documents).
    """

    tokens: npt.NDArray[np.integer]
    """(total,) uint8, uint16 or int32, flat; may be a read-only view of a file."""
    starts: npt.NDArray[np.int64]
    """(examples * inputs + 1,)"""
    labels: npt.NDArray[np.integer]
    """(examples,) int64; where each token has one, (total,) int16, `UNASKED` for tokens without a
    question, and for all tokens of a source."""
    inputs: int = 1
    by_token: bool = False
    """Whether each token has a label, rather than each example. The first of two sequences is then
    a source, and the tokens of the second are asked."""

    def __post_init__(self) -> None:
        """Check that the three buffers fit together, and that examples of labelled tokens have one
        sequence, or a source and another."""
        if self.by_token and self.inputs > 2:
            raise ValueError(
                f"tokens have labels in examples of {self.inputs} sequences; make it one sequence, "
                "or a source and one whose tokens are asked"
            )
        labelled = len(self.tokens) if self.by_token else len(self)
        if len(self.starts) != len(self) * self.inputs + 1 or len(self.labels) != labelled:
            raise ValueError(
                f"{len(self.starts)} starts do not fit {len(self.labels)} labels "
                f"of {'tokens' if self.by_token else 'examples'} of {self.inputs} sequences"
            )
        if len(self.starts) and int(self.starts[-1]) != len(self.tokens):
            raise ValueError(f"starts end at {self.starts[-1]}, tokens at {len(self.tokens)}")

    def __len__(self) -> int:
        """Number of examples."""
        return (len(self.starts) - 1) // self.inputs

    @property
    def has_source(self) -> bool:
        """Whether an example is a source, and a sequence whose tokens have labels."""
        return self.by_token and self.inputs == 2

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """(examples, inputs): tokens in each sequence."""
        return np.diff(self.starts).reshape(len(self), self.inputs)

    def first(self, rows: int) -> Split:
        """Return the first examples, a view."""
        starts = self.starts[: min(rows, len(self)) * self.inputs + 1]
        labels = self.labels[: starts[-1] if self.by_token else (len(starts) - 1) // self.inputs]
        return replace(self, tokens=self.tokens[: starts[-1]], starts=starts, labels=labels)

    def sequence(self, index: int) -> npt.NDArray[np.integer]:
        """Return the tokens of one sequence, a view."""
        return self.tokens[self.starts[index] : self.starts[index + 1]]

    @classmethod
    def of(
        cls,
        sequences: Sequence[npt.NDArray[np.integer]],
        labels: npt.ArrayLike,
        inputs: int = 1,
        by_token: bool = False,
    ) -> Split:
        """Join a list of token arrays (all of one dtype) into a split."""
        starts = np.zeros(len(sequences) + 1, dtype=np.int64)
        np.cumsum([len(s) for s in sequences], out=starts[1:])
        tokens = np.concatenate(sequences) if sequences else np.zeros(0, dtype=np.uint8)
        kind = np.int16 if by_token else np.int64
        return cls(tokens, starts, np.asarray(labels, dtype=kind), inputs, by_token)


@dataclass(frozen=True)
class Dataset:
    """The three splits of a task at one length, with the facts about them that a model needs."""

    train: Split
    validation: Split
    test: Split
    classes: int
    vocabulary: int
    length: int
    """Longest sequence that a model must take, a prepended class token not counted."""
    inputs: int = 1
    parts: tuple[int, ...] = ()
    """Sizes of the parts that a token consists of, such as a key and its value; () where it has one
    alone. Its id is their number in mixed radix, the first part lowest: a + size of a * b."""

    def __post_init__(self) -> None:
        """Check that the parts make up the vocabulary."""
        if self.parts and prod(self.parts) != self.vocabulary:
            raise ValueError(
                f"parts of {self.parts} make {prod(self.parts)} tokens, the vocabulary has "
                f"{self.vocabulary}; make them the same"
            )

    @property
    def rows(self) -> Rows:
        """Examples of each split."""
        return Rows(train=len(self.train), validation=len(self.validation), test=len(self.test))

    def split(self, name: SplitName) -> Split:
        """Return the split of that name."""
        return {"train": self.train, "validation": self.validation, "test": self.test}[name]

    def shuffled(self) -> Dataset:
        """Return the same data with the tokens of each sequence in a random order, always the
        same."""
        return replace(
            self,
            train=_shuffled(self.train),
            validation=_shuffled(self.validation),
            test=_shuffled(self.test),
        )

    def __iter__(self) -> Iterator[tuple[SplitName, Split]]:
        """Iterate over (name, split) in the order train, validation, test."""
        for name in SPLITS:
            yield name, self.split(name)


def _shuffled(split: Split) -> Split:
    if split.by_token:
        raise ValueError("a token's label is lost with its place")
    draws = np.random.default_rng(0)
    tokens = split.tokens.copy()
    for first, last in pairwise(split.starts.tolist()):
        draws.shuffle(tokens[first:last])
    return replace(split, tokens=tokens)
