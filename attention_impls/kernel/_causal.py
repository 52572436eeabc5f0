"""Causal kernel attention by chunks: the past as one state, the present as a small square.

    B batch   H heads   G heads of a tile   N queries and keys   J chunks of a span   L = G J
    C chunk   K head width   V value width   R features   U = V + 1: values and a column of ones

Within a chunk, tril(phi(Q) phi(K)^T) [V, 1]; from before it, phi(Q) S^T, where S is the sum of
[v, 1] phi(k)^T over all earlier chunks. The last column is the denominator. Time O(N R (C + U)),
memory O(N R U / C): the gradient keeps the states and makes features and squares again.

Keys with log scales: kappa_j is key j's, mu_i the largest up to i. The sums for query i are kept
divided by exp(mu_i), and pairs are weighted by exp(kappa_j - mu_i) <= 1. So nothing overflows, no
later key is felt, and early keys of tiny features count in full where they are all there is.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from attention_impls._once import once_differentiable
from attention_impls._write import write
from attention_impls.kernel._bidirectional import (
    inverse,
    like_projection,
    lowest,
    read_gradient,
    with_ones,
)
from attention_impls.kernel._features import FeatureMap
from attention_impls.kernel._tiles import Tile, spans, tile_rows, tiles

CHUNK = 64
SPAN_CHUNKS = 64
"""At most so many chunks in a span: their states are summed by a product quadratic in it."""


class Causal(torch.autograd.Function):
    """Normalised causal kernel attention that continues a state; as many keys as queries."""

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
        """Return (B, H, N, V) and the state after the last key: memory and its log scale."""
        q_BHNK, k_BHNK = features.prepare(q_BHNK), features.prepare(k_BHNK)
        out_BHNV = like_projection(q_BHNK, v_BHNV.shape[3])
        inverse_BHN1 = like_projection(q_BHNK, 1)
        last_memory_BHUR, last_scale_BH = memory_BHUR.clone(), scale_BH.clone()
        kept: list[Tensor] = []
        pieces, step = _plan(q_BHNK, features)
        for tile in pieces:
            local = features.tile(tile.heads, tile.repeats)
            for rows in spans(q_BHNK.shape[2], step, CHUNK):
                memory_GUR = tile.states(last_memory_BHUR)
                scale_G = tile.states(last_scale_BH).clone()
                keys = _Keys(tile, rows, k_BHNK, mask_BN, local, scale_G)
                v_LCV = keys.chunked(tile.of(v_BHNV, rows))
                states_GJUR = keys.states(with_ones(v_LCV, keys.until_LC), memory_GUR)
                phi_LCR = keys.chunked(local.queries(tile.of(q_BHNK, rows)))
                weights_LCC = keys.weights(phi_LCR)
                before_LUR = states_GJUR[:, :-1].flatten(0, 1)
                total_LC1 = keys.since(torch.bmm(phi_LCR, before_LUR[:, -1:].mT))
                total_LC1 += weights_LCC.sum(-1, keepdim=True)
                read_LCV = keys.since(torch.bmm(phi_LCR, before_LUR[:, :-1].mT))
                read_LCV.baddbmm_(weights_LCC, v_LCV)
                out_GNV, inverse_GN1 = tile.room(out_BHNV, rows), tile.room(inverse_BHN1, rows)
                inverse_GN1.copy_(inverse(keys.joined(total_LC1)))
                write(out_GNV, torch.mul, keys.joined(read_LCV), inverse_GN1)
                tile.put(out_BHNV, rows, out_GNV)
                tile.put(inverse_BHN1, rows, inverse_GN1)
                if any(ctx.needs_input_grad):
                    kept += [states_GJUR, scale_G]
                tile.put_states(last_memory_BHUR, states_GJUR[:, -1])
                tile.put_states(last_scale_BH, keys.scales_GJ[:, -1])
        ctx.features = features
        ctx.mark_non_differentiable(last_scale_BH)
        ctx.save_for_backward(q_BHNK, k_BHNK, v_BHNV, mask_BN, out_BHNV, inverse_BHN1, *kept)
        return out_BHNV, last_memory_BHUR, last_scale_BH

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, upstream_BHNV: Tensor, dmemory_BHUR: Tensor, _: Tensor
    ) -> tuple[Tensor | None, ...]:
        """Return the gradients, in full precision wherever it is called."""
        with torch.autocast(upstream_BHNV.device.type, enabled=False):
            return _gradients(ctx, upstream_BHNV, dmemory_BHUR)


def _gradients(ctx: Any, upstream_BHNV: Tensor, dmemory_BHUR: Tensor) -> tuple[Tensor | None, ...]:
    """Walk the spans backwards, carrying the gradient of the state."""
    q, k, v, mask_BN, out, inverse_BHN1, *kept = ctx.saved_tensors
    dq, dk = like_projection(q, q.shape[3]), like_projection(k, k.shape[3])
    dv, dmemory_BHUR = like_projection(v, v.shape[3]), dmemory_BHUR.clone()
    pieces, step = _plan(q, ctx.features)
    for tile in reversed(pieces):
        local = ctx.features.tile(tile.heads, tile.repeats)
        for rows in reversed(list(spans(q.shape[2], step, CHUNK))):
            scale_G, states_GJUR = kept.pop(), kept.pop()
            q_GNK, k_GNK = tile.of(q, rows), tile.of(k, rows)
            dq_GNK, dk_GNK, dv_GNV = (tile.room(x, rows) for x in (dq, dk, dv))
            keys = _Keys(tile, rows, k, mask_BN, local, scale_G)
            v_LCV, phi_k = keys.chunked(tile.of(v, rows)), keys.phi_LCR
            phi_q = keys.chunked(local.queries(q_GNK))
            dread_LCU = keys.chunked(
                read_gradient(
                    tile.of(upstream_BHNV, rows),
                    tile.of(out, rows),
                    tile.of(inverse_BHN1, rows),
                )
            )
            # Within the chunks.
            dv_LCV = torch.bmm(keys.weights(phi_q).mT, dread_LCU[..., :-1])
            dweights_LCC = keys.weighted(torch.bmm(dread_LCU, with_ones(v_LCV, None).mT))
            dphi_q, dphi_k = torch.bmm(dweights_LCC, phi_k), torch.bmm(dweights_LCC.mT, phi_q)
            # Through the states, from which queries read and to which keys add.
            dread_LCU = keys.since(dread_LCU)
            dphi_q.baddbmm_(dread_LCU, states_GJUR[:, :-1].flatten(0, 1))
            dsums_LUR, dmemory_GUR = keys.states_gradient(
                torch.bmm(dread_LCU.mT, phi_q), tile.states(dmemory_BHUR)
            )
            tile.put_states(dmemory_BHUR, dmemory_GUR)
            dphi_k.baddbmm_(with_ones(v_LCV, keys.until_LC), dsums_LUR)
            dv_LCV += keys.until(torch.bmm(phi_k, dsums_LUR[:, :-1].mT))
            dv_GNV.copy_(keys.joined(dv_LCV))
            local.queries_gradient(q_GNK, *map(keys.joined, (phi_q, dphi_q)), dq_GNK)
            local.keys_gradient(k_GNK, *map(keys.joined, (phi_k, dphi_k)), dk_GNK)
            for target, part in ((dq, dq_GNK), (dk, dk_GNK), (dv, dv_GNV)):
                tile.put(target, rows, part)
    return dq, dk, dv, None, dmemory_BHUR, None, None


class _Keys:
    """The keys of one span, some whole chunks or one shorter: features, scales, sums."""

    def __init__(
        self,
        tile: Tile,
        rows: slice,
        k_BHNK: Tensor,
        mask_BN: Tensor | None,
        local: FeatureMap,
        scale_G: Tensor,
    ) -> None:
        length = rows.stop - rows.start
        self.chunk = min(CHUNK, length)
        self.chunks = length // self.chunk
        phi_GNR, kappa_GN = local.keys(tile.of(k_BHNK, rows))
        mask_GN = tile.mask(mask_BN, rows)
        if mask_GN is not None:
            phi_GNR = phi_GNR * mask_GN.unsqueeze(-1)
        self.phi_LCR = self.chunked(phi_GNR)
        self.scaled = kappa_GN is not None
        if kappa_GN is None:
            self.scales_GJ = scale_G.unsqueeze(-1).expand(-1, self.chunks + 1)
            self.until_LC = None
            return
        if mask_GN is not None:
            kappa_GN = kappa_GN.masked_fill(~mask_GN, lowest(kappa_GN.dtype))
        mu_GN = torch.maximum(kappa_GN.cummax(-1).values, scale_G.unsqueeze(-1))
        kappa_LC, mu_LC = self.chunked(kappa_GN), self.chunked(mu_GN)
        self.scales_GJ = torch.cat(
            [scale_G.unsqueeze(-1), mu_GN[:, self.chunk - 1 :: self.chunk]], 1
        )
        # For later keys this may be infinite: tril, which writes zeros, drops them.
        self.pairs_LCC = (kappa_LC.unsqueeze(-2) - mu_LC.unsqueeze(-1)).exp_()
        self.since_LC = (self.scales_GJ[:, :-1].reshape(-1, 1) - mu_LC).exp_()
        self.until_LC = (kappa_LC - self.scales_GJ[:, 1:].reshape(-1, 1)).exp_()

    def chunked(self, x_GN: Tensor) -> Tensor:
        """(G, N, ...) to (L, C, ...)."""
        return x_GN.reshape(-1, self.chunk, *x_GN.shape[2:])

    def joined(self, x_LC: Tensor) -> Tensor:
        """(L, C, ...) to (G, N, ...)."""
        return x_LC.reshape(-1, self.chunks * self.chunk, *x_LC.shape[2:])

    def weights(self, phi_LCR: Tensor) -> Tensor:
        """Return the weights of a chunk's keys for its queries."""
        return self.weighted(torch.bmm(phi_LCR, self.phi_LCR.mT))

    def weighted(self, pairs_LCC: Tensor) -> Tensor:
        """Bring pairs to the query's scale and drop later keys; overwrites them."""
        return (pairs_LCC.mul_(self.pairs_LCC) if self.scaled else pairs_LCC).tril_()

    def since(self, x_LCU: Tensor) -> Tensor:
        """Bring rows from the scale of the chunk's beginning to each query's; overwrites them."""
        return x_LCU.mul_(self.since_LC.unsqueeze(-1)) if self.scaled else x_LCU

    def until(self, x_LCV: Tensor) -> Tensor:
        """Bring rows from each key's scale to that of the chunk's end; overwrites them."""
        return x_LCV if self.until_LC is None else x_LCV.mul_(self.until_LC.unsqueeze(-1))

    def states(self, ones_LCU: Tensor, memory_GUR: Tensor) -> Tensor:
        """Return the states before each chunk and after the last, (G, J + 1, U, R)."""
        sums_LUR = torch.bmm(ones_LCU.mT, self.phi_LCR)
        sums_GJUR = sums_LUR.view(-1, self.chunks, *sums_LUR.shape[1:])
        parts_GJUR = torch.cat([memory_GUR.unsqueeze(1), sums_GJUR], 1)
        return torch.bmm(self._decay(), parts_GJUR.flatten(2)).view(parts_GJUR.shape)

    def states_gradient(self, dbefore_LUR: Tensor, dafter_GUR: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradients of the chunks' sums and of the memory, given that of the states."""
        dbefore_GJUR = dbefore_LUR.view(-1, self.chunks, *dbefore_LUR.shape[1:])
        dstates_GJUR = torch.cat([dbefore_GJUR, dafter_GUR.unsqueeze(1)], 1)
        dparts_GJUR = torch.bmm(self._decay().mT, dstates_GJUR.flatten(2)).view(dstates_GJUR.shape)
        return dparts_GJUR[:, 1:].flatten(0, 1), dparts_GJUR[:, 0]

    def _decay(self) -> Tensor:
        """Return what each part counts for in each state, (G, J + 1, J + 1)."""
        gaps = self.scales_GJ.unsqueeze(-2) - self.scales_GJ.unsqueeze(-1)
        return gaps.exp_().tril_()


def _plan(q_BHNK: Tensor, features: FeatureMap) -> tuple[list[Tile], int]:
    """Return the tiles of heads and how many rows of each are taken at once."""
    batch, heads, n, width = q_BHNK.shape
    rows = tile_rows(q_BHNK, features.width(width))
    step = min(rows, SPAN_CHUNKS * CHUNK)
    return tiles(batch, heads, rows // max(1, min(n, step))), step
