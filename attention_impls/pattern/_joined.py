"""One softmax over two sets of keys for which queries are grouped in different ways.

B batch   N queries   H heads   K width of a query or key head   V width of a value head
X examples of a call   S queries in an example   W keys in it

Each set is a call of torch's fused kernel, which tells its log sum; by that the outputs are joined.
The gradient needs no more: a kernel that is given the joint output and log sum computes each key's
weight in the joint softmax, and so the gradients of its own set.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from attention_impls.pattern._folded import ALIGNED, numbers

_KERNEL = torch.ops.aten._scaled_dot_product_efficient_attention
_GRADIENT = torch.ops.aten._scaled_dot_product_efficient_attention_backward
_KERNEL_OF_CPU = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
_GRADIENT_OF_CPU = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward

LOG_SUMS = 32
"""Log sums of an example that a GPU's kernel reads at a time."""


class Grouping(NamedTuple):
    """How queries become examples of a call, and which pairs of it may interact."""

    group: Callable[[Tensor], Tensor]
    """(B, H, N, K) to (X, H, S, K)."""
    ungroup: Callable[[Tensor], Tensor]
    """(X, H, S, K) to (B, H, N, K)."""
    permitted: Tensor
    """Boolean, (X, H, S, W), or of size 1 where all agree."""
    bias: Tensor | None = None
    """What positions add, which are not trained: the same."""


def blocks_of(
    group: Callable[[Tensor], Tensor],
    ungroup: Callable[[Tensor], Tensor],
    permitted_BUSW: Tensor,
    bias: Callable[[slice], Tensor | None] | None,
    batch: int,
) -> Grouping:
    """Return a grouping into U examples of each of the batch; `permitted_BUSW` may be of size 1
    wherever all agree."""
    count = permitted_BUSW.shape[1]
    bias_HUSW = None if bias is None else bias(slice(None))
    bias_XHSW = None
    if bias_HUSW is not None:
        count = bias_HUSW.shape[1]
        bias_UHSW = bias_HUSW.transpose(0, 1)
        bias_XHSW = bias_UHSW.expand(batch, -1, -1, -1, -1).flatten(0, 1)
    alike = len(permitted_BUSW) == 1 and count == 1
    permitted_BUSW = permitted_BUSW.expand(1 if alike else batch, count, -1, -1)
    return Grouping(group, ungroup, permitted_BUSW.flatten(0, 1).unsqueeze(1), bias_XHSW)


def on_cpu(like: Tensor) -> bool:
    """Which of the two kernels is there."""
    return like.device.type == "cpu"


def has_kernel(q_BHNK: Tensor, v_BHMV: Tensor, dropout: float) -> bool:
    """Whether there is a kernel that tells its log sum, for such heads."""
    if on_cpu(q_BHNK):
        return q_BHNK.shape[-1] == v_BHMV.shape[-1] and not dropout
    known = q_BHNK.dtype in (torch.float16, torch.bfloat16, torch.float32)
    aligned = q_BHNK.shape[-1] % 8 == v_BHMV.shape[-1] % 8 == 0
    return q_BHNK.device.type == "cuda" and known and aligned


def attend_joined(
    q_BHNK: Tensor,
    first: tuple[Grouping, Tensor, Tensor],
    second: tuple[Grouping, Tensor, Tensor],
    *,
    dropout: float,
) -> Tensor:
    """Return one softmax over both sets of keys, times their values, (B, H, N, V).

    A set is a grouping with its keys and values, (X, H, W, K). No key may be in both; a query that
    has none in either gives zero.
    """
    sides = [_Side(q_BHNK, grouping, k.shape[2], dropout) for grouping, k, _ in (first, second)]
    tensors = [
        x
        for grouping, k_XHWK, v_XHWV in (first, second)
        for x in (grouping.group(q_BHNK), k_XHWK, v_XHWV)
    ]
    out_BHNV: Tensor = _Joined.apply(*sides, *tensors)  # type: ignore[no-untyped-call]
    return out_BHNV


class _Side:
    """The calls of one set of keys, forward and backward."""

    def __init__(self, like: Tensor, grouping: Grouping, width: int, dropout: float) -> None:
        self.grouping, self.dropout = grouping, dropout
        self.on_cpu = on_cpu(like)
        mask, any_key = numbers(grouping.permitted, grouping.bias, like)
        self.any_key_XHS = any_key.squeeze(-1)
        # A GPU's kernel reads rows that begin at aligned places.
        self.mask = F.pad(mask, (0, -width % ALIGNED))[..., :width]

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Return output (B, H, N, V), log sum (B, H, N), and what the kernel drew."""
        mask = self._mask(q)
        if self.on_cpu:
            out, lse = _KERNEL_OF_CPU(q, k, v, 0.0, False, attn_mask=mask)
            drawn = []
        else:
            out, lse, *drawn = _KERNEL(q, k, v, mask, True, self.dropout)
        lse = lse[..., : q.shape[2]].masked_fill(~self.any_key_XHS, -math.inf)
        ungroup = self.grouping.ungroup
        return ungroup(out), ungroup(lse.unsqueeze(-1)).squeeze(-1), drawn

    def backward(
        self,
        dout_BHNV: Tensor,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        out_BHNV: Tensor,
        lse_BHN: Tensor,
        drawn: list[Tensor],
    ) -> list[Tensor]:
        """Return the gradients of q, k and v, from the joint output and log sum."""
        group = self.grouping.group
        dout, out, mask = group(dout_BHNV), group(out_BHNV), self._mask(q)
        lse = group(lse_BHN.unsqueeze(-1)).squeeze(-1)
        # exp(x - inf) is the zero weight of what a query without a key was made to read.
        lse = lse.masked_fill(~self.any_key_XHS, math.inf)
        if self.on_cpu:
            return list(_GRADIENT_OF_CPU(dout, q, k, v, out, lse, 0.0, False, attn_mask=mask))
        lse = F.pad(lse, (0, -q.shape[2] % LOG_SUMS), value=math.inf).contiguous()
        wanted = [True, True, True, False]
        gradients = _GRADIENT(dout, q, k, v, mask, out, lse, *drawn, self.dropout, wanted)
        return list(gradients[:3])

    def _mask(self, q_XHSK: Tensor) -> Tensor:
        return self.mask.expand(*q_XHSK.shape[:3], -1)


class _Joined(torch.autograd.Function):
    """Both calls, and the joint gradient."""

    @staticmethod
    def forward(ctx: Any, first: _Side, second: _Side, *tensors: Tensor) -> Tensor:
        """Keep the joint output and log sum."""
        one_BHNV, one_BHN, drawn = first.forward(*tensors[:3])
        other_BHNV, other_BHN, also = second.forward(*tensors[3:])
        lse_BHN = torch.logaddexp(one_BHN, other_BHN)
        none_BHN = lse_BHN == -math.inf
        share_BHN = torch.exp(other_BHN - lse_BHN.masked_fill(none_BHN, 0.0))
        share_BHN1 = share_BHN.to(one_BHNV.dtype).unsqueeze(-1)
        out_BHNV = torch.lerp(one_BHNV, other_BHNV, share_BHN1)
        out_BHNV = out_BHNV.masked_fill(none_BHN.unsqueeze(-1), 0.0)
        ctx.sides, ctx.draws = (first, second), len(drawn)
        ctx.save_for_backward(*tensors, out_BHNV, lse_BHN, *drawn, *also)
        return out_BHNV

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dout_BHNV: Tensor) -> tuple[Tensor | None, ...]:
        """Each call's own, as parts of one softmax."""
        first, second = ctx.sides
        q1, k1, v1, q2, k2, v2, out_BHNV, lse_BHN, *drawn = ctx.saved_tensors
        one, other = drawn[: ctx.draws], drawn[ctx.draws :]
        return (
            None,
            None,
            *first.backward(dout_BHNV, q1, k1, v1, out_BHNV, lse_BHN, one),
            *second.backward(dout_BHNV, q2, k2, v2, out_BHNV, lse_BHN, other),
        )
