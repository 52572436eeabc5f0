"""The decoder: a stack in which no position depends on a later one.

B sequences, N positions, D model width
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn

from attention_impls.contract import Context
from lra.core.errors import UnsupportedError, UsageError
from lra.models.block import Block, Memory
from lra.models.body import Carried, Stream
from lra.models.stack import Stack


class Decoder(Stack):
    """A strictly causal stack (GPT: Radford et al., 2018).

    Raises `UnsupportedError` for a mechanism that is not strictly causal.
    """

    def __init__(
        self, blocks: Sequence[Block], *, norm: nn.Module | None, shared: Sequence[nn.Module] = ()
    ) -> None:
        super().__init__(blocks, norm=norm, shared=shared)
        for block in blocks:
            causality = block.mechanism.card.capabilities.causal
            if causality != "strict":
                raise UnsupportedError(
                    f"{block.mechanism.name} is not strictly causal (causal: {causality}), and a "
                    "decoder predicts each token; choose a mechanism that is"
                )

    def forward(
        self,
        stream: Stream,
        context: Context,
        *,
        states: Sequence[Any] | None = None,
        memory: Memory | None = None,
    ) -> Carried:
        """Return (B, N, D), and the states after these positions where some were given.

        Raises `UsageError` for a request that is not causal.
        """
        if not context.causal:
            raise UsageError("a decoder was asked to see later positions; ask causally")
        return super().forward(stream, context, states=states, memory=memory)
