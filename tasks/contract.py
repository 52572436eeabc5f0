"""Tasks: a card, generator parameters, a seeded generator, and the parts of a real set.

To add a task, write one file here that defines one `Task` subclass. Nothing in this room imports
torch; randomness is the counter-based generator of `tasks.generators.counter`, in integers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from lra.core.cards import TaskCard
from lra.core.dataset import SPLITS, Dataset, Split, SplitName
from lra.core.errors import DataError
from lra.core.protocol import Rows, Rules


class TaskConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Generator parameters of a task; a subclass adds its own with the original's defaults."""

    data_seed: int = 0
    """Seed of the generated data; `--seeds` never changes it."""


class Example(NamedTuple):
    """One example of a real set, uncut."""

    split: SplitName
    tokens: tuple[npt.NDArray[np.integer], ...]
    """One array a sequence: one, or two of a pair; all of one dtype for a task."""
    label: int | npt.NDArray[np.integer]
    """An array where each token has one, of a source and the asked sequence one after the other."""


OnDefect = Callable[[DataError], None]
"""A reader's answer to a wrong row: raise, or note it, leave the row out and go on."""


def refuse(defect: DataError) -> None:
    """Raise at the first defect."""
    raise defect


class Part(NamedTuple):
    """A piece of a real set that can be read by itself, such as a file: what preparing goes on
    from where it was stopped."""

    name: str
    """A file's name without its folders, for progress and errors."""
    examples: Callable[[OnDefect], Iterable[Example]]
    split: SplitName | None = None
    """The split that all of it belongs to; None where each example says so."""


class Task(ABC):
    """One task at one length under one set of rules.

    `length` is the longest sequence in tokens (for images: width times height).
    """

    card: ClassVar[TaskCard]
    Config: ClassVar[type[TaskConfig]]
    hub: ClassVar[str | None] = None
    """The set of the Hugging Face hub that `--data TASK=hub` stands for."""
    cuttable: ClassVar[bool] = True
    """Whether a longer sequence may be cut on the right to the length; a picture may not."""

    def __init__(self, config: TaskConfig, *, length: int, rules: Rules = "fixed") -> None:
        self.config = config
        self.length = length
        self.rules = rules

    @property
    def name(self) -> str:
        """The task's name: its file's stem."""
        return type(self).__module__.rpartition(".")[2]

    @property
    def classes(self) -> int:
        """Number of labels; a task whose configuration decides it overrides this."""
        return self.card.classes

    @property
    def vocabulary(self) -> int:
        """Number of token ids; a task whose configuration decides it overrides this."""
        return self.card.vocabulary

    @property
    def token_parts(self) -> tuple[int, ...]:
        """Sizes of the parts that a token consists of, the lowest first, as in `Dataset.parts`; a
        task whose tokens have several overrides this."""
        return ()

    @abstractmethod
    def generate(self, split: SplitName, rows: int) -> Split:
        """Make `rows` examples of a split, offline: the same bytes on every machine.

        No example may occur in two splits. Asking for more rows keeps the earlier ones.
        """

    @property
    def part_rows(self) -> int | None:
        """Rows that `generate_part` makes in some seconds; None where there is no such method."""
        return None

    def generate_part(self, split: SplitName, first: int, rows: int) -> Split:
        """Make the rows of `generate` from number `first` on, without those before: the same bytes.

        For tasks that say their `part_rows`: all cores make parts side by side, and a process that
        was killed goes on with the next.
        """
        raise NotImplementedError

    def parts(self, source: str) -> Sequence[Part]:
        """Return the pieces of a real set in a file, a folder or `hub:NAME`.

        In an order, and with examples, that depend on the set's content alone, whatever order its
        files arrived in. Raises `DataError` naming file and remedy where the set as a whole is
        none; what is wrong with a row goes to `OnDefect` when a part is read. The default refuses.
        """
        raise DataError(
            f"{self.name} reads no real data (asked for '{source}'); where none is named its "
            f"generator is used"
        )

    def wanted(self, part: Part, rows: Rows, have: Mapping[SplitName, int]) -> Iterator[Example]:
        """Yield what a part adds to a set of at most `rows` of each split, cut to the length.

        `have` is how many of each split are there. Lazily: a fault past what is needed is not met.
        """
        splits = SPLITS if part.split is None else (part.split,)
        left = {split: rows.of(split) - have[split] for split in splits}
        if max(left.values()) <= 0:
            return
        for example in part.examples(refuse):
            if left[example.split] > 0:
                left[example.split] -= 1
                yield self.cut(example)
            if max(left.values()) <= 0:
                return

    def cut(self, example: Example) -> Example:
        """Return an example that keeps no more of its sequences than the length."""
        if all(len(tokens) <= self.length for tokens in example.tokens):
            return example
        # Copies: a view would keep the whole in memory.
        tokens = tuple(tokens[: self.length].copy() for tokens in example.tokens)
        if self.card.asks == "example":
            return Example(example.split, tokens, example.label)
        ends = np.cumsum([len(whole) for whole in example.tokens])[:-1]
        told = np.split(np.asarray(example.label), ends)
        labels = np.concatenate([labels[: self.length] for labels in told])
        return Example(example.split, tokens, labels)

    def joined(self, examples: Sequence[Example]) -> Split:
        """Return examples as one split."""
        sequences = [tokens for example in examples for tokens in example.tokens]
        if self.card.asks == "example":
            labels = np.array([example.label for example in examples])
            return Split.of(sequences, labels, self.card.inputs)
        told = [np.asarray(example.label) for example in examples]
        return Split.of(sequences, np.concatenate(told), self.card.inputs, by_token=True)

    def generated(self, rows: Rows) -> Dataset:
        """Return all three splits from the generator."""
        return self.dataset({name: self.generate(name, rows.of(name)) for name in SPLITS})

    def dataset(self, splits: Mapping[SplitName, Split]) -> Dataset:
        """Wrap splits with what the card says of them."""
        return Dataset(
            train=splits["train"],
            validation=splits["validation"],
            test=splits["test"],
            classes=self.classes,
            vocabulary=self.vocabulary,
            length=self.length,
            inputs=self.card.inputs,
            parts=self.token_parts,
        )

    def real_dataset(self, splits: Mapping[SplitName, Split]) -> Dataset:
        """Wrap splits of a real set: a generator may be set to fewer classes than it has."""
        return replace(self.dataset(splits), classes=self.card.classes)

    def shown(self, tokens: npt.NDArray[np.integer]) -> str:
        """Return one sequence as a person reads it: by default the token ids."""
        return " ".join(map(str, tokens.tolist()))

    def solve(self, split: Split) -> npt.NDArray[np.integer] | None:
        """Return what the task's own rule answers to a generated split, from its tokens alone, in
        the form of the split's labels; None where nothing is solved so.

        Labels are not looked at, `UNASKED` apart. Its score is the best that is possible.
        No data may be made by it: its source, with what it imports itself, is in the hash of
        baselines, not of data.
        """
        return None

    def floor(self, data: Dataset) -> float | None:
        """Return the best score that any prediction can be expected to have on the test split, in
        the card's metric; None where that is not known.

        It depends on how the data was drawn: a real set has none. Hashed as `solve` is.
        """
        return None

    def rules_of_thumb(self, data: Dataset) -> dict[str, float]:
        """Test score of simple rules particular to this task, by name; none by default.

        Hashed as `solve` is.
        """
        return {}
