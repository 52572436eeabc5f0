"""Longformer: a sliding window, and a few global positions that see all and are seen by all.

B batch   N positions   D model width   H heads   K width of a query or key head
V width of a value head   G global positions
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_impls._oracle import softmax_oracle
from attention_impls.contract import (
    Attention,
    Context,
    Dims,
    Heads,
    MechanismConfig,
    split_heads,
)
from attention_impls.pattern._band import Band
from attention_impls.pattern._folded import ALIGNED, folded_size
from attention_impls.pattern._global_columns import (
    Columns,
    attend_densely,
    attend_in_blocks,
    attend_in_parts,
)
from attention_impls.pattern._global_rows import Projections, copied, read_all
from attention_impls.pattern._parts import dense_is_cheaper, folds
from lra.core.cards import AttentionCard, Capabilities
from lra.core.errors import UnsupportedError

BLOCK = 64
"""Most queries in a block: they read the same window of keys."""


class LongformerConfig(MechanismConfig, frozen=True):
    """The window, and which positions are global where the context does not say."""

    window: Annotated[int, msgspec.Meta(ge=0)] = 512
    """Keys around a query, half of them to either side; its own place is not counted. An odd number
    is rounded down, but in parity."""
    leading: Annotated[int, msgspec.Meta(ge=0)] = 1
    """First positions that are global where `Context.special_BN` does not say: the class token."""
    parity: Literal["none", "lra2021"] = "none"
    """lra2021: the arena's plain window, own place counted, 255 keys before and 256 after at a
    window of 512, 3 and 3 at one of 7, and no global position."""


class Longformer(Attention):
    """softmax(q_i k_j / sqrt(K)) v_j over |i - j| <= w / 2 and the global j; all j for global i.

    In O(N (w + G)) time. Global rows have projections of their own for queries, keys and values,
    which start as copies of the local ones. One softmax per row; a global column inside of the
    window counts once. Ours: the window as a band with its global columns hidden, the global
    columns as a second part, joined by their log sums, or on a GPU in one call; global keys and
    values are never formed: (W_k^T q) x and W_v (p^T x) need no projection of all positions.
    """

    Config = LongformerConfig
    config: LongformerConfig
    trials = (LongformerConfig(window=4), LongformerConfig(window=6, leading=3))

    # Values of global rows are not among the `v` that the laws of linearity scale.
    card = AttentionCard(
        title="Longformer",
        paper="Beltagy, Peters, Cohan, Longformer: The Long-Document Transformer, 2020, "
        "arXiv:2004.05150",
        year=2020,
        time="O(n (w + g) d)",
        memory="O(n (d + g)); O(n (w + g)) on a GPU",
        softmax="configured",
        weights="free",
        linear=False,
        without_effect=(),
        capabilities=Capabilities(bidirectional=True, padding="content"),
    )

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
        self.global_query, self.global_key, self.global_value = (
            copied(local) for local in (self.query, self.key, self.value)
        )

    @property
    def matched(self) -> list[tuple[nn.Linear, nn.Linear]]:
        """The local projections, then the global ones."""
        return [*super().matched, (self.global_query, self.global_key)]

    @classmethod
    def exact_at(cls, n: int) -> LongformerConfig:
        """Return a window as wide as the input, without global positions."""
        return LongformerConfig(window=2 * n, leading=0)

    @property
    def borders(self) -> tuple[int, ...]:
        """Length of a block, and of the window of a query, its own position included."""
        return (BLOCK, sum(self._reach) + 1)

    def project(
        self, x_BND: Tensor, context: Context, source_BMD: Tensor | None, state: Any
    ) -> Heads:
        """Return local queries, keys and values; beside them the input and its global positions.

        Raises `UnsupportedError` where the arena's form is asked for global positions.
        """
        arena, special_BN = self.config.parity == "lra2021", context.special_BN
        if special_BN is not None and arena:
            raise UnsupportedError(
                "longformer: parity='lra2021' has no global positions; leave parity or special_BN "
                "out"
            )
        heads = super().project(x_BND, context, source_BMD, state)
        if special_BN is None:
            places_N = torch.arange(x_BND.shape[1], device=x_BND.device)
            leading = 0 if arena else self.config.leading
            special_BN = (places_N < leading).expand(len(x_BND), -1)
        if context.key_mask_BM is not None:
            special_BN = special_BN & context.key_mask_BM
        return heads._replace(extra={"x_BND": x_BND, "special_BN": special_BN})

    def attend(
        self,
        q_BHNK: Tensor,
        k_BHNK: Tensor,
        v_BHNV: Tensor,
        context: Context,
        state: None = None,
        *,
        x_BND: Tensor,
        special_BN: Tensor,
    ) -> tuple[Tensor, None]:
        """Return attention over the window and the global columns, global rows in their place."""
        if not q_BHNK.shape[2]:
            return v_BHNV, None
        columns, mask_BN = self._columns(special_BN, context), context.key_mask_BM
        dropout = self.dims.dropout if self.training else 0.0
        band = self._band(q_BHNK.shape[2])
        if self._is_dense(band, columns.most, q_BHNK, dropout):
            compute = attend_densely
        else:
            compute = attend_in_blocks if folds(q_BHNK) else attend_in_parts
        out_BHNV = compute(q_BHNK, k_BHNK, v_BHNV, band, columns, mask_BN, dropout=dropout)
        if not columns.most:
            return out_BHNV, None

        by = Projections(self.global_query, self.global_key, self.global_value)
        places_BG, chosen_BG = columns.places_BG, columns.chosen_BG
        heads = self.dims.heads
        rows_BHGV = read_all(x_BND, places_BG, mask_BN, by, heads=heads, dropout=dropout)
        rows_BHGV = rows_BHGV.to(out_BHNV.dtype)
        index = places_BG[:, None, :, None].expand_as(rows_BHGV)
        rows_BHGV = torch.where(chosen_BG[:, None, :, None], rows_BHGV, out_BHNV.gather(2, index))
        return out_BHNV.scatter(2, index, rows_BHGV), None

    def oracle(
        self,
        q_BHNK: Tensor,
        k_BHNK: Tensor,
        v_BHNV: Tensor,
        context: Context,
        *,
        x_BND: Tensor,
        special_BN: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Return local and global attention of all rows, in float64, each row's own picked."""
        near_NN = self._near(q_BHNK.shape[2]).to(q_BHNK.device)
        pattern = near_NN | special_BN[:, None, None, :]
        local, local_weights = softmax_oracle(q_BHNK, k_BHNK, v_BHNV, context, pattern)
        q, k, v = (
            split_heads(
                F.linear(
                    x_BND.double(),
                    linear.weight.double(),
                    None if linear.bias is None else linear.bias.double(),
                ),
                self.dims.heads,
            )
            for linear in (self.global_query, self.global_key, self.global_value)
        )
        everywhere, global_weights = softmax_oracle(q, k, v, context)
        row = special_BN[:, None, :, None]
        return (
            torch.where(row, everywhere, local),
            torch.where(row, global_weights, local_weights),
        )

    def support(
        self, n: int, m: int, context: Context, *, x_BND: Tensor, special_BN: Tensor
    ) -> Tensor:
        """Return the window, and the rows and columns of global positions, (B, 1, N, N)."""
        special_BN = special_BN.cpu()
        return self._near(n) | special_BN[:, None, None, :] | special_BN[:, None, :, None]

    def operations(self, n: int, *, causal: bool = False) -> int:
        """Blocks of queries, each with the whole blocks that hold its reach and with G columns; all
        pairs where that is one dense call. For G global rows their queries, 2 G D of each channel
        to bring these to the inputs and to bring these to values, and per head G N pairs of width
        D; by how much biases of keys move the logits."""
        band = self._band(n)
        rows = 0 if self.config.parity == "lra2021" else min(n, self.config.leading)
        dense = self._is_dense(band, rows, self.query.weight, dropout=0.0)
        columns = rows + (-rows % ALIGNED if folds(self.query.weight) else 0)
        pairs = n * n if dense else band.pairs + band.count * band.size * columns
        total = self.projection_operations(n) + self.pair_operations(pairs)
        heads, width, qkv_width = self.dims.heads, self.dims.width, self.dims.qkv_width
        total += 3 * 2 * rows * width * qkv_width + 2 * 2 * heads * rows * n * width
        return total + (2 * rows * qkv_width if self.dims.projection_biases else 0)

    def _near(self, n: int) -> Tensor:
        """Return which pairs are within the window, (N, N)."""
        left, right = self._reach
        distance_NN = torch.arange(n) - torch.arange(n).unsqueeze(-1)
        return (distance_NN >= -left) & (distance_NN <= right)

    @property
    def _reach(self) -> tuple[int, int]:
        """Return how many keys a query sees before its own place, and after."""
        window = self.config.window
        if self.config.parity == "lra2021":
            return max(0, window - window // 2 - 1), window // 2
        return window // 2, window // 2

    def _band(self, n: int) -> Band:
        """Return the window, cut down to keys that there are."""
        left, right = self._reach
        size = min(BLOCK, max(1, right))
        if folds(self.query.weight):
            size = folded_size(BLOCK, max(left, right))
        return Band(n, n, left=min(left, n - 1), right=min(right, n - 1), size=size)

    def _is_dense(self, band: Band, columns: int, like: Tensor, dropout: float) -> bool:
        """Whether all pairs are computed, on the device of `like`, with so many global columns."""
        n, (left, _) = band.n, self._reach
        return dense_is_cheaper(
            n * n,
            band.pairs + n * columns,
            parts=2,
            device=like.device,
            autograd=folds(like),
            reached=left >= n - 1,
            dropout=dropout,
        )

    def _columns(self, special_BN: Tensor, context: Context) -> Columns:
        """Return the global positions, with others in examples that have fewer than the most."""
        batch, n = special_BN.shape
        given = context.special_BN is not None
        if given:
            most = int(special_BN.sum(dim=1).amax()) if batch else 0
            ranked_BN = special_BN.to(torch.uint8).argsort(dim=1, descending=True, stable=True)
            places_BG = ranked_BN[:, :most]
        else:
            most = min(n, self.config.leading) if self.config.parity == "none" else 0
            places_BG = torch.arange(most, device=special_BN.device).expand(batch, -1)
        return Columns(
            special_BN=special_BN,
            places_BG=places_BG,
            chosen_BG=special_BN.gather(1, places_BG),
            alike=not given and context.key_mask_BM is None,
        )
