"""Kernel attention where every query sees every key: two products, and no N-by-M array.

    B batch   H heads   G heads of a tile   N queries   M keys   K head width   V value width
    R features   U = V + 1: the values and a column of ones, whose sum is the denominator

S = [V, 1]^T phi(K) is (U, R); the output is phi(Q) S^T, its first V columns divided by the last.
The gradient makes the features again, tile by tile. The two products are two steps of it, so that
what reading kept is gone when the keys are walked. Time O((N + M) R U).

Products of width U go along an inner or the outermost dimension: 65 columns are far slower than 64.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_impls._once import once_differentiable
from attention_impls._write import write
from attention_impls.kernel._features import FeatureMap
from attention_impls.kernel._tiles import Tile, spans, tile_rows, tiles


def bidirectional(
    q_BHNK: Tensor,
    k_BHMK: Tensor,
    v_BHMV: Tensor,
    mask_BM: Tensor | None,
    features: FeatureMap,
) -> Tensor:
    """Return normalised kernel attention, (B, H, N, V); masked keys count for nothing."""
    if torch.compiler.is_compiling():
        return _traced(q_BHNK, k_BHMK, v_BHMV, mask_BM, features)
    return read_sum(q_BHNK, sum_of_keys(k_BHMK, v_BHMV, mask_BM, features), features)


def sum_of_keys(
    k_BHMK: Tensor, v_BHMV: Tensor, mask_BM: Tensor | None, features: FeatureMap
) -> Tensor:
    """Return S, (B, H, U, R): all that queries need of the keys."""
    sum_BHUR: Tensor = _Sum.apply(k_BHMK, v_BHMV, mask_BM, features)  # type: ignore[no-untyped-call]
    return sum_BHUR


def read_sum(q_BHNK: Tensor, sum_BHUR: Tensor, features: FeatureMap) -> Tensor:
    """Return the attention of queries to the keys of a sum, (B, H, N, V)."""
    out_BHNV: Tensor = _Read.apply(q_BHNK, sum_BHUR, features)  # type: ignore[no-untyped-call]
    return out_BHNV


def _traced(
    q_BHNK: Tensor,
    k_BHMK: Tensor,
    v_BHMV: Tensor,
    mask_BM: Tensor | None,
    features: FeatureMap,
) -> Tensor:
    """Return the same for a compiler to differentiate and fuse: it chooses itself what to keep, and
    walking tiles it would write out for each length."""
    batch, heads, m = k_BHMK.shape[:3]
    if not m:  # nothing to read, and no largest scale
        return (q_BHNK[..., :1] * 0.0).expand(-1, -1, -1, v_BHMV.shape[3])
    q_GNK, k_GMK = (features.prepare(x).flatten(0, 1) for x in (q_BHNK, k_BHMK))
    local = features.tile(slice(0, heads), batch)
    phi_GMR, log_scale_GM = local.keys(k_GMK)
    values_GMU = F.pad(v_BHMV.flatten(0, 1), (0, 1), value=1.0)
    mask_GM = None
    if mask_BM is not None:
        mask_GM = mask_BM.unsqueeze(1).expand(-1, heads, -1).flatten(0, 1)
        values_GMU = values_GMU.masked_fill(~mask_GM.unsqueeze(-1), 0.0)
    if log_scale_GM is not None:
        if mask_GM is not None:
            log_scale_GM = log_scale_GM.masked_fill(~mask_GM, lowest(q_BHNK.dtype))
        scale_G1 = log_scale_GM.detach().amax(-1, keepdim=True)
        values_GMU = values_GMU * (log_scale_GM - scale_G1).exp().unsqueeze(-1)
    read_GNU = local.queries(q_GNK) @ (values_GMU.mT @ phi_GMR).mT
    denominator_GN1 = read_GNU[..., -1:]
    lost = is_lost(denominator_GN1)
    out_GNV = read_GNU[..., :-1] / denominator_GN1.masked_fill(lost, 1.0)
    return out_GNV.masked_fill(lost, 0.0).view(batch, heads, *out_GNV.shape[1:])


class _Sum(torch.autograd.Function):
    """S = [V, 1]^T phi(K), (B, H, U, R), each head's divided by the largest scale of its keys.

    That factor cancels in the quotient, so it is a constant to the gradient.
    """

    @staticmethod
    def forward(
        ctx: Any,
        k_BHMK: Tensor,
        v_BHMV: Tensor,
        mask_BM: Tensor | None,
        features: FeatureMap,
    ) -> Tensor:
        k_BHMK = features.prepare(k_BHMK)
        batch, heads, m, width = k_BHMK.shape
        shape_UR = (v_BHMV.shape[3] + 1, features.width(width))
        sum_BHUR = k_BHMK.new_empty(batch, heads, *shape_UR)
        scale_BH1 = k_BHMK.new_empty(batch, heads, 1)
        pieces, step = _plan(k_BHMK, features)
        for tile in pieces:
            local = features.tile(tile.heads, tile.repeats)
            together = tile.repeats * (tile.heads.stop - tile.heads.start)
            sum_GUR = k_BHMK.new_zeros(together, *shape_UR)
            scale_G1 = k_BHMK.new_full((together, 1), lowest(k_BHMK.dtype))
            for rows in spans(m, step):
                phi_GMR, log_scale_GM = local.keys(tile.of(k_BHMK, rows))
                mask_GM = tile.mask(mask_BM, rows)
                if log_scale_GM is not None:
                    if mask_GM is not None:
                        log_scale_GM.masked_fill_(~mask_GM, lowest(k_BHMK.dtype))
                    grown_G1 = torch.maximum(scale_G1, log_scale_GM.amax(-1, keepdim=True))
                    sum_GUR.mul_((scale_G1 - grown_G1).exp_().unsqueeze(-1))
                    scale_G1 = grown_G1
                weight_GM = _weights(log_scale_GM, scale_G1, mask_GM)
                sum_GUR.baddbmm_(with_ones(tile.of(v_BHMV, rows), weight_GM).mT, phi_GMR)
            tile.put_states(sum_BHUR, sum_GUR)
            tile.put_states(scale_BH1, scale_G1)
        ctx.features = features
        ctx.save_for_backward(k_BHMK, v_BHMV, mask_BM, scale_BH1)
        return sum_BHUR

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dsum_BHUR: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients, in full precision wherever it is called."""
        with torch.autocast(dsum_BHUR.device.type, enabled=False):
            return *_sum_gradients(ctx, dsum_BHUR), None, None


def _sum_gradients(ctx: Any, dsum_BHUR: Tensor) -> tuple[Tensor, Tensor]:
    k, v, mask_BM, scale_BH1 = ctx.saved_tensors
    dk, dv = like_projection(k, k.shape[3]), like_projection(v, v.shape[3])
    pieces, step = _plan(k, ctx.features)
    for tile in pieces:
        local = ctx.features.tile(tile.heads, tile.repeats)
        dsum_GUR, scale_G1 = tile.states(dsum_BHUR), tile.states(scale_BH1)
        for rows in spans(k.shape[2], step):
            k_GMK, dk_GMK, dv_GMV = tile.of(k, rows), tile.room(dk, rows), tile.room(dv, rows)
            phi_GMR, log_scale_GM = local.keys(k_GMK)
            weight_GM = _weights(log_scale_GM, scale_G1, tile.mask(mask_BM, rows))
            write(dv_GMV, torch.bmm, phi_GMR, dsum_GUR[:, :-1].mT)
            if weight_GM is not None:
                dv_GMV.mul_(weight_GM.unsqueeze(-1))
            dphi_GMR = torch.bmm(with_ones(tile.of(v, rows), weight_GM), dsum_GUR)
            local.keys_gradient(k_GMK, phi_GMR, dphi_GMR, dk_GMK)
            tile.put(dv, rows, dv_GMV)
            tile.put(dk, rows, dk_GMK)
    return dk, dv


class _Read(torch.autograd.Function):
    """The first V columns of phi(Q) S^T, divided by the last."""

    @staticmethod
    def forward(ctx: Any, q_BHNK: Tensor, sum_BHUR: Tensor, features: FeatureMap) -> Tensor:
        q_BHNK = features.prepare(q_BHNK)
        out_BHNV = like_projection(q_BHNK, sum_BHUR.shape[2] - 1)
        inverse_BHN1 = like_projection(q_BHNK, 1)
        pieces, step = _plan(q_BHNK, features)
        for tile in pieces:
            local = features.tile(tile.heads, tile.repeats)
            sum_GUR = tile.states(sum_BHUR)
            for rows in spans(q_BHNK.shape[2], step):
                phi_GNR = local.queries(tile.of(q_BHNK, rows))
                out_GNV, inverse_GN1 = tile.room(out_BHNV, rows), tile.room(inverse_BHN1, rows)
                write(out_GNV, torch.bmm, phi_GNR, sum_GUR[:, :-1].mT)
                inverse_GN1.copy_(inverse(torch.bmm(phi_GNR, sum_GUR[:, -1:].mT)))
                out_GNV.mul_(inverse_GN1)
                tile.put(out_BHNV, rows, out_GNV)
                tile.put(inverse_BHN1, rows, inverse_GN1)
        ctx.features = features
        ctx.save_for_backward(q_BHNK, sum_BHUR, out_BHNV, inverse_BHN1)
        return out_BHNV

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream_BHNV: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients, in full precision wherever it is called."""
        with torch.autocast(upstream_BHNV.device.type, enabled=False):
            return *_read_gradients(ctx, upstream_BHNV), None


def _read_gradients(ctx: Any, upstream_BHNV: Tensor) -> tuple[Tensor, Tensor]:
    q, sum_BHUR, out, inverse_BHN1 = ctx.saved_tensors
    dq, dsum_BHUR = like_projection(q, q.shape[3]), torch.empty_like(sum_BHUR)
    pieces, step = _plan(q, ctx.features)
    for tile in pieces:
        local = ctx.features.tile(tile.heads, tile.repeats)
        sum_GUR = tile.states(sum_BHUR)
        dsum_GUR = torch.zeros_like(sum_GUR)
        for rows in spans(q.shape[2], step):
            q_GNK, dq_GNK = tile.of(q, rows), tile.room(dq, rows)
            phi_GNR = local.queries(q_GNK)
            dread_GNU = read_gradient(
                tile.of(upstream_BHNV, rows), tile.of(out, rows), tile.of(inverse_BHN1, rows)
            )
            dsum_GUR.baddbmm_(dread_GNU.mT, phi_GNR)
            dphi_GNR = torch.bmm(dread_GNU, sum_GUR)
            del dread_GNU
            local.queries_gradient(q_GNK, phi_GNR, dphi_GNR, dq_GNK)
            tile.put(dq, rows, dq_GNK)
            # The next one's are made before these names are taken: this is where memory peaks.
            del phi_GNR, dphi_GNR
        tile.put_states(dsum_BHUR, dsum_GUR)
    return dq, dsum_BHUR


def _plan(x_BHNK: Tensor, features: FeatureMap) -> tuple[list[Tile], int]:
    """Return the tiles of heads and how many rows of each are taken at once."""
    batch, heads, n, width = x_BHNK.shape
    step = tile_rows(x_BHNK, features.width(width))
    return tiles(batch, heads, step // max(1, n)), step


def _weights(
    log_scale_GM: Tensor | None, scale_G1: Tensor, mask_GM: Tensor | None
) -> Tensor | None:
    """Return what each key's features are still to be multiplied by; None for nothing."""
    if log_scale_GM is None:
        return None if mask_GM is None else mask_GM.to(scale_G1.dtype)
    weight_GM = (log_scale_GM - scale_G1).exp_()
    return weight_GM if mask_GM is None else weight_GM.masked_fill_(~mask_GM, 0.0)


def like_projection(x_BHNK: Tensor, width: int) -> Tensor:
    """Return an empty (B, H, N, width) whose memory is (B, N, H, width), as projections have it."""
    batch, heads, n = x_BHNK.shape[:3]
    return x_BHNK.new_empty(batch, n, heads, width).transpose(1, 2)


def with_ones(v_GMV: Tensor, weight_GM: Tensor | None) -> Tensor:
    """Return [v, 1], (G, M, U), times the weights."""
    padded = v_GMV.new_empty(*v_GMV.shape[:2], v_GMV.shape[2] + 1)
    if weight_GM is None:
        padded[..., :-1] = v_GMV
        padded[..., -1] = 1.0
    else:
        write(padded[..., :-1], torch.mul, v_GMV, weight_GM.unsqueeze(-1))
        padded[..., -1] = weight_GM
    return padded


def inverse(denominator: Tensor) -> Tensor:
    """Return 1 / denominator, or 0 where nothing may be attended to or all features underflow."""
    return denominator.reciprocal().masked_fill_(is_lost(denominator), 0.0)


def is_lost(denominator: Tensor) -> Tensor:
    """Whether it has lost its digits: below smallest float / rounding error."""
    limits = torch.finfo(denominator.dtype)
    return denominator < limits.tiny / limits.eps


def read_gradient(upstream_GNV: Tensor, out_GNV: Tensor, inverse_GN1: Tensor) -> Tensor:
    """Return the gradient (G, N, U) of numerator and denominator, from that of their quotient."""
    gradient = out_GNV.new_empty(*out_GNV.shape[:2], out_GNV.shape[2] + 1)
    numerator_GNV = gradient[..., :-1]
    write(numerator_GNV, torch.mul, upstream_GNV, inverse_GN1)
    gradient[..., -1] = (numerator_GNV * out_GNV).sum(-1).neg_()
    return gradient


def lowest(dtype: torch.dtype) -> float:
    """The log scale of no key at all: finite, so that differences of two are 0 and not NaN."""
    return torch.finfo(dtype).min
