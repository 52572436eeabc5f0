"""Softmax attention to the neighbours on either side, in linear time and memory.

B batch   N queries   M keys   H heads   K width of a query or key head   V width of a value head
"""

from __future__ import annotations

from typing import Annotated

import msgspec
import torch
from torch import Tensor

from attention_impls._oracle import softmax_oracle
from attention_impls.contract import Attention, Context, MechanismConfig, Position, seen
from attention_impls.pattern._band import Band
from attention_impls.pattern._blocked import blocked_attention
from attention_impls.pattern._claims import BY_POSITION
from attention_impls.pattern._folded import folded_size
from attention_impls.pattern._fused import dense_attention, folded_attention
from attention_impls.pattern._memory import RememberedWindow, empty_window, remember_window
from attention_impls.pattern._parts import dense_is_cheaper, folds, needs_autograd
from lra.core.cards import AttentionCard

Reach = Annotated[int, msgspec.Meta(ge=0)]

BLOCK = 64
"""Queries in a block. All of a block read the same keys: the block's own, and as many whole blocks
on either side as hold the reach there."""


class SlidingWindowConfig(MechanismConfig, frozen=True):
    """How far a query sees. Its own place is seen always and counted in neither.

    The paper's window of 512 in all is 256 to either side, as here. The Long Range Arena's is 255
    and 256; a causal window of W keys in all, as in Mistral, is left = W - 1.
    """

    left: Reach = 256
    """Keys before the query's own."""
    right: Reach = 256
    """Keys after it; causal attention has none."""


class SlidingWindow(Attention):
    """softmax(q_i k_j / sqrt(K) + bias) v_j over i - left <= j <= i + right.

    In O(N (left + right)) time. The pattern of Longformer without its global positions, exact
    within the band. Ours: blocks of 64 queries over strided windows of the keys, one tile of them
    at a time (`_blocked`); on a GPU and when compiled, blocks folded into the batch of one fused
    call; short inputs, where blocks would save nothing, in one dense call (`_fused`).
    """

    Config = SlidingWindowConfig
    config: SlidingWindowConfig
    trials = (SlidingWindowConfig(left=3, right=2), SlidingWindowConfig(left=5, right=0))

    card = AttentionCard(
        title="Sliding window",
        paper="Beltagy, Peters, Cohan, Longformer: The Long-Document Transformer, 2020, "
        "arXiv:2004.05150",
        year=2020,
        time="O(n w d)",
        memory="O(n d); O(n w) on a GPU or with a trained bias",
        softmax="configured",
        weights="convex",
        capabilities=BY_POSITION,
    )

    @classmethod
    def exact_at(cls, n: int) -> SlidingWindowConfig:
        """Return a window as wide as the input."""
        return SlidingWindowConfig(left=n, right=n)

    @property
    def borders(self) -> tuple[int, ...]:
        """Length of a block, and of the window of a query, its own position included."""
        return (BLOCK, self.config.left + self.config.right + 1)

    def attend(
        self,
        q_BHNK: Tensor,
        k_BHMK: Tensor,
        v_BHMV: Tensor,
        context: Context,
        state: RememberedWindow | None = None,
    ) -> tuple[Tensor, RememberedWindow | None]:
        """Return attention over the band; with a state, also to what it remembers."""
        n, key_mask_BM = q_BHNK.shape[2], context.key_mask_BM
        origin = seen(state)
        if state is not None:
            state, k_BHMK, v_BHMV, key_mask_BM = remember_window(
                state, k_BHMK, v_BHMV, key_mask_BM, self.config.left
            )
        elif context.causal:
            origin = k_BHMK.shape[2] - n
        band = self._band(n, k_BHMK.shape[2], causal=context.causal, like=q_BHNK)
        position = context.position
        dropout = self.dims.dropout if self.training else 0.0
        if _is_dense(band, q_BHNK, position, dropout):
            compute = dense_attention
        else:
            autograd = needs_autograd(q_BHNK, position)
            compute = folded_attention if autograd else blocked_attention
        out_BHNV = compute(
            q_BHNK,
            k_BHMK,
            v_BHMV,
            band,
            key_mask_BM=key_mask_BM,
            position=position,
            origin=origin,
            dropout=dropout,
        )
        return out_BHNV, state

    def oracle(
        self, q_BHNK: Tensor, k_BHMK: Tensor, v_BHMV: Tensor, context: Context
    ) -> tuple[Tensor, Tensor]:
        """Return full attention under the band's mask, in float64."""
        n, m = q_BHNK.shape[2], k_BHMK.shape[2]
        return softmax_oracle(q_BHNK, k_BHMK, v_BHMV, context, self.support(n, m, context))

    def support(self, n: int, m: int, context: Context) -> Tensor:
        """Return the band, (N, M): i - left <= j <= i + right, or <= i where causal."""
        rows_N1 = torch.arange(n).unsqueeze(-1) + (m - n if context.causal else 0)
        right = 0 if context.causal else self.config.right
        columns_M = torch.arange(m)
        return (columns_M >= rows_N1 - self.config.left) & (columns_M <= rows_N1 + right)

    def empty_state(
        self, batch: int, *, length: int, device: torch.device, dtype: torch.dtype
    ) -> RememberedWindow:
        """Return an empty memory of `left` keys, or of `length` where that is less."""
        heads, width = self.dims.heads, self.dims.head_width
        remembered = min(self.config.left, length)
        return empty_window(batch, heads, width, remembered=remembered, device=device, dtype=dtype)

    def operations(self, n: int, *, causal: bool = False) -> int:
        """Blocks of queries, each with the whole blocks that hold its reach; all pairs where
        that is one dense call."""
        like = self.query.weight
        band = self._band(n, n, causal=causal, like=like)
        dense = _is_dense(band, like, None, dropout=0.0)
        return self.projection_operations(n) + self.pair_operations(n * n if dense else band.pairs)

    def _band(self, n: int, m: int, *, causal: bool, like: Tensor) -> Band:
        """Return the band, cut down to keys that there are; in larger blocks on a GPU, where keys
        are copied to each."""
        left, right = self.config.left, 0 if causal else self.config.right
        size = folded_size(BLOCK, max(left, right)) if folds(like) else BLOCK
        return Band(n, m, left=min(left, m - 1), right=min(right, n - 1), size=size)


def _is_dense(band: Band, like: Tensor, position: Position | None, dropout: float) -> bool:
    """Whether all pairs are computed, on the device of `like`."""
    return dense_is_cheaper(
        band.n * band.m,
        band.pairs,
        parts=1,
        device=like.device,
        autograd=needs_autograd(like, position),
        reached=band.left >= band.m - 1,
        dropout=dropout,
    )
