"""The faults as other people's cores: a class with (q, k, v, mask, causal), between projections.

Faults outside of `attend` are not theirs, and go unseen.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from attention_impls.contract import Context, Dims, Layer
from lra.adapters.adapt import adapt
from verify.faults.dense import Dense


def stranger(fault: type[Dense]) -> type[Layer]:
    """Return a layer around a fault's core, which knows nothing of our contract."""

    class Core(nn.Module):
        def __init__(self, heads: int, dim_head: int, **limit: int) -> None:
            super().__init__()
            width, longest = heads * dim_head, limit.get("max_length", 4096)
            dims = Dims(width=width, qkv_width=width, heads=heads, max_length=longest)
            # Its own draws come from where a stranger takes them.
            self.core = fault(dims, seed=int(torch.randint(1000, ())))
            for name in ("query", "key", "value", "output"):
                delattr(self.core, name)

        def forward(
            self, q: Tensor, k: Tensor, v: Tensor, mask: Any = None, causal: bool = False
        ) -> Tensor:
            return self.core.attend(q, k, v, Context(causal, key_mask_BM=mask))[0]

    class Limited(Core):
        def __init__(self, heads: int, dim_head: int, max_length: int) -> None:
            super().__init__(heads, dim_head, max_length=max_length)

    fixed = fault.card.capabilities.fixed_length
    return adapt(Limited if fixed else Core, fault.__name__)
