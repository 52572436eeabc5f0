"""Causal kernel attention in half precision: all chunks at once, few launches at any length.

    B batch   H heads   N queries and keys   J chunks   L = B H J   C chunk   K head width
    V value width   R features   U the values, two columns of ones, zeros up to a multiple of 8

The same chunks, states and scales as in float32, see `_causal`. Products within chunks are one
batch, those with the states before them another; the states are a running sum in float32. Time
O(N R (C + U)), memory O(N (R + C + R U / C)).

The gradient of a query is a small difference: what its output takes from each feature, less that
output. So outputs are kept unrounded for it, and what is subtracted comes as two halves, its first
digits and the rest, each with a column of ones.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_impls._once import once_differentiable
from attention_impls._write import write
from attention_impls.kernel._bidirectional import like_projection, lowest
from attention_impls.kernel._features import FeatureMap
from attention_impls.kernel._halves import quotient
from attention_impls.kernel._products import aligned, product

CHUNK = 128


def by_chunks(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask_BN: Tensor | None,
    memory_BHUR: Tensor,
    scale_BH: Tensor,
    features: FeatureMap,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return (B, H, N, V) and the state after the last key: memory and its log scale."""
    n, rows = k.shape[2], memory_BHUR.shape[2]
    if not n:
        return v, memory_BHUR, scale_BH
    missing = -n % min(CHUNK, n)
    if missing:
        q, k, v = (F.pad(x, (0, 0, 0, missing)) for x in (q, k, v))
        given_BN = mask_BN if mask_BN is not None else q.new_ones(q.shape[0], n, dtype=torch.bool)
        mask_BN = F.pad(given_BN, (0, missing))
    memory_BHUR = torch.cat([memory_BHUR, memory_BHUR[:, :, -1:]], 2)
    memory_BHUR = F.pad(memory_BHUR, (0, 0, 0, aligned(rows + 1) - rows - 1))
    out_BHNV, memory_BHUR, scale_BH = _Chunks.apply(  # type: ignore[no-untyped-call]
        q, k, v, mask_BN, memory_BHUR, scale_BH, features
    )
    return out_BHNV[:, :, :n], memory_BHUR[:, :, :rows], scale_BH


class _Chunks(torch.autograd.Function):
    """Normalised causal kernel attention over whole chunks."""

    @staticmethod
    def forward(
        ctx: Any,
        q_BHNK: Tensor,
        k_BHNK: Tensor,
        v_BHNV: Tensor,
        mask_BN: Tensor | None,
        memory_BHUR: Tensor,
        scale_BH: Tensor,
        features: FeatureMap,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return (B, H, N, V) and the state."""
        q, k = features.prepare(q_BHNK), features.prepare(k_BHNK)
        keys = _Keys(k, mask_BN, scale_BH, features)
        ones_LCU = keys.chunked(_with_ones(v_BHNV))
        states_BHJUR = keys.states(product(keys.until(ones_LCU).mT, keys.phi_LCR), memory_BHUR)
        before_LUR = states_BHJUR[:, :, :-1].to(v_BHNV.dtype).flatten(0, 2)
        phi_LCR = keys.chunked(features.queries(q))
        read_LCU = keys.since(product(phi_LCR, before_LUR.mT))
        read_LCU += product(keys.weighted(torch.bmm(phi_LCR, keys.phi_LCR.mT)), ones_LCU)
        out_BHNV, divisor_BHN1 = quotient(keys.joined(read_LCU), v_BHNV.shape[3])
        last_BH = keys.scales_BHJ[:, :, -1].clone()
        ctx.features = features
        ctx.mark_non_differentiable(last_BH)
        ctx.save_for_backward(q, k, v_BHNV, mask_BN, scale_BH, before_LUR, out_BHNV, divisor_BHN1)
        return out_BHNV.to(v_BHNV.dtype), states_BHJUR[:, :, -1].clone(), last_BH

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, upstream_BHNV: Tensor, dmemory_BHUR: Tensor, _: Tensor
    ) -> tuple[Tensor | None, ...]:
        """Return the gradients, at the same precision wherever it is called."""
        with torch.autocast(upstream_BHNV.device.type, enabled=False):
            return _gradients(ctx, upstream_BHNV, dmemory_BHUR)


def _gradients(ctx: Any, upstream_BHNV: Tensor, dmemory_BHUR: Tensor) -> tuple[Tensor | None, ...]:
    q, k, v, mask_BN, scale_BH, before_LUR, out_BHNV, divisor_BHN1 = ctx.saved_tensors
    features: FeatureMap = ctx.features
    values = v.shape[3]
    keys = _Keys(k, mask_BN, scale_BH, features)
    phi_q, phi_k = keys.chunked(features.queries(q)), keys.phi_LCR
    ones_LCU = keys.chunked(_with_ones(v))
    dread_LCU = keys.chunked(_quotient_gradient(upstream_BHNV, out_BHNV, divisor_BHN1))
    # Within the chunks.
    dpairs_LCC = keys.weighted(torch.bmm(dread_LCU, ones_LCU.mT))
    dphi_q, dphi_k = torch.bmm(dpairs_LCC, phi_k), torch.bmm(dpairs_LCC.mT, phi_q)
    del dpairs_LCC
    weights_LCC = keys.weighted(torch.bmm(phi_q, phi_k.mT))
    # Through the states, from which queries read and to which keys add.
    since_LCU = keys.since(dread_LCU)
    dphi_q.baddbmm_(since_LCU, before_LUR)
    dsums_LUR, dmemory_BHUR = keys.states_gradient(product(since_LCU.mT, phi_q), dmemory_BHUR)
    dsums_LUR = dsums_LUR.to(v.dtype)
    dphi_k.baddbmm_(keys.until(ones_LCU), dsums_LUR)
    dv_LCV = keys.until(torch.bmm(phi_k, dsums_LUR[:, :values].mT))
    dv_LCV = dv_LCV.baddbmm(weights_LCC.mT, dread_LCU[..., :values])
    dq, dk = like_projection(q, q.shape[3]), like_projection(k, k.shape[3])
    features.queries_gradient(q, keys.joined(phi_q), keys.joined(dphi_q), dq)
    features.keys_gradient(k, keys.joined(phi_k), keys.joined(dphi_k), dk)
    return dq, dk, keys.joined(dv_LCV), None, dmemory_BHUR, None, None


class _Keys:
    """The keys of all chunks: features, scales, sums."""

    def __init__(
        self, k_BHNK: Tensor, mask_BN: Tensor | None, scale_BH: Tensor, features: FeatureMap
    ) -> None:
        self.batch, self.heads, length = k_BHNK.shape[:3]
        self.chunk = min(CHUNK, length)
        phi_BHNR, kappa_BHN = features.keys(k_BHNK)
        if mask_BN is not None:
            phi_BHNR = phi_BHNR.masked_fill(~mask_BN[:, None, :, None], 0.0)
        self.phi_LCR = self.chunked(phi_BHNR)
        self.scaled = kappa_BHN is not None
        chunks = length // self.chunk
        if kappa_BHN is None:
            self.scales_BHJ = scale_BH.unsqueeze(-1).expand(-1, -1, chunks + 1)
            return
        if mask_BN is not None:
            kappa_BHN = kappa_BHN.masked_fill(~mask_BN.unsqueeze(1), lowest(kappa_BHN.dtype))
        first_BH1 = scale_BH.unsqueeze(-1)
        mu_BHN = torch.maximum(kappa_BHN.cummax(-1).values, first_BH1)
        self.scales_BHJ = torch.cat([first_BH1, mu_BHN[:, :, self.chunk - 1 :: self.chunk]], -1)
        kappa_LC, mu_LC = self.chunked(kappa_BHN), self.chunked(mu_BHN)
        # For later keys this may be infinite: tril, which writes zeros, drops them.
        self.pairs_LCC = (kappa_LC.unsqueeze(-2) - mu_LC.unsqueeze(-1)).exp_()
        self.since_LC1 = (self.scales_BHJ[..., :-1].reshape(-1, 1) - mu_LC).exp_().unsqueeze(-1)
        self.until_LC1 = (kappa_LC - self.scales_BHJ[..., 1:].reshape(-1, 1)).exp_().unsqueeze(-1)

    def chunked(self, x_BHN: Tensor) -> Tensor:
        """(B, H, N, ...) to (L, C, ...)."""
        return x_BHN.reshape(-1, self.chunk, *x_BHN.shape[3:])

    def joined(self, x_LC: Tensor) -> Tensor:
        """(L, C, ...) to (B, H, N, ...)."""
        return x_LC.reshape(self.batch, self.heads, -1, *x_LC.shape[2:])

    def weighted(self, pairs_LCC: Tensor) -> Tensor:
        """Bring pairs to the query's scale and drop later keys; overwrites them."""
        return (pairs_LCC.mul_(self.pairs_LCC) if self.scaled else pairs_LCC).tril_()

    def since(self, x_LCU: Tensor) -> Tensor:
        """Bring rows from the scale of the chunk's beginning to each query's."""
        return _scaled(x_LCU, self.since_LC1) if self.scaled else x_LCU

    def until(self, x_LCU: Tensor) -> Tensor:
        """Bring rows from each key's scale to that of the chunk's end."""
        return _scaled(x_LCU, self.until_LC1) if self.scaled else x_LCU

    def states(self, sums_LUR: Tensor, memory_BHUR: Tensor) -> Tensor:
        """Return the states before each chunk and after the last, (B, H, J + 1, U, R)."""
        sums_BHJUR = sums_LUR.view(self.batch, self.heads, -1, *sums_LUR.shape[1:])
        parts_BHJUR = torch.cat([memory_BHUR.unsqueeze(2), sums_BHJUR], 2)
        if not self.scaled:
            return parts_BHJUR.cumsum(2)
        return (self._decay() @ parts_BHJUR.flatten(3)).view(parts_BHJUR.shape)

    def states_gradient(self, dbefore_LUR: Tensor, dafter_BHUR: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradients of the chunks' sums and of the memory, given that of the states."""
        dbefore_BHJUR = dbefore_LUR.view(self.batch, self.heads, -1, *dbefore_LUR.shape[1:])
        dstates_BHJUR = torch.cat([dbefore_BHJUR, dafter_BHUR.unsqueeze(2)], 2)
        if self.scaled:
            dparts_BHJUR = (self._decay().mT @ dstates_BHJUR.flatten(3)).view(dstates_BHJUR.shape)
        else:
            dparts_BHJUR = dstates_BHJUR.flip(2).cumsum(2).flip(2)
        return dparts_BHJUR[:, :, 1:].flatten(0, 2), dparts_BHJUR[:, :, 0]

    def _decay(self) -> Tensor:
        """Return what each part counts for in each state, (B, H, J + 1, J + 1)."""
        gaps = self.scales_BHJ.unsqueeze(-2) - self.scales_BHJ.unsqueeze(-1)
        return gaps.exp_().tril_()


def _with_ones(v_BHNV: Tensor) -> Tensor:
    """Return [v, 1, 1, 0], (B, H, N, U)."""
    width = v_BHNV.shape[3]
    ones_BHNU = F.pad(v_BHNV, (0, aligned(width + 2) - width))
    ones_BHNU[..., width : width + 2] = 1.0
    return ones_BHNU


def _quotient_gradient(upstream_BHNV: Tensor, out_BHNV: Tensor, divisor_BHN1: Tensor) -> Tensor:
    """Return the gradient (B, H, N, U) of what was divided, that of the denominator in halves."""
    width = out_BHNV.shape[3]
    dread = upstream_BHNV.new_empty(*upstream_BHNV.shape[:3], aligned(width + 2))
    write(dread[..., :width], torch.div, upstream_BHNV, divisor_BHN1)
    dread[..., width:].zero_()
    # By the rounded numerators' gradients, so that what all values share cancels.
    inner_BHN1 = (dread[..., :width] * out_BHNV).sum(-1, keepdim=True).neg_()
    dread[..., width : width + 1] = inner_BHN1
    dread[..., width + 1 : width + 2] = inner_BHN1 - dread[..., width : width + 1]
    return dread


def _scaled(x_LCU: Tensor, factor_LC1: Tensor) -> Tensor:
    """Return rows times factors in float32, rounded at most once."""
    return write(torch.empty_like(x_LCU), torch.mul, x_LCU, factor_LC1)
