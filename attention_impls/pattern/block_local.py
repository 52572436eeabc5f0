"""Softmax attention inside blocks that do not overlap, in linear time and memory.

B batch   N queries   M keys   H heads   K width of a query or key head   V width of a value head
U blocks   S positions in a block   P padded keys
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

import msgspec
import torch
import torch.nn.functional as F
from torch import Tensor

from attention_impls._oracle import softmax_oracle
from attention_impls.contract import (
    Attention,
    Context,
    MechanismConfig,
    Position,
    causal_mask,
    seen,
)
from attention_impls.dense._fused import fused_softmax
from attention_impls.pattern._bias import stacked
from attention_impls.pattern._claims import BY_POSITION
from attention_impls.pattern._layouts import divided
from attention_impls.pattern._memory import RememberedWindow, empty_window, remember_window
from lra.core.cards import AttentionCard
from lra.core.errors import UnsupportedError


class BlockLocalConfig(MechanismConfig, frozen=True):
    """How the sequence is cut."""

    block: Annotated[int, msgspec.Meta(ge=1)] = 64
    """Positions in a block. The Long Range Arena has 50, and 64 for images."""
    parity: Literal["none", "lra2021"] = "none"
    """lra2021: the arena's sets. Its code attends along the wrong axis, so that a set holds
    positions n // block + 1 apart, spread over all of the input. They depend on how many positions
    there are, padded ones included: bidirectional only, and padded rows need one common length.
    Unlike there, padding is masked."""


class BlockLocal(Attention):
    """softmax(q_i k_j / sqrt(K) + bias) v_j over floor(i / S) = floor(j / S), with blocks of S.

    In O(N S) time. Exact within a block; nothing passes from one to another. The local attention
    of Image Transformer's one-dimensional form without memory blocks, as in the Long Range Arena.
    The last block may be shorter; no block of padding is added.
    """

    Config = BlockLocalConfig
    config: BlockLocalConfig
    trials = (BlockLocalConfig(block=4), BlockLocalConfig(block=7))

    card = AttentionCard(
        title="Block-local",
        paper="Parmar et al., Image Transformer, ICML 2018, arXiv:1802.05751; "
        "Tay et al., Long Range Arena, ICLR 2021, arXiv:2011.04006",
        year=2018,
        time="O(n s d)",
        memory="O(n d + s); O(n s) with a bias, causal padding, a state or, on a CPU, dropout",
        softmax="configured",
        weights="convex",
        capabilities=BY_POSITION,
    )

    @classmethod
    def exact_at(cls, n: int) -> BlockLocalConfig:
        """Return one block for all."""
        return BlockLocalConfig(block=max(1, n))

    @property
    def borders(self) -> tuple[int, ...]:
        """Length of a block."""
        return (self.config.block,)

    def attend(
        self,
        q_BHNK: Tensor,
        k_BHMK: Tensor,
        v_BHMV: Tensor,
        context: Context,
        state: RememberedWindow | None = None,
    ) -> tuple[Tensor, RememberedWindow | None]:
        """Return attention inside blocks; with a state, also to what it remembers of the first."""
        size, n, mask_BM = self.config.block, q_BHNK.shape[2], context.key_mask_BM
        self._refuse_parity(context)
        ahead, origin = k_BHMK.shape[2] - n if context.causal else 0, 0
        if state is not None:
            ahead = seen(state) % size
            origin = seen(state) - ahead
            state, k_BHMK, v_BHMV, mask_BM = remember_window(
                state, k_BHMK, v_BHMV, mask_BM, size - 1
            )
            gone = k_BHMK.shape[2] - ahead - n
        else:
            gone = ahead - ahead % size
            ahead, origin = ahead - gone, gone
        k_BHMK, v_BHMV = k_BHMK[:, :, gone:], v_BHMV[:, :, gone:]
        mask_BM = None if mask_BM is None else mask_BM[:, gone:]
        whole = k_BHMK.shape[2] <= size and self.config.parity == "none"
        compute = self._in_one_block if whole else self._in_blocks
        return compute(q_BHNK, k_BHMK, v_BHMV, mask_BM, context, ahead, origin), state

    def oracle(
        self, q_BHNK: Tensor, k_BHMK: Tensor, v_BHMV: Tensor, context: Context
    ) -> tuple[Tensor, Tensor]:
        """Return full attention between positions of one block, in float64."""
        n, m = q_BHNK.shape[2], k_BHMK.shape[2]
        return softmax_oracle(q_BHNK, k_BHMK, v_BHMV, context, self.support(n, m, context))

    def support(self, n: int, m: int, context: Context) -> Tensor:
        """Return which pairs share a block, (N, M); no later key where causal."""
        self._refuse_parity(context)
        rows_N1 = torch.arange(n).unsqueeze(-1) + (m - n if context.causal else 0)
        columns_M = torch.arange(m)
        if self.config.parity == "lra2021":
            apart = n // self.config.block + 1
            return rows_N1 % apart == columns_M % apart
        same = rows_N1 // self.config.block == columns_M // self.config.block
        return same & (columns_M <= rows_N1) if context.causal else same

    def empty_state(
        self, batch: int, *, length: int, device: torch.device, dtype: torch.dtype
    ) -> RememberedWindow:
        """Return an empty memory of all keys of a block but one, or of `length` if that is less."""
        self._refuse_parity(Context(causal=True))
        heads, width = self.dims.heads, self.dims.head_width
        remembered = min(self.config.block - 1, length)
        return empty_window(batch, heads, width, remembered=remembered, device=device, dtype=dtype)

    def operations(self, n: int, *, causal: bool = False) -> int:
        """As many blocks of S by S as hold all positions, or N^2 pairs of a single one."""
        size = self.config.block
        if self.config.parity == "lra2021":
            pairs = (n // size + 1) * size**2
        else:
            pairs = n * n if n <= size else -(-n // size) * size**2
        return self.projection_operations(n) + self.pair_operations(pairs)

    def _refuse_parity(self, context: Context) -> None:
        """Raise `UnsupportedError` where the arena's sets would let the future in."""
        if context.causal and self.config.parity == "lra2021":
            raise UnsupportedError(
                "block_local: the sets of parity='lra2021' depend on the length, so they cannot "
                "be causal; leave parity out"
            )

    def _in_one_block(
        self,
        q_BHNK: Tensor,
        k_BHMK: Tensor,
        v_BHMV: Tensor,
        mask_BM: Tensor | None,
        context: Context,
        ahead: int,
        origin: int,
    ) -> Tensor:
        """The same where one block holds all keys: nothing is padded, so that a decode step costs
        one row and no block."""
        m, device, bias_HNM = k_BHMK.shape[2], q_BHNK.device, None
        permitted = None if mask_BM is None else mask_BM[:, None, None, :]
        if context.causal and m > ahead + 1:
            earlier_NM = causal_mask(m - ahead, m, device)
            permitted = earlier_NM if permitted is None else permitted & earlier_NM
        if context.position is not None:
            places_M = torch.arange(origin, origin + m, device=device)
            bias_HNM = context.position.logits(places_M[ahead:], places_M)
        dropout = self.dims.dropout if self.training else 0.0
        return fused_softmax(q_BHNK, k_BHMK, v_BHMV, permitted, bias_HNM, dropout=dropout)

    def _in_blocks(
        self,
        q_BHNK: Tensor,
        k_BHMK: Tensor,
        v_BHMV: Tensor,
        mask_BM: Tensor | None,
        context: Context,
        ahead: int,
        origin: int,
    ) -> Tensor:
        """Return (B, H, N, V). Keys begin with a block, at position `origin`, and queries stand
        `ahead` behind them; each block is one more example of a fused call."""
        batch, _, n, _ = q_BHNK.shape
        m, size, device = ahead + n, self.config.block, q_BHNK.device
        lra = self.config.parity == "lra2021"
        count = m // size + 1 if lra else -(-m // size)
        length = count * size

        def cut(x_BHMK: Tensor, before: int = 0) -> Tensor:
            """(B, H, M, K) to (B * U, H, S, K), zero around it."""
            missing = (0, 0, before, length - before - x_BHMK.shape[2])
            x = F.pad(x_BHMK, missing) if length > x_BHMK.shape[2] else x_BHMK
            shape = (size, count) if lra else (count, size)
            blocks = divided(x, 2, *shape)
            return blocks.movedim(3 if lra else 2, 1).flatten(0, 1)

        bias = self._bias(context.position, cut, batch, origin, m, device)
        # Positions missing in the last block lie behind all queries: causality hides them.
        causal, permitted = context.causal and mask_BM is None and bias is None, None
        if not causal and (mask_BM is not None or length > m or context.causal):
            real_BM = mask_BM if mask_BM is not None else k_BHMK.new_ones(batch, m).bool()
            permitted = cut(real_BM[:, None, :, None]).mT
            if context.causal:
                permitted = permitted & causal_mask(size, size, device)
        out = fused_softmax(
            cut(q_BHNK, ahead),
            cut(k_BHMK),
            cut(v_BHMV),
            permitted,
            bias,
            causal=causal,
            dropout=self.dims.dropout if self.training else 0.0,
        )
        out_BHMV = divided(out, 0, batch, count).movedim(1, 3 if lra else 2).flatten(2, 3)
        return out_BHMV[:, :, ahead:m]

    @staticmethod
    def _bias(
        position: Position | None,
        cut: Callable[[Tensor], Tensor],
        batch: int,
        origin: int,
        m: int,
        device: torch.device,
    ) -> Tensor | None:
        """Return what positions add, (B * U, H, S, S), or None."""
        if position is None:
            return None
        # Padding, which is masked, gets the first position, so that a table is never left.
        places_US = cut(torch.arange(m, device=device)[None, None, :, None])[:, 0, :, 0] + origin
        bias_UHSS = stacked([position.logits(places_S, places_S) for places_S in places_US], dim=0)
        return None if bias_UHSS is None else bias_UHSS.repeat(batch, 1, 1, 1)
