"""What a task is: a card, generator parameters, a seeded generator, and a loader of real files.

To add a task, write one file here that defines one `Task` subclass. Nothing in this room imports
torch; randomness is the counter-based generator of `tasks.generators.counter`, in integers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

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


class Task(ABC):
    """One task at one length under one set of rules.

    `length` is the longest sequence in tokens (for images: width times height).
    """

    card: ClassVar[TaskCard]
    Config: ClassVar[type[TaskConfig]]

    def __init__(self, config: TaskConfig, *, length: int, rules: Rules = "fixed") -> None:
        self.config = config
        self.length = length
        self.rules = rules

    @property
    def classes(self) -> int:
        """Number of labels; a task whose configuration decides it overrides this."""
        return self.card.classes

    @abstractmethod
    def generate(self, split: SplitName, rows: int) -> Split:
        """Make `rows` examples of a split, offline: the same bytes on every machine.

        No example may occur in two splits. Asking for more rows keeps the earlier ones.
        """

    def load(self, source: str, rows: Rows) -> Dataset:
        """Read real data from a file, a folder or `hub` and return its splits.

        Raises `DataError` naming file, row and remedy. The default refuses.
        """
        raise DataError(
            f"{type(self).__module__.rpartition('.')[2]} reads no real data yet "
            f"(asked for '{source}'); leave out --data to use its generator"
        )

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
            vocabulary=self.card.vocabulary,
            length=self.length,
            inputs=self.card.inputs,
        )

    def shown(self, tokens: npt.NDArray[np.integer]) -> str:
        """Return one sequence as a person reads it: by default the token ids."""
        return " ".join(map(str, tokens.tolist()))

    def rules_of_thumb(self, data: Dataset) -> dict[str, float]:
        """Test accuracy of simple rules particular to this task, by name; none by default."""
        return {}
