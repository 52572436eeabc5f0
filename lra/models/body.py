"""The contract of bodies: the network between an embedding and a head.

B sequences, N positions, D model width
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from attention_impls.contract import Context


class Stream:
    """Vectors, (B, N, D), on their way into a body.

    Whoever takes them holds them alone: an argument would stay alive in its callers, and an
    evaluation would keep one activation more.
    """

    def __init__(self, x_BND: Tensor) -> None:
        self._taken: list[Tensor] = [x_BND]

    def take(self) -> Tensor:
        """Return the vectors, once."""
        return self._taken.pop()


class Carried(NamedTuple):
    """Result of a body."""

    x_BND: Tensor
    states: list[Any] | None = None
    """Where states were given: these, advanced by N positions."""


class Body(nn.Module, ABC):
    """A network of layers and blocks, which owns the loop over them.

    With `recompute`, training keeps only a block's input and computes the block again on the way
    back.
    """

    recompute: bool = False

    @abstractmethod
    def forward(
        self, stream: Stream, context: Context, *, states: Sequence[Any] | None = None
    ) -> Carried:
        """Return (B, N, D), and the states after these positions where some were given: they go on
        from them."""

    @abstractmethod
    def init_states(
        self, batch: int, *, length: int, device: torch.device, dtype: torch.dtype
    ) -> list[Any]:
        """Return empty decode states, one a layer, for up to `length` positions.

        Raises `UnsupportedError` where a mechanism does not decode.
        """

    @abstractmethod
    def select_states(self, states: Sequence[Any], index_B: Tensor) -> list[Any]:
        """Return the states of these rows of the batch, in this order: rows may be repeated and
        left out, and the old states stay as they were. `index_B` is int64."""
