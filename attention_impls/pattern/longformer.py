"""Longformer: a sliding window, and a few global positions that see all and are seen by all.

B batch   N positions   D model width   H heads   K width of a head   G global positions
U blocks of queries   S queries in a block
"""

from __future__ import annotations

import math
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
    default_scale,
    split_heads,
)
from attention_impls.dense._fused import fused_softmax
from attention_impls.pattern._band import Band
from attention_impls.pattern._folded import (
    ALIGNED,
    attend_blocks,
    folded_size,
    windows_beside,
)
from attention_impls.pattern._layouts import Shared
from attention_impls.pattern._parts import (
    Part,
    attend_part,
    dense_is_cheaper,
    folds,
    merge,
)
from attention_impls.pattern._windowed import window_part
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
            _copied(local) for local in (self.query, self.key, self.value)
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
        places_BG, chosen_BG = self._chosen(special_BN, context)
        out_BHNV = self._local(q_BHNK, k_BHNK, v_BHNV, context, special_BN, places_BG, chosen_BG)
        if not places_BG.shape[1]:
            return out_BHNV, None
        rows_BHGV = self._global(x_BND, places_BG, context.key_mask_BM).to(out_BHNV.dtype)
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

    def _chosen(self, special_BN: Tensor, context: Context) -> tuple[Tensor, Tensor]:
        """Return G different positions per example, (B, G), and which of them are global."""
        batch, n = special_BN.shape
        if context.special_BN is None:
            most = min(n, self.config.leading) if self.config.parity == "none" else 0
            places_BG = torch.arange(most, device=special_BN.device).expand(batch, -1)
        else:
            most = int(special_BN.sum(dim=1).amax()) if batch else 0
            ranked_BN = special_BN.to(torch.uint8).argsort(dim=1, descending=True, stable=True)
            places_BG = ranked_BN[:, :most]
        return places_BG, special_BN.gather(1, places_BG)

    def _local(
        self,
        q_BHNK: Tensor,
        k_BHNK: Tensor,
        v_BHNV: Tensor,
        context: Context,
        special_BN: Tensor,
        places_BG: Tensor,
        chosen_BG: Tensor,
    ) -> Tensor:
        """Return every row's attention over its window and the global columns, (B, H, N, V)."""
        n, most, mask_BN = q_BHNK.shape[2], places_BG.shape[1], context.key_mask_BM
        dropout = self.dims.dropout if self.training else 0.0
        band = self._band(n)
        if self._is_dense(band, most, q_BHNK, dropout):
            near_NN = band.mask(q_BHNK.device)
            # One mask for all examples, where it may be: a GPU reads it for each pair.
            alike = context.special_BN is None and mask_BN is None
            columns_BN = special_BN[:1] if alike else special_BN
            permitted = None if near_NN is None else near_NN | columns_BN[:, None, None, :]
            if mask_BN is not None:
                real = mask_BN[:, None, None, :]
                permitted = real if permitted is None else permitted & real
            return fused_softmax(q_BHNK, k_BHNK, v_BHNV, permitted, None, dropout=dropout)
        if folds(q_BHNK):
            # One example stands for all, where they are alike.
            examples = (
                slice(0, 1) if context.special_BN is None and mask_BN is None else slice(None)
            )
            return self._folded(
                q_BHNK,
                k_BHNK,
                v_BHNV,
                band,
                places_BG,
                mask_BN=mask_BN,
                special_BN=special_BN[examples],
                chosen_BG=chosen_BG[examples],
                dropout=dropout,
            )
        parts = [
            window_part(
                q_BHNK,
                k_BHNK,
                v_BHNV,
                band,
                key_mask_BM=~special_BN if mask_BN is None else mask_BN & ~special_BN,
                position=None,
                origin=0,
                dropout=dropout,
                autograd=False,
            )
        ]
        if most:
            index = places_BG[:, None, :, None]
            k, v = (
                x.gather(2, index.expand(-1, *x.shape[1:2], -1, x.shape[3]))
                for x in (k_BHNK, v_BHNV)
            )
            part = Part(Shared(band.count, most), real_BP=chosen_BG, dropout=dropout)
            q_BHUSK = band.pad_queries(q_BHNK, q_BHNK.dtype)
            out, lse = attend_part(q_BHUSK, k, v, part, autograd=False)
            parts.append((out.flatten(2, 3)[:, :, :n], lse.flatten(2, 3)[:, :, :n]))
        return merge(parts).to(q_BHNK.dtype)

    @staticmethod
    def _folded(
        q_BHNK: Tensor,
        k_BHNK: Tensor,
        v_BHNV: Tensor,
        band: Band,
        places_BG: Tensor,
        *,
        mask_BN: Tensor | None,
        special_BN: Tensor,
        chosen_BG: Tensor,
        dropout: float,
    ) -> Tensor:
        """Return the same in one call: each block's window, and the global columns behind it."""
        n, most, device = q_BHNK.shape[2], places_BG.shape[1], q_BHNK.device
        missing = -most % ALIGNED
        index_B1G1 = places_BG[:, None, :, None]

        def read(x_BHNK: Tensor) -> Tensor:
            """The keys of each block, (B, U, H, W, K)."""
            x_BHPK = band.pad_keys(x_BHNK, x_BHNK.dtype)
            shifts = band.before + 1 + band.after
            if not most:
                return windows_beside(x_BHPK, band.size, shifts)
            index = index_B1G1.expand(-1, x_BHNK.shape[1], -1, x_BHNK.shape[3])
            columns = x_BHNK.gather(2, index)
            columns = F.pad(columns, (0, 0, 0, missing)).unsqueeze(2)
            columns = columns.expand(-1, -1, band.count, -1, -1)
            return windows_beside(x_BHPK, band.size, shifts, columns)

        local_BN = ~special_BN if mask_BN is None else mask_BN & ~special_BN
        local_BUW = band.real(local_BN, device).unfold(1, band.width, band.size)
        permitted = [local_BUW[:, None, :, None] & band.window_mask(device)]
        if most:
            permitted.append(F.pad(chosen_BG, (0, missing))[:, None, None, None])
        out_BHUSV = attend_blocks(
            band.pad_queries(q_BHNK, q_BHNK.dtype),
            read(k_BHNK),
            read(v_BHNV),
            permitted,
            None,
            lonely=mask_BN is not None,
            dropout=dropout,
        )
        return out_BHUSV.flatten(2, 3)[:, :, :n]

    def _global(self, x_BND: Tensor, places_BG: Tensor, key_mask_BM: Tensor | None) -> Tensor:
        """Return the attention of some positions over all others, (B, H, G, V)."""
        precise = torch.promote_types(x_BND.dtype, torch.float32)
        heads, width = self.dims.heads, self.dims.head_width
        with torch.autocast(x_BND.device.type, enabled=False):
            x = x_BND.to(precise)
            own_BGD = x.gather(1, places_BG.unsqueeze(-1).expand(-1, -1, x.shape[-1]))
            q = split_heads(_linear(self.global_query, own_BGD), heads)
            key_HKD = self.global_key.weight.to(precise).view(heads, width, -1)
            # k_j = W x_j + b, so that q . k_j = (W^T q) . x_j + q . b
            logits_BHGN = torch.einsum("bhgd,bnd->bhgn", q @ key_HKD, x)
            if self.global_key.bias is not None:
                bias_HK1 = self.global_key.bias.to(precise).view(heads, width, 1)
                logits_BHGN = logits_BHGN + q @ bias_HK1
            logits_BHGN = logits_BHGN * default_scale(width)
            none_BHG1 = None
            if key_mask_BM is not None:
                none_BHG1 = ~key_mask_BM.any(dim=-1)[:, None, None, None]
                hidden = ~key_mask_BM[:, None, None, :] & ~none_BHG1
                logits_BHGN = logits_BHGN.masked_fill(hidden, -math.inf)
            weights_BHGN = logits_BHGN.softmax(dim=-1)
            if none_BHG1 is not None:
                weights_BHGN = weights_BHGN.masked_fill(none_BHG1, 0.0)
            weights_BHGN = F.dropout(weights_BHGN, self.dims.dropout, self.training)
            mixed_BHGD = torch.einsum("bhgn,bnd->bhgd", weights_BHGN, x)
            value_HVD = self.global_value.weight.to(precise).view(heads, width, -1)
            out_BHGV = mixed_BHGD @ value_HVD.mT
            if self.global_value.bias is None:
                return out_BHGV
            bias_HV = self.global_value.bias.to(precise).view(heads, 1, width)
            return out_BHGV + weights_BHGN.sum(dim=-1, keepdim=True) * bias_HV


def _linear(linear: nn.Linear, x: Tensor) -> Tensor:
    """Apply a projection in the dtype of x."""
    bias = None if linear.bias is None else linear.bias.to(x.dtype)
    return F.linear(x, linear.weight.to(x.dtype), bias)


def _copied(linear: nn.Linear) -> nn.Linear:
    """Return a projection of its own that starts as a copy."""
    copy = nn.Linear(linear.in_features, linear.out_features, bias=linear.bias is not None)
    copy.load_state_dict(linear.state_dict())
    return copy
