"""Sparse Transformer, fixed: the own block, and the summary columns of all others.

B batch   N queries   M keys   H heads   K width of a query or key head   V width of a value head
U blocks of queries   L positions in a block, l   P summary columns
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
import torch
import torch.nn.functional as F
from torch import Tensor

from attention_impls.contract import Context, MechanismConfig, Position
from attention_impls.dense._fused import fused_softmax
from attention_impls.pattern._bias import positional
from attention_impls.pattern._claims import BY_POSITION
from attention_impls.pattern._joined import Grouping, attend_joined, has_kernel
from attention_impls.pattern._layouts import Own, Shared, divided
from attention_impls.pattern._parts import (
    Hidden,
    Part,
    alike,
    attend_part,
    folds,
    merge,
    needs_autograd,
    trains,
)
from attention_impls.pattern._union import UnionOfPatterns
from lra.core.cards import AttentionCard


class SparseFixedConfig(MechanismConfig, frozen=True):
    """Blocks, and what of each is read from afar. The defaults are the paper's for enwik8."""

    stride: Annotated[int, msgspec.Meta(ge=1)] = 128
    """l, positions in a block."""
    summary: Annotated[int, msgspec.Meta(ge=1)] = 32
    """c, last positions of each block, which every other block reads; the paper has 8, 16, 32.
    From l on it is all of them."""
    parity: Literal["none", "lra2021"] = "none"
    """lra2021: the arena's "Sparse", to be asked for with stride=50 summary=10. The first position
    of a block is a summary too, and no key is read by an earlier query although the tasks are not
    causal; but for the class token: position 0 reads and is read by all, and blocks are counted
    from position 1. Asked for causally it is the form without a class token, where blocks begin at
    0. There it was dense with a mask; here it is not."""


class SparseFixed(UnionOfPatterns):
    """softmax(q_i k_j / sqrt(K) + bias) v_j over floor(i / l) = floor(j / l) or j mod l >= l - c.

    In O(N (l + N c / l)) time; causal, over j <= i alone, as in the paper. Both sets in one softmax
    (the paper's merged head), the same summary columns in all heads. Exact within the pattern.
    Ours: the summary columns gathered once; the own block dense; joined by their log sums, with
    the own block's summary columns, which are in both, left out of the second.
    """

    Config = SparseFixedConfig
    config: SparseFixedConfig
    trials = (
        SparseFixedConfig(stride=4, summary=1),
        SparseFixedConfig(stride=6, summary=2),
        SparseFixedConfig(stride=5, summary=2, parity="lra2021"),
    )

    card = AttentionCard(
        title="Sparse Transformer, fixed",
        paper="Child et al., Generating Long Sequences with Sparse Transformers, 2019, "
        "arXiv:1904.10509",
        year=2019,
        time="O(n (l + n c / l) d)",
        memory="O(n (d + c)); O(n (l + n c / l)) on a GPU or with a trained bias",
        softmax="configured",
        weights="convex",
        capabilities=BY_POSITION,
    )

    @classmethod
    def exact_at(cls, n: int) -> SparseFixedConfig:
        """Return one block for all."""
        return SparseFixedConfig(stride=max(1, n), summary=1)

    @property
    def borders(self) -> tuple[int, ...]:
        """Length of a block."""
        return (self.config.stride,)

    def support(self, n: int, m: int, context: Context) -> Tensor:
        """Return the union, (N, M)."""
        size, arena = self.config.stride, self.config.parity == "lra2021"
        token = 1 if arena and not context.causal else 0
        union_NM = torch.zeros(n, m, dtype=torch.bool)
        for place in range(n):
            i = place + (m - n if context.causal else 0)
            read = []
            for j in range(m):
                block, rest = divmod(j - token, size)
                summary = rest >= size - self.config.summary or (arena and rest == 0)
                read.append(block == (i - token) // size or summary)
            union_NM[place] = torch.tensor(read, dtype=torch.bool)
            if context.causal or arena:
                union_NM[place, i + 1 :] = False
            if token and place == 0:
                union_NM[place] = True
        if token:
            union_NM[:, :1] = True
        return union_NM

    def pattern(self, rows_N: Tensor, columns_M: Tensor, *, causal: bool) -> Tensor:
        """Return the union, from positions."""
        if causal or self.config.parity == "none":
            return self._union(rows_N, columns_M, causal)
        inner = self._union(rows_N - 1, columns_M - 1, causal=True)
        return inner | (rows_N == 0).unsqueeze(-1) | (columns_M == 0)

    def read_last(self, m: int, device: torch.device) -> Tensor:
        """Return the summaries of earlier blocks, then the own block so far."""
        first = (m - 1) // self.config.stride * self.config.stride
        own_P = torch.arange(first, m, device=device)
        return torch.cat([self._summary_columns(first, device), own_P])

    def pairs(self, n: int, m: int, *, causal: bool) -> int:
        """Return those of the blocks and of the summary columns, half of which causality spares."""
        summary = m // self.config.stride * self._per_block
        halved = causal or self.config.parity == "lra2021"
        return n * (self.config.stride + (summary // 2 if halved else summary))

    def pairs_in_parts(self, n: int, *, causal: bool) -> int:
        """Return those of blocks of l by l, the last one filled up, and of their queries with all
        summary columns; where causal, with those of earlier blocks, a tile at a time.

        In parity, causal but for position 0, which reads all, and which all others read.
        """
        from attention_impls.pattern._operations import shared_pairs

        size, beside = self.config.stride, 0
        if not causal and self.config.parity == "lra2021":
            beside = n + n - 1
            n, causal = n - 1, True
        count, pairs = -(-n // size), beside
        pairs += count * size * size
        columns = len(self._summary_columns(n, self.query.weight.device))
        own: int = self._own_places.stop - self._own_places.start
        if folds(self.query.weight) and own:
            return beside + count * size * own + n * columns
        if columns:
            shared = Shared(count, columns, step=self._per_block if causal else 0)
            pairs += shared_pairs(shared, size, self.dims.head_width, self.query.weight)
        return pairs

    def in_parts(
        self,
        q_BHNK: Tensor,
        k_BHMK: Tensor,
        v_BHMV: Tensor,
        key_mask_BM: Tensor | None,
        context: Context,
    ) -> Tensor:
        """Return the merged softmax of the own block and of the others' summaries."""
        position, causal = context.position, context.causal
        if (
            folds(q_BHNK)
            and not trains(position)
            and has_kernel(q_BHNK, v_BHMV, self.rate)
            and self._own_places.start < self._own_places.stop
        ):
            return self._in_sets(q_BHNK, k_BHMK, v_BHMV, key_mask_BM, context)
        if causal or self.config.parity == "none":
            parts = self._parts(q_BHNK, k_BHMK, v_BHMV, key_mask_BM, position, causal=causal)
            return merge(parts).to(q_BHNK.dtype)
        n, device = q_BHNK.shape[2], q_BHNK.device
        first, places_N = slice(0, 1), torch.arange(n, device=device)
        mask_BM = key_mask_BM
        if mask_BM is None:
            mask_BM = torch.ones(1, n, dtype=torch.bool, device=device)
        q, k, v = (x[:, :, 1:] for x in (q_BHNK, k_BHMK, v_BHMV))
        parts = self._parts(q, k, v, mask_BM[:, 1:], position, causal=True, origin=1)
        token = Shared(blocks=1, keys=1)
        part = Part(
            token,
            real_BP=mask_BM[:, first],
            bias=positional(position, token, places_N[None, 1:], places_N[first]),
            dropout=self.rate,
        )
        out, lse = attend_part(
            q.unsqueeze(2),
            k_BHMK[:, :, first],
            v_BHMV[:, :, first],
            part,
            autograd=needs_autograd(q, position),
        )
        others_BHNV = merge([*parts, (out.squeeze(2), lse.squeeze(2))])
        token_BH1V = self._class_token(q_BHNK, k_BHMK, v_BHMV, key_mask_BM, position, places_N)
        return torch.cat([token_BH1V, others_BHNV.to(q_BHNK.dtype)], dim=2)

    def _class_token(
        self,
        q_BHNK: Tensor,
        k_BHMK: Tensor,
        v_BHMV: Tensor,
        key_mask_BM: Tensor | None,
        position: Position | None,
        places_N: Tensor,
    ) -> Tensor:
        """Return what position 0 reads of all, (B, H, 1, V)."""
        return fused_softmax(
            q_BHNK[:, :, :1],
            k_BHMK,
            v_BHMV,
            None if key_mask_BM is None else key_mask_BM[:, None, None, :],
            None if position is None else position.logits(places_N[:1], places_N),
            dropout=self.rate,
        )

    def _in_sets(
        self,
        q_BHNK: Tensor,
        k_BHMK: Tensor,
        v_BHMV: Tensor,
        key_mask_BM: Tensor | None,
        context: Context,
    ) -> Tensor:
        """Return the same by two calls: own blocks without their summaries, all with all summaries.

        So the second call copies no key, and hides none but what is later.
        """
        n, m, device = q_BHNK.shape[2], k_BHMK.shape[2], q_BHNK.device
        position = context.position
        token = 0 if context.causal or self.config.parity == "none" else 1
        causal = context.causal or token > 0
        rows_N = torch.arange(m - n + token, m, device=device)

        columns_P = F.pad(self._summary_columns(m - token, device) + token, (token, 0))
        seen_NP = columns_P <= rows_N.unsqueeze(-1) if causal else columns_P[None] >= 0
        seen_B1NP = seen_NP[None, None]
        if key_mask_BM is not None:
            seen_B1NP = seen_B1NP & key_mask_BM[:, None, None, columns_P]
        k, v = (x.to(q_BHNK.dtype).index_select(2, columns_P) for x in (k_BHMK, v_BHMV))
        bias_HNP = None if position is None else position.logits(rows_N, columns_P)
        bias_H1NP = None if bias_HNP is None else bias_HNP.unsqueeze(1)
        q = q_BHNK[:, :, token:]
        summaries = Grouping(_as_one, _as_it_was, seen_B1NP, bias_H1NP), k, v
        own = self._own_blocks(q, k_BHMK, v_BHMV, key_mask_BM, position, token, causal=causal)
        out_BHNV = attend_joined(q, own, summaries, dropout=self.rate)
        if not token:
            return out_BHNV
        places_N = torch.arange(n, device=device)
        token_BH1V = self._class_token(q_BHNK, k_BHMK, v_BHMV, key_mask_BM, position, places_N)
        return torch.cat([token_BH1V, out_BHNV], dim=2)

    def _own_blocks(
        self,
        q_BHNK: Tensor,
        k_BHMK: Tensor,
        v_BHMV: Tensor,
        key_mask_BM: Tensor | None,
        position: Position | None,
        token: int,
        *,
        causal: bool,
    ) -> tuple[Grouping, Tensor, Tensor]:
        """Return the own block but for its summaries; blocks are counted from `token` on."""
        n, m, device = q_BHNK.shape[2], k_BHMK.shape[2] - token, q_BHNK.device
        size, own = self.config.stride, self._own_places
        above = (m - n) // size
        count, first = -(-m // size) - above, above * size
        ahead, behind = m - n - first, first + count * size - m

        def group(x_BHNK: Tensor) -> Tensor:
            x = F.pad(x_BHNK, (0, 0, ahead, behind)) if ahead or behind else x_BHNK
            return divided(x, 2, count, size)

        def ungroup(x_BHUSK: Tensor) -> Tensor:
            return x_BHUSK.flatten(2, 3)[:, :, ahead : ahead + n]

        def read(x_BHMK: Tensor) -> Tensor:
            """(B, H, M, K) to (B, U, H, W, K)."""
            x = x_BHMK[:, :, token + first :]
            x = divided(F.pad(x, (0, 0, 0, behind)) if behind else x, 2, count, size)
            return x[:, :, :, own].transpose(1, 2)

        place_S = torch.arange(size, device=device)
        permitted = place_S[own] <= place_S.unsqueeze(-1) if causal else place_S[None, own] >= 0
        permitted = permitted[None, None]
        if behind or key_mask_BM is not None:
            real_BM = place_S.new_ones(1, m + token) > 0 if key_mask_BM is None else key_mask_BM
            permitted = permitted & read(real_BM[:, None, :, None])[:, :, 0, None, :, 0]
        rows_US = (torch.arange(count * size, device=device) + first).clamp(max=m - 1) + token
        rows_US = rows_US.view(count, size)
        layout = Own(count, own.stop - own.start, own.stop - own.start)
        bias = positional(position, layout, rows_US, rows_US[:, own].flatten())
        k, v = (read(x.to(q_BHNK.dtype)).flatten(0, 1) for x in (k_BHMK, v_BHMV))
        bias_HUSW = None if bias is None else bias(slice(None))
        return Grouping(group, ungroup, permitted, bias_HUSW), k, v

    def _parts(
        self,
        q_BHNK: Tensor,
        k_BHMK: Tensor,
        v_BHMV: Tensor,
        key_mask_BM: Tensor | None,
        position: Position | None,
        *,
        causal: bool,
        origin: int = 0,
    ) -> list[tuple[Tensor, Tensor]]:
        """Return the own block and the others' summaries, outputs (B, H, N, V) and log sums.

        `origin` is the position of the first key.
        """
        n, m, device = q_BHNK.shape[2], k_BHMK.shape[2], q_BHNK.device
        size = self.config.stride
        autograd = needs_autograd(q_BHNK, position)
        above = (m - n) // size
        count, first = -(-m // size) - above, above * size
        length, ahead = count * size, m - n - first
        if key_mask_BM is None:
            key_mask_BM = torch.ones(1, m, dtype=torch.bool, device=device)
        places_P = torch.arange(first, first + length, device=device).clamp(max=m - 1)
        q = divided(F.pad(q_BHNK, (0, 0, ahead, length - ahead - n)), 2, count, size)
        places_P = places_P + origin
        rows_US = places_P.view(count, size)

        own = Own(blocks=count, group=size, keys=size)
        behind = first + length - m
        k, v = (F.pad(x[:, :, first:], (0, 0, 0, behind)) for x in (k_BHMK, v_BHMV))
        future_SS = torch.ones(size, size, dtype=torch.bool, device=device).triu(1)
        future: Hidden = [(slice(0, size), future_SS)] if causal else []
        part = Part(
            own,
            real_BP=F.pad(key_mask_BM[:, first:], (0, behind)),
            rule=alike(future),
            bias=positional(position, own, rows_US, places_P),
            dropout=self.rate,
        )
        parts = [attend_part(q, k, v, part, autograd=autograd)]

        columns_P = self._summary_columns(m, device)
        if len(columns_P):
            step = self._per_block if causal else 0
            shared = Shared(blocks=count, keys=len(columns_P), step=step, first=above)

            def others(blocks: slice) -> Hidden:
                block_T11 = torch.arange(above + blocks.start, above + blocks.stop, device=device)
                block_T11 = block_T11[:, None, None]
                read_W = columns_P[: shared.reach(blocks)] // size
                hidden = read_W >= block_T11 if causal else read_W == block_T11
                return [(slice(0, len(read_W)), hidden)]

            part = Part(
                shared,
                real_BP=key_mask_BM[:, columns_P],
                rule=others,
                bias=positional(position, shared, rows_US, columns_P + origin),
                dropout=self.rate,
            )
            k, v = (x.index_select(2, columns_P) for x in (k_BHMK, v_BHMV))
            parts.append(attend_part(q, k, v, part, autograd=autograd))
        stays = slice(ahead, ahead + n)
        return [
            (out.flatten(2, 3)[:, :, stays], lse.flatten(2, 3)[:, :, stays]) for out, lse in parts
        ]

    def _union(self, rows_N: Tensor, columns_M: Tensor, causal: bool) -> Tensor:
        """Return the paper's union, and the first of a block where the arena reads it, (N, M)."""
        size, rows_N1 = self.config.stride, rows_N.unsqueeze(-1)
        union = (rows_N1 // size == columns_M // size) | self._is_summary(columns_M)
        return union & (columns_M <= rows_N1) if causal else union

    @property
    def _per_block(self) -> int:
        """Return how many positions of a block others read."""
        return len(self._summary_places)

    @property
    def _summary_places(self) -> list[int]:
        """Return the places in a block that others read: the last c, in parity the first too."""
        size = self.config.stride
        last = range(max(0, size - self.config.summary), size)
        return sorted({0, *last} if self.config.parity == "lra2021" else last)

    @property
    def _own_places(self) -> slice:
        """Return the places in a block that none but the block reads."""
        first = 1 if self.config.parity == "lra2021" else 0
        return slice(first, max(first, self.config.stride - self.config.summary))

    def _summary_columns(self, m: int, device: torch.device) -> Tensor:
        """Return the summary columns among m positions, (P); counted beforehand, for no GPU is to
        be waited for."""
        size, places = self.config.stride, self._summary_places
        number = m // size * len(places) + sum(place < m % size for place in places)
        starts_U1 = torch.arange(0, m, size, device=device).unsqueeze(-1)
        last = torch.arange(size - min(size, self.config.summary), size, device=device)
        places_P = F.pad(last, (len(places) - len(last), 0))
        return (starts_U1 + places_P).flatten()[:number]

    def _is_summary(self, columns_M: Tensor) -> Tensor:
        """Return which positions are among the last c of their block, or the first in parity."""
        size = self.config.stride
        summary = columns_M % size >= size - self.config.summary
        return summary | (columns_M % size == 0) if self.config.parity == "lra2021" else summary


def _as_one(x_BHNK: Tensor) -> Tensor:
    """All queries of an example are one block."""
    return x_BHNK.unsqueeze(2)


def _as_it_was(x_BH1NK: Tensor) -> Tensor:
    """Undo it."""
    return x_BH1NK.squeeze(2)
