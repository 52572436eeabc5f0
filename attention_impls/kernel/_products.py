"""Products in half precision, as a GPU has them: bfloat16 operands, sums in float32.

    G heads of all batch rows   N positions   J parts

A GPU multiplies bfloat16 many times faster than float32, and moves half the bytes. float16 is left
out: sums over keys overflow it.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

PARALLEL = 256
"""Products that run side by side on a GPU: with fewer heads, positions are cut into parts."""
PART = 256
"""Positions in such a part, at least."""
AMPERE = (8, 0)
"""Compute capability of the first GPUs that multiply bfloat16; older ones imitate it."""


def halves(*tensors: Tensor) -> bool:
    """Whether products of these take bfloat16 operands; otherwise all is in float32 or better."""
    return all(x.dtype == torch.bfloat16 and accelerated(x.device) for x in tensors)


def working_dtype(q: Tensor, k: Tensor, v: Tensor) -> torch.dtype:
    """Return the type that kernel attention takes its inputs in."""
    return torch.bfloat16 if halves(q, k, v) else torch.promote_types(v.dtype, torch.float32)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def accelerated(device: torch.device) -> bool:
    """Whether a device multiplies bfloat16 faster, with sums in float32, and fuses attention."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= AMPERE


def product(one: Tensor, other: Tensor) -> Tensor:
    """Return the batched product of two bfloat16 tensors in float32, unrounded."""
    if one.is_cuda:
        return torch.bmm(one, other, out_dtype=torch.float32)
    return torch.bmm(one.float(), other.float())


def parts(length: int, groups: int) -> int:
    """Return into how many parts to cut that many positions of that many groups."""
    return max(1, min(-(-PARALLEL // max(1, groups)), length // PART))


def summed(one_BHNU: Tensor, other_BHNR: Tensor) -> Tensor:
    """Return the sum over positions of one^T other, (B, H, U, R) in float32."""
    batch, heads, length = one_BHNU.shape[:3]
    cut = parts(length, batch * heads)
    missing = -length % cut
    one, other = (
        (F.pad(x, (0, 0, 0, missing)) if missing else x).reshape(
            batch * heads * cut, (length + missing) // cut, x.shape[3]
        )
        for x in (one_BHNU, other_BHNR)
    )
    sum_LUR = product(one.mT, other)
    return sum_LUR.view(batch, heads, cut, *sum_LUR.shape[1:]).sum(2)


def aligned(width: int) -> int:
    """Return the next multiple of 8: rows of other widths are read far slower."""
    return -(-width // 8) * 8
