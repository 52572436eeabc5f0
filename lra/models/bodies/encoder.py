"""The encoder: blocks and a final norm.

B sequences, N positions, D model width
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from attention_impls.contract import Context
from lra.models.block import NORM_EPSILON, Block
from lra.models.body import Body, Carried


class Encoder(Body):
    """Blocks one after another, then a norm.

    `shared` are the modules that several of the layers use, registered here so that they are
    trained and counted once.
    """

    def __init__(self, blocks: Sequence[Block], *, width: int, shared: Sequence[nn.Module]) -> None:
        super().__init__()
        self.shared = nn.ModuleList(shared)
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(width, eps=NORM_EPSILON)

    def forward(
        self, x_BND: Tensor, context: Context, *, states: Sequence[Any] | None = None
    ) -> Carried:
        """Return (B, N, D), and the states after these positions."""
        if states is None:
            for block in self.blocks:
                if self.recompute and torch.is_grad_enabled():
                    x_BND = checkpoint(block, x_BND, context, use_reentrant=False)
                else:
                    x_BND = block(x_BND, context)
            return Carried(self.norm(x_BND))
        after = []
        for block, state in zip(cast(Iterable[Block], self.blocks), states, strict=True):
            x_BND, state = block.step(x_BND, context, state)
            after.append(state)
        return Carried(self.norm(x_BND), after)

    def init_states(
        self, batch: int, *, length: int, device: torch.device, dtype: torch.dtype
    ) -> list[Any]:
        """Return each block's empty decode state, for up to `length` positions."""
        return [
            block.mechanism.init_state(batch, length=length, device=device, dtype=dtype)
            for block in cast(Iterable[Block], self.blocks)
        ]
