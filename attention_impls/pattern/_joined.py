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

from attention_impls._once import once_differentiable
from attention_impls.pattern._folded import ALIGNED, folded_mask
from attention_impls.pattern._layouts import divided

_KERNEL = torch.ops.aten._scaled_dot_product_efficient_attention
_GRADIENT = torch.ops.aten._scaled_dot_product_efficient_attention_backward
_KERNEL_OF_CPU = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
_GRADIENT_OF_CPU = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward

LOG_SUMS = 32
"""Log sums of an example that a GPU's kernel reads at a time."""


class Grouping(NamedTuple):
    """How queries become U examples of a call for each of the batch, and which pairs of them may
    interact."""

    group: Callable[[Tensor], Tensor]
    """(B, H, N, K) to (B, H, U, S, K)."""
    ungroup: Callable[[Tensor], Tensor]
    """(B, H, U, S, K) to (B, H, N, K)."""
    permitted_BUSW: Tensor
    """Boolean; of size 1 where all agree."""
    bias_HUSW: Tensor | None = None
    """Added by position schemes, which are not trained."""


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
    sides = [_Side(q_BHNK, grouping, k, dropout) for grouping, k, _ in (first, second)]
    tensors = [
        x
        for grouping, k_XHWK, v_XHWV in (first, second)
        for x in (_examples(grouping, q_BHNK), k_XHWK, v_XHWV)
    ]
    out_BHNV: Tensor = _Joined.apply(*sides, *tensors)  # type: ignore[no-untyped-call]
    return out_BHNV


def _examples(grouping: Grouping, x_BHNK: Tensor) -> Tensor:
    """(B, H, N, K) to (X, H, S, K)."""
    return grouping.group(x_BHNK).transpose(1, 2).flatten(0, 1)


class _Side:
    """The calls of one set of keys, forward and backward."""

    def __init__(self, q_BHNK: Tensor, grouping: Grouping, k_XHWK: Tensor, dropout: float) -> None:
        self.grouping, self.dropout, self.batch = grouping, dropout, len(q_BHNK)
        self.on_cpu = on_cpu(q_BHNK)
        permitted, bias = grouping.permitted_BUSW.unsqueeze(1), grouping.bias_HUSW
        count, width = len(k_XHWK) // self.batch, k_XHWK.shape[2]
        mask, any_key = folded_mask(permitted, bias, q_BHNK, self.batch, count)
        self.any_key_BHUS = any_key.squeeze(-1)
        # A GPU's kernel reads rows that begin at aligned places.
        missing = -width % ALIGNED
        self.mask = F.pad(mask, (0, missing))[..., :width] if missing else mask

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Return output (B, H, N, V), log sum (B, H, N), and what the kernel drew."""
        mask = self._mask(q)
        if self.on_cpu:
            out, lse = _KERNEL_OF_CPU(q, k, v, 0.0, False, attn_mask=mask)
            drawn = []
        else:
            out, lse, *drawn = _KERNEL(q, k, v, mask, True, self.dropout)
        lse = divided(lse[..., : q.shape[2]], 0, self.batch, -1).transpose(1, 2)
        lse = lse.masked_fill(~self.any_key_BHUS, -math.inf).unsqueeze(-1)
        out = divided(out, 0, self.batch, -1).transpose(1, 2)
        return self.grouping.ungroup(out), self.grouping.ungroup(lse).squeeze(-1), drawn

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
        dout, out = (_examples(self.grouping, x) for x in (dout_BHNV, out_BHNV))
        lse = self.grouping.group(lse_BHN.unsqueeze(-1)).squeeze(-1)
        # exp(x - inf) is the zero weight of what a query without a key was made to read.
        lse = lse.masked_fill(~self.any_key_BHUS, math.inf).transpose(1, 2).flatten(0, 1)
        mask = self._mask(q)
        if self.on_cpu:
            return list(_GRADIENT_OF_CPU(dout, q, k, v, out, lse, 0.0, False, attn_mask=mask))
        lse = F.pad(lse, (0, -q.shape[2] % LOG_SUMS), value=math.inf).contiguous()
        wanted = [True, True, True, False]
        # The kernel reads the output as it writes it, heads innermost, whatever its strides say.
        out = out.transpose(1, 2).contiguous().transpose(1, 2)
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
        if dout_BHNV.stride(-1) != 1:  # as that of a sum, which kernels do not take
            dout_BHNV = dout_BHNV.contiguous()
        q1, k1, v1, q2, k2, v2, out_BHNV, lse_BHN, *drawn = ctx.saved_tensors
        one, other = drawn[: ctx.draws], drawn[ctx.draws :]
        return (
            None,
            None,
            *first.backward(dout_BHNV, q1, k1, v1, out_BHNV, lse_BHN, one),
            *second.backward(dout_BHNV, q2, k2, v2, out_BHNV, lse_BHN, other),
        )
