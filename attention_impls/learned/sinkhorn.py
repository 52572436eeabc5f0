"""Sinkhorn Transformer: each block of positions reads itself and one block sorted towards it.

B batch   N positions   D model width   H heads   K width of a query or key head   V width of a
value head   S positions in a block   U blocks   W blocks as sources   L blocks of the longest input
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import msgspec
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_impls.contract import (
    Attention,
    Context,
    Dims,
    Heads,
    MechanismConfig,
    causal_mask,
    zero_padding,
)
from attention_impls.learned._sorting import (
    FLOOR,
    dense_sort,
    sort,
    with_sorted,
    with_sorted_at_once,
)
from attention_impls.learned._summed import summed_attention, summed_oracle
from attention_impls.pattern._parts import needs_autograd
from lra.core.cards import AttentionCard, Capabilities
from lra.core.errors import UnsupportedError


class SinkhornConfig(MechanismConfig, frozen=True):
    """Hyper-parameters of the Sinkhorn Transformer."""

    block: Annotated[int, msgspec.Meta(ge=1)] = 64
    """S, positions in a block."""
    iterations: Annotated[int, msgspec.Meta(ge=0)] = 7
    """Normalisations of columns and rows, one of each per iteration."""
    temperature: Annotated[float, msgspec.Meta(gt=0)] = 0.75
    """Divides what the sorting network says: lower is nearer to a permutation."""
    noise: bool = True
    """Gumbel noise on what the sorting network says, in training only. Drawn as dropout is, from
    torch's generator, which a training seeds; the layer's own seed has no part in it."""
    parity: Literal["none", "lra2021"] = "none"
    """lra2021: what the arena's code amounts to (it had block=50, and 64 for images). Nothing is
    sorted, so there is no network, and the other fields but `block` have no effect. A query reads
    the positions a multiple of U away, for U blocks, by one softmax, and by a second, which is
    added, one slot for each run of U positions, the plain sum of its keys and of its values. Sets
    and runs depend on how many positions there are, padded ones included: bidirectional only, and
    padded rows need one common length. Unlike there, padding is masked, and the block need not
    divide the length."""


class Sinkhorn(Attention):
    """softmax(q [k; S k]^T / sqrt(K)) [v; S v] in blocks, with S a doubly stochastic mix of blocks.

    In O(N (S + N / S)) time and O(N + (N / S)^2) memory, or O(N S + (N / S)^2) where later
    positions are masked and with dropout on a CPU. A sorting network per head, two linear maps with
    a ReLU between, says from the sum of a block's inputs which blocks it wants; Sinkhorn's
    iterations balance that, so that each is wanted about once. A single block reads all its keys
    twice, which is softmax attention. The network has an output per block of the longest input, so
    the length is limited.

    Causal, a block wants only earlier ones, by the inputs up to its own first position, and rows
    alone are normalised: a triangular matrix that is doubly stochastic is the identity, so that
    balancing it would undo the sort.

    Ours: the last normalisation is that of rows, so that weights sum to 1; a slot mixes the real
    positions in it alone and is left out where it has none; blocks of nothing but padding take no
    part, so that padding behind an input changes nothing.
    """

    card = AttentionCard(
        title="Sinkhorn Transformer",
        paper="Tay et al., Sparse Sinkhorn Attention, ICML 2020, arXiv:2002.11296",
        year=2020,
        time="O(n b d + n^2 d / b)",
        memory="O(n b + n^2 / b^2)",
        softmax="configured",
        weights="convex",
        capabilities=Capabilities(
            bidirectional=True,
            causal="strict",
            padding="content",
            fixed_length=True,
        ),
    )
    Config = SinkhornConfig
    config: SinkhornConfig
    trials = (SinkhornConfig(block=4), SinkhornConfig(block=5, iterations=2, temperature=1.0))

    def __init__(
        self,
        dims: Dims,
        config: MechanismConfig | None = None,
        *,
        layer_index: int = 0,
        shared: nn.Module | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(dims, config, layer_index=layer_index, shared=shared, seed=seed)
        self.longest = max(1, -(-dims.max_length // self.config.block))
        if self.config.parity == "none":
            self.sort_hidden = nn.Linear(dims.width, dims.width)
            self.sort_wanted = nn.Linear(dims.width, dims.heads * self.longest)

    @classmethod
    def exact_at(cls, n: int) -> SinkhornConfig:
        """One block for all positions."""
        return SinkhornConfig(block=max(1, n))

    @property
    def borders(self) -> tuple[int, ...]:
        """The length of a block."""
        return (self.config.block,)

    def project(
        self, x_BND: Tensor, context: Context, source_BMD: Tensor | None, state: Any
    ) -> Heads:
        """Add what the sorting network wants, (B, H, U, W) float32 or better, to the heads."""
        if self.config.parity == "lra2021":
            return super().project(x_BND, context, source_BMD, state)
        count = -(-x_BND.shape[1] // self.config.block)
        # A block wants by what it holds as a source, as the other blocks see it. Padding is zero.
        seen_BND = x_BND
        if context.key_mask_BM is not context.query_mask_BN:
            seen_BND = zero_padding(x_BND, context.key_mask_BM)
        with torch.autocast(x_BND.device.type, enabled=False):
            precise = torch.promote_types(self.sort_hidden.weight.dtype, torch.float32)
            if not needs_autograd(x_BND, None):
                seen_BND = seen_BND.to(precise)  # a GPU converts what it adds up as it goes
            x_BUSD = self._blocks(seen_BND.unsqueeze(1)).squeeze(1)
            sums_BUD = x_BUSD.sum(2, dtype=precise)
            if context.causal:
                # Up to the block's own first position, which each of its queries may see.
                # Later positions are never added: taken off again, they would leave their rounding.
                before_BUD = F.pad(sums_BUD[:, :-1].cumsum(1), (0, 0, 1, 0))
                sums_BUD = before_BUD + x_BUSD[:, :, 0]
            hidden_BUD = F.relu(_linear(self.sort_hidden, sums_BUD))
            wanted = _linear(self.sort_wanted, hidden_BUD)
            wanted_BUHL = wanted.view(*wanted.shape[:2], self.dims.heads, self.longest)
            wanted_BHUW = wanted_BUHL[..., :count].transpose(1, 2)
            if self.training and self.config.noise:
                uniform = torch.rand_like(wanted_BHUW).clamp(min=1e-9)
                wanted_BHUW = wanted_BHUW - torch.log(-torch.log(uniform) + 1e-9)
            wanted_BHUW = wanted_BHUW / self.config.temperature
        heads = super().project(x_BND, context, source_BMD, state)
        return heads._replace(extra={"wanted": wanted_BHUW})

    def attend(
        self,
        q_BHNK: Tensor,
        k_BHNK: Tensor,
        v_BHNV: Tensor,
        context: Context,
        state: Any = None,
        *,
        wanted: Tensor | None = None,
    ) -> tuple[Tensor, Any]:
        """Return softmax over both blocks' keys, (B, H, N, V)."""
        self._refuse_parity(context)
        batch, _, n, _ = q_BHNK.shape
        if not n:
            return v_BHNV, None
        dropout = self.dims.dropout if self.training else 0.0
        if wanted is None:
            size = self.config.block
            out = summed_attention(q_BHNK, k_BHNK, v_BHNV, context, size=size, dropout=dropout)
            return out, None
        size, count = self.config.block, wanted.shape[2]
        key_mask_BM = context.key_mask_BM
        real_BN = q_BHNK.new_ones(1, n, dtype=torch.bool) if key_mask_BM is None else key_mask_BM
        real_BUS = self._blocks(real_BN[:, None, :, None]).squeeze(1).squeeze(-1)
        sort_BHUW = sort(wanted, real_BUS.any(-1), self.config.iterations, context.causal)

        shares_BHUS, permitted = None, None
        if key_mask_BM is not None or context.causal or count * size > n:
            with torch.autocast(q_BHNK.device.type, enabled=False):
                shares_BHUS = sort_BHUW @ real_BUS.to(sort_BHUW)[:, None]
            permitted = self._permitted(real_BUS, shares_BHUS, context.causal)
        real = None if key_mask_BM is None else real_BUS
        # In float16 a small share of the values would be nothing before it is divided by.
        at_once = needs_autograd(q_BHNK, None) and q_BHNK.dtype != torch.float16
        join = with_sorted_at_once if at_once else with_sorted
        k_BUHXK, v_BUHXV = (join(x, size, sort_BHUW, shares_BHUS, real) for x in (k_BHNK, v_BHNV))
        # Blocks stand as a batch of their own, so that heads stay as the projections have them.
        out = F.scaled_dot_product_attention(
            self._blocks(q_BHNK).transpose(1, 2).flatten(0, 1),
            k_BUHXK.flatten(0, 1),
            v_BUHXV.flatten(0, 1),
            attn_mask=permitted,
            dropout_p=dropout,
        )
        out_BHNV = out.view(batch, count, *out.shape[1:]).transpose(1, 2).flatten(2, 3)
        return out_BHNV[:, :, :n], None

    def oracle(
        self,
        q_BHNK: Tensor,
        k_BHNK: Tensor,
        v_BHNV: Tensor,
        context: Context,
        *,
        wanted: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return the same with each block's mix written out over all positions, in float64."""
        self._refuse_parity(context)
        if wanted is None:
            return summed_oracle(q_BHNK, k_BHNK, v_BHNV, context, size=self.config.block)
        q, k, v = q_BHNK.double(), k_BHNK.double(), v_BHNV.double()
        batch, heads, n, width = q.shape
        size = self.config.block
        real_BN = torch.ones(batch, n, dtype=torch.bool, device=q.device)
        if context.key_mask_BM is not None:
            real_BN = context.key_mask_BM
        places = torch.arange(n, device=q.device)
        block_N, slot_N = places // size, places % size
        filled_BU = torch.stack(
            [real_BN[:, block_N == u].any(1) for u in range(wanted.shape[2])] or [real_BN], dim=1
        )
        mix_BHUW = dense_sort(
            wanted.double(), filled_BU, self.config.iterations, causal=context.causal
        )
        weights = []
        for i in range(n):
            # Every slot of the sorted block is a mixture of the positions that stand there.
            mix_BHN = mix_BHUW[:, :, block_N[i], block_N] * real_BN[:, None]
            slots_SN = (slot_N == torch.arange(size, device=q.device)[:, None]).double()
            mix_BHSN = mix_BHN.unsqueeze(2) * slots_SN
            share_BHS1 = mix_BHSN.sum(-1, keepdim=True)
            there_BHS1 = share_BHS1 > FLOOR
            mix_BHSN = mix_BHSN / torch.where(there_BHS1, share_BHS1, 1.0) * there_BHS1
            own_N = (block_N == block_N[i]) & ((places <= i) | (not context.causal))
            own_BHN = (own_N & real_BN)[:, None].expand(-1, heads, -1)
            scores_BHN = torch.einsum("bhk,bhnk->bhn", q[:, :, i], k) / math.sqrt(width)
            scores_BHN = scores_BHN.masked_fill(~real_BN[:, None], 0.0)
            sorted_BHS = torch.einsum("bhsn,bhn->bhs", mix_BHSN, scores_BHN)
            both = torch.cat([scores_BHN, sorted_BHS], dim=-1)
            there = torch.cat([own_BHN, there_BHS1.squeeze(-1)], dim=-1)
            top = both.detach().masked_fill(~there, -math.inf).amax(-1, keepdim=True)
            share = torch.exp((both - top).masked_fill(~there, -math.inf))
            total = share.sum(-1, keepdim=True)
            share = share / torch.where(total > 0.0, total, 1.0)
            weights.append(share[..., :n] + torch.einsum("bhs,bhsn->bhn", share[..., n:], mix_BHSN))
        weights_BHNN = torch.stack(weights, dim=2) if n else q.new_zeros(batch, heads, 0, 0)
        return weights_BHNN @ v, weights_BHNN

    def support(self, n: int, m: int, context: Context, *, wanted: Tensor | None = None) -> Tensor:
        """Return all pairs, or all earlier ones: a soft sort reads every block."""
        self._refuse_parity(context)
        return super().support(n, m, context)

    def operations(self, n: int, *, causal: bool = False) -> int:
        """U blocks of S queries with 2 S keys, 2 U^2 S of each channel to mix keys and as many to
        mix values, and the sorting network for each block; 2 U^2 S per head for the shares of real
        positions where some are hidden. Sinkhorn's iterations take no product.

        In parity, U sets of S queries with S keys, and N queries with S slots.
        """
        heads, width, qkv_width = self.dims.heads, self.dims.width, self.dims.qkv_width
        size = self.config.block
        count = -(-n // size)
        total = self.projection_operations(n)
        if self.config.parity == "lra2021":
            return total + self.pair_operations((count * size + n) * size)
        total += self.pair_operations(count * size * 2 * size)
        total += 2 * 2 * count**2 * size * qkv_width
        total += 2 * count * width * (width + heads * self.longest)
        if causal or count * size > n:
            total += 2 * count**2 * size * heads
        return total

    def _refuse_parity(self, context: Context) -> None:
        """Raise `UnsupportedError` where the arena's sums would let the future in."""
        if context.causal and self.config.parity == "lra2021":
            raise UnsupportedError(
                "sinkhorn: the sums of parity='lra2021' hold later positions, so they cannot be "
                "causal; leave parity out"
            )

    def _permitted(self, real_BUS: Tensor, shares_BHUS: Tensor, causal: bool) -> Tensor:
        """Return which of the X = 2 S keys each query sees, (B U, H, S or 1, X).

        A query that sees none is given what it would see if all were real: values that are zero.
        So its output is zero, and no pass over the outputs has to make it so.
        """
        batch, heads, _, size = shares_BHUS.shape
        earlier_SS = real_BUS.new_ones(1, size)
        if causal:
            earlier_SS = causal_mask(size, size, real_BUS.device)
        own = (real_BUS[:, :, None, None, :] & earlier_SS).expand(batch, -1, heads, -1, -1)
        sorted_BUHSX = (shares_BHUS > FLOOR).transpose(1, 2).unsqueeze(3).expand_as(own)
        permitted = torch.cat([own, sorted_BUHSX], dim=-1)
        if_real = torch.cat([earlier_SS, torch.ones_like(earlier_SS)], dim=-1)
        return (permitted | (if_real & ~permitted.any(-1, keepdim=True))).flatten(0, 1)

    def _blocks(self, x_BHNK: Tensor) -> Tensor:
        """(B, H, N, K) to (B, H, U, S, K), zero behind the last position."""
        batch, heads, n, width = x_BHNK.shape
        size = self.config.block
        count = -(-n // size)
        if count * size > n:
            x_BHNK = F.pad(x_BHNK, (0, 0, 0, count * size - n))
        return x_BHNK.reshape(batch, heads, count, size, width)


def _linear(layer: nn.Linear, x: Tensor) -> Tensor:
    return F.linear(x, layer.weight.to(x.dtype), layer.bias.to(x.dtype))
