"""A stack: blocks one after another, and a norm at the end where the form has one.

B sequences, N positions, D model width
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from attention_impls.contract import Context
from lra.models.block import Block, BlockState, Memory
from lra.models.body import Body, Carried, Stream


class Stack(Body):
    """Blocks one after another.

    `shared` are the modules that several of the layers use, registered here so that they are
    trained and counted once. `norm` is None where nothing follows the last block.
    """

    def __init__(
        self, blocks: Sequence[Block], *, norm: nn.Module | None, shared: Sequence[nn.Module] = ()
    ) -> None:
        super().__init__()
        self.shared = nn.ModuleList(shared)
        self.blocks = nn.ModuleList(blocks)
        self.norm = norm

    def forward(
        self,
        stream: Stream,
        context: Context,
        *,
        states: Sequence[Any] | None = None,
        memory: Memory | None = None,
    ) -> Carried:
        """Return (B, N, D), and the states after these positions where some were given. Blocks with
        a cross mechanism read the `memory`."""
        x_BND = stream.take()
        if states is None:
            for block in self.blocks:
                if self.recompute and torch.is_grad_enabled():
                    x_BND = checkpoint(block, x_BND, context, memory, use_reentrant=False)
                else:
                    x_BND = block(x_BND, context, memory)
            return Carried(self._normed(x_BND))
        after = []
        for block, state in zip(cast(Iterable[Block], self.blocks), states, strict=True):
            x_BND, state = block.step(x_BND, context, state, memory)
            after.append(state)
        return Carried(self._normed(x_BND), after)

    def init_states(
        self,
        batch: int,
        *,
        length: int,
        device: torch.device,
        dtype: torch.dtype,
        memory: Memory | None = None,
    ) -> list[BlockState]:
        """Return each block's state before the first of up to `length` positions; with a memory,
        blocks that read one keep what they need of it."""
        return [
            block.init_state(batch, length=length, device=device, dtype=dtype, memory=memory)
            for block in cast(Iterable[Block], self.blocks)
        ]

    def select_states(self, states: Sequence[Any], index_B: Tensor) -> list[BlockState]:
        """Return the states of these rows, in this order; the old ones stay as they were."""
        return [
            block.select_state(state, index_B)
            for block, state in zip(cast(Iterable[Block], self.blocks), states, strict=True)
        ]

    def _normed(self, x_BND: Tensor) -> Tensor:
        y_BND: Tensor = x_BND if self.norm is None else self.norm(x_BND)
        return y_BND
