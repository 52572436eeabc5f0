"""Kernel attention in half precision, where every query sees every key: no tiles, few launches.

    B batch   H heads   N queries   M keys   K head width   V value width   R features
    U the values, a column of ones for the denominator, zeros up to a multiple of 8

The same two products as in float32, on features in bfloat16. Sums run in float32.

Gradients of weights are differences between values and outputs. Where values share a large part,
rounding that part would drown them. So their mean is taken off first, and added at the end: as
weights sum to 1, neither result nor gradient depends on it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from attention_impls._once import once_differentiable
from attention_impls._write import write
from attention_impls.kernel._bidirectional import is_lost, like_projection
from attention_impls.kernel._features import FeatureMap
from attention_impls.kernel._products import aligned, summed


class Halves(torch.autograd.Function):
    """Normalised kernel attention of bfloat16 queries, keys and values; keys without scales."""

    @staticmethod
    def forward(
        ctx: Any,
        q_BHNK: Tensor,
        k_BHMK: Tensor,
        v_BHMV: Tensor,
        mask_BM: Tensor | None,
        features: FeatureMap,
    ) -> Tensor:
        """Return (B, H, N, V)."""
        q, k = features.prepare(q_BHNK), features.prepare(k_BHMK)
        centre_BH1V = centre(v_BHMV, mask_BM)
        phi_BHMR, _ = features.keys(k)
        sum_BHUR = summed(with_ones(v_BHMV, centre_BH1V, mask_BM), phi_BHMR).to(v_BHMV.dtype)
        del phi_BHMR
        off_BHNV, divisor_BHN1 = quotient(features.queries(q) @ sum_BHUR.mT, v_BHMV.shape[3])
        ctx.features = features
        ctx.save_for_backward(q, k, v_BHMV, centre_BH1V, mask_BM, sum_BHUR, off_BHNV, divisor_BHN1)
        return moved(off_BHNV, centre_BH1V, divisor_BHN1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream_BHNV: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients, at the same precision wherever it is called."""
        with torch.autocast(upstream_BHNV.device.type, enabled=False):
            return *_gradients(ctx, upstream_BHNV), None, None


def _gradients(ctx: Any, upstream_BHNV: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    q, k, v, centre_BH1V, mask_BM, sum_BHUR, off_BHNV, divisor_BHN1 = ctx.saved_tensors
    features: FeatureMap = ctx.features
    dq, dk = like_projection(q, q.shape[3]), like_projection(k, k.shape[3])
    dread_BHNU = quotient_gradient(upstream_BHNV, off_BHNV, divisor_BHN1)
    phi = features.queries(q)
    dsum_BHUR = summed(dread_BHNU, phi).to(v.dtype)
    features.queries_gradient(q, phi, dread_BHNU @ sum_BHUR, dq)
    del dread_BHNU
    phi, _ = features.keys(k)
    dv = phi @ dsum_BHUR[:, :, : v.shape[3]].mT
    if mask_BM is not None:
        dv.mul_(mask_BM[:, None, :, None])
    features.keys_gradient(k, phi, with_ones(v, centre_BH1V, mask_BM) @ dsum_BHUR, dk)
    return dq, dk, dv


def centre(v_BHMV: Tensor, mask_BM: Tensor | None) -> Tensor:
    """Return the mean of the values, (B, H, 1, V), in steps of an eighth of their size; without
    any key, 0.

    Values less such a step have few digits more than they had. A finer one would be rounded alike
    in all values of a size, which adds up; and a small mean does no harm where it is.
    """
    v_BHMV = v_BHMV.detach()
    many: int | Tensor = max(1, v_BHMV.shape[2])
    if mask_BM is not None:
        v_BHMV = v_BHMV.masked_fill(~mask_BM[:, None, :, None], 0.0)
        many = mask_BM.sum(1).clamp(min=1).view(-1, 1, 1, 1)
    norm_BH11 = torch.linalg.vector_norm(v_BHMV, dim=(2, 3), keepdim=True, dtype=torch.float32)
    size_BH11: Tensor = norm_BH11.clamp(min=1e-30) / (many * v_BHMV.shape[3]) ** 0.5
    step_BH11 = size_BH11.log2().round().sub(3.0).exp2()
    mean_BH1V = v_BHMV.sum(2, keepdim=True, dtype=torch.float32) / many
    steps_BH1V: Tensor = (mean_BH1V / step_BH11).round()
    return (steps_BH1V * step_BH11).to(v_BHMV.dtype)


def with_ones(v_BHMV: Tensor, centre_BH1V: Tensor, mask_BM: Tensor | None) -> Tensor:
    """Return [v - centre, 1, 0], (B, H, M, U), and zeros for masked keys."""
    width = v_BHMV.shape[3]
    ones = v_BHMV.new_empty(*v_BHMV.shape[:3], aligned(width + 1))
    write(ones[..., :width], torch.sub, v_BHMV, centre_BH1V)
    ones[..., width:].zero_()
    ones[..., width].fill_(1.0)
    return ones if mask_BM is None else ones.masked_fill_(~mask_BM[:, None, :, None], 0.0)


def quotient(read_BHNU: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Return the numerators divided by the denominator, in the layout of projections, and what
    they were divided by, in float32: infinity where there is nothing to attend to."""
    divisor_BHN1 = read_BHNU[..., width : width + 1].to(torch.float32, copy=True)
    divisor_BHN1.masked_fill_(is_lost(divisor_BHN1), torch.inf)
    off_BHNV = like_projection(read_BHNU, width)
    write(off_BHNV, torch.div, read_BHNU[..., :width], divisor_BHN1)
    return off_BHNV, divisor_BHN1


def moved(off_BHNV: Tensor, centre_BH1V: Tensor, divisor_BHN1: Tensor) -> Tensor:
    """Return the outputs: with the constant, but where there is nothing to attend to."""
    found_BHN1 = divisor_BHN1.isfinite().to(off_BHNV.dtype)
    return torch.addcmul(off_BHNV, centre_BH1V, found_BHN1)


def quotient_gradient(upstream_BHNV: Tensor, off_BHNV: Tensor, divisor_BHN1: Tensor) -> Tensor:
    """Return the gradient (B, H, N, U) of what `quotient` got."""
    width = off_BHNV.shape[3]
    dread = off_BHNV.new_empty(*off_BHNV.shape[:3], aligned(width + 1))
    write(dread[..., :width], torch.div, upstream_BHNV, divisor_BHN1)
    dread[..., width:].zero_()
    dread[..., width] = (dread[..., :width] * off_BHNV).sum(-1).neg_()
    return dread
