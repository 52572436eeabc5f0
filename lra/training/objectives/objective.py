"""The contract of objectives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

from torch import Tensor

from lra.models.output import Output
from lra.training.batches import Batch


class Counts(NamedTuple):
    """Counts over one batch."""

    loss: Tensor
    """Loss summed over the labels, in nat, ()."""
    correct: Tensor
    """Number of correctly predicted labels; int64, ()."""


class Objective(ABC):
    """From a model's output and the batch that it read to a loss, in float32 whatever it computed
    in."""

    @abstractmethod
    def loss(self, output: Output, batch: Batch) -> Tensor:
        """Return the loss summed over the batch's labels, in nat, (): all that a training step
        computes."""

    @abstractmethod
    def tally(self, output: Output, batch: Batch) -> Counts:
        """Return the same loss with the counts that an evaluation reports."""
