"""Sparse Transformer, strided: the neighbours, and every l-th position beyond them.

B batch   N queries   M keys   H heads   K width of a query or key head   V width of a value head
L stride, l   A rows of the grid that the stride folds positions into
"""

from __future__ import annotations

from typing import Annotated

import msgspec
import torch
import torch.nn.functional as F
from torch import Tensor

from attention_impls.contract import Context, MechanismConfig
from attention_impls.pattern._band import Band
from attention_impls.pattern._bias import positional
from attention_impls.pattern._claims import BY_POSITION
from attention_impls.pattern._folded import folded_size, windows_beside
from attention_impls.pattern._joined import Grouping, attend_joined, has_kernel
from attention_impls.pattern._layouts import Own, Windows, divided
from attention_impls.pattern._parts import (
    Part,
    Rule,
    alike,
    attend_part,
    folds,
    merge,
    needs_autograd,
    trains,
)
from attention_impls.pattern._union import UnionOfPatterns
from attention_impls.pattern._windowed import window_part
from lra.core.cards import AttentionCard

BLOCK = 64
"""Most queries in a block of the neighbours' part."""

CHUNK = 256
"""Most rows of the grid whose queries are worked off together."""

FEW = 64
"""Rows of a problem that a GPU's kernel works off at a time: of a lower grid, several columns are
one problem."""


class SparseStridedConfig(MechanismConfig, frozen=True):
    """The stride."""

    stride: Annotated[int, msgspec.Meta(ge=1)] = 128
    """l: a query reads the l - 1 positions next to it and every l-th one. The paper has 128 for
    images; near the square root of the length the cost is least."""


class SparseStrided(UnionOfPatterns):
    """softmax(q_i k_j / sqrt(K) + bias) v_j over |i - j| < l or (i - j) mod l = 0.

    In O(N (l + N / l)) time; causal, over j <= i alone, as in the paper. Both sets in one softmax
    (the paper's merged head). Exact within the pattern. Ours: the neighbours as a band; the stride
    as l dense problems of N / l positions, after folding positions into a grid; joined by their
    log sums, with the diagonal, which is in both, left out of the second.
    """

    Config = SparseStridedConfig
    config: SparseStridedConfig
    trials = (SparseStridedConfig(stride=3), SparseStridedConfig(stride=5))

    card = AttentionCard(
        title="Sparse Transformer, strided",
        paper="Child et al., Generating Long Sequences with Sparse Transformers, 2019, "
        "arXiv:1904.10509",
        year=2019,
        time="O(n (l + n / l) d)",
        memory="O(n d + n / l); O(n (l + n / l)) on a GPU or with a trained bias",
        softmax="configured",
        weights="convex",
        capabilities=BY_POSITION,
    )

    @classmethod
    def exact_at(cls, n: int) -> SparseStridedConfig:
        """Return neighbours as far as the input goes."""
        return SparseStridedConfig(stride=max(1, n))

    @property
    def borders(self) -> tuple[int, ...]:
        """Length of a block, and of a row of the grid."""
        return (min(BLOCK, self.config.stride), self.config.stride)

    def support(self, n: int, m: int, context: Context) -> Tensor:
        """Return the union, (N, M)."""
        stride = self.config.stride
        union_NM = torch.zeros(n, m, dtype=torch.bool)
        for place in range(n):
            i = place + (m - n if context.causal else 0)
            read = [abs(i - j) < stride or (i - j) % stride == 0 for j in range(m)]
            union_NM[place] = torch.tensor(read, dtype=torch.bool)
            if context.causal:
                union_NM[place, i + 1 :] = False
        return union_NM

    def pattern(self, rows_N: Tensor, columns_M: Tensor, *, causal: bool) -> Tensor:
        """Return the union, from positions."""
        behind_NM = rows_N.unsqueeze(-1) - columns_M
        union = (behind_NM.abs() < self.config.stride) | (behind_NM % self.config.stride == 0)
        return union & (behind_NM >= 0) if causal else union

    def read_last(self, m: int, device: torch.device) -> Tensor:
        """Return every l-th position, then the last l."""
        near, stride = max(0, m - self.config.stride), self.config.stride
        far_P = torch.arange(min(near, (m - 1) % stride), near, stride, device=device)
        return torch.cat([far_P, torch.arange(near, m, device=device)])

    def pairs(self, n: int, m: int, *, causal: bool) -> int:
        """Return those of the band's windows and of the grid's columns."""
        band = self._band(n, m, causal=causal)
        rows = -(-m // self.config.stride)
        return n * (band.width + rows * (self._together(rows) if folds(self.query.weight) else 1))

    def in_parts(
        self,
        q_BHNK: Tensor,
        k_BHMK: Tensor,
        v_BHMV: Tensor,
        key_mask_BM: Tensor | None,
        context: Context,
    ) -> Tensor:
        """Return the merged softmax of the band and of the grid."""
        n, m = q_BHNK.shape[2], k_BHMK.shape[2]
        if folds(q_BHNK) and not trains(context.position) and has_kernel(q_BHNK, v_BHMV, self.rate):
            sets = (
                build(q_BHNK, k_BHMK, v_BHMV, key_mask_BM, context)
                for build in (self._windows, self._columns)
            )
            return attend_joined(q_BHNK, *sets, dropout=self.rate)
        neighbours = window_part(
            q_BHNK,
            k_BHMK,
            v_BHMV,
            self._band(n, m, causal=context.causal),
            key_mask_BM=key_mask_BM,
            position=context.position,
            origin=m - n,
            dropout=self.rate,
            autograd=needs_autograd(q_BHNK, context.position),
        )
        parts = [neighbours, self._grid(q_BHNK, k_BHMK, v_BHMV, key_mask_BM, context)]
        return merge(parts).to(q_BHNK.dtype)

    def pairs_in_parts(self, n: int, *, causal: bool) -> int:
        """Return those of the band's windows, and of l columns of a grid of ceil(N / l) rows, each
        with all rows; where causal, with the rows up to its chunk's last."""
        rows = -(-n // self.config.stride)
        pairs = self._band(n, n, causal=causal).pairs
        if folds(self.query.weight):
            return pairs + self.config.stride * rows * rows * self._together(rows)
        for start in range(0, rows, CHUNK):
            stop = min(start + CHUNK, rows)
            pairs += self.config.stride * (stop - start) * (stop if causal else rows)
        return pairs

    def _band(self, n: int, m: int, *, causal: bool) -> Band:
        """Return the band of the neighbours, cut down to keys that there are."""
        reach = self.config.stride - 1
        # Not `min`: torch's Inductor fails on the terms that it makes of one for any length.
        if m <= reach:
            reach = max(0, m - 1)
        size = min(BLOCK, self.config.stride)
        if folds(self.query.weight):
            size = folded_size(BLOCK, self.config.stride)
        return Band(n, m, left=reach, right=0 if causal else reach, size=size)

    def _windows(
        self,
        q_BHNK: Tensor,
        k_BHMK: Tensor,
        v_BHMV: Tensor,
        key_mask_BM: Tensor | None,
        context: Context,
    ) -> tuple[Grouping, Tensor, Tensor]:
        """Return the neighbours: blocks of queries, each with its window."""
        n, m, device = q_BHNK.shape[2], k_BHMK.shape[2], q_BHNK.device
        band = self._band(n, m, causal=context.causal)
        shifts = band.before + 1 + band.after

        def group(x_BHNK: Tensor) -> Tensor:
            return band.pad_queries(x_BHNK, x_BHNK.dtype)

        def ungroup(x_BHUSK: Tensor) -> Tensor:
            return x_BHUSK.flatten(2, 3)[:, :, :n]

        real_BUW = band.real(key_mask_BM, device).unfold(1, band.width, band.size)
        permitted = real_BUW.unsqueeze(2) & band.window_mask(device)
        rows_N = torch.arange(m - n, m - n + band.count * band.size, device=device)
        places_P = torch.arange(band.padded, device=device) + m - n - band.lead
        bias = positional(
            context.position,
            Windows(band),
            rows_N.clamp(max=m - 1).view(band.count, band.size),
            places_P.clamp(min=0, max=m - 1),
        )
        k, v = (
            windows_beside(band.pad_keys(x, q_BHNK.dtype), band.size, shifts).flatten(0, 1)
            for x in (k_BHMK, v_BHMV)
        )
        bias_HUSW = None if bias is None else bias(slice(None))
        return Grouping(group, ungroup, permitted, bias_HUSW), k, v

    def _columns(
        self,
        q_BHNK: Tensor,
        k_BHMK: Tensor,
        v_BHMV: Tensor,
        key_mask_BM: Tensor | None,
        context: Context,
    ) -> tuple[Grouping, Tensor, Tensor]:
        """Return the keys a multiple of the stride away: columns of the grid, with their rows; or
        several columns of a low grid as one problem, whose pairs of two columns are hidden."""
        n, m, device = q_BHNK.shape[2], k_BHMK.shape[2], q_BHNK.device
        stride, rows = self.config.stride, -(-m // self.config.stride)
        together = self._together(rows)
        above = (m - n) // stride
        ahead, behind = m - n - above * stride, rows * stride - m

        def columns(x_BHMK: Tensor, before: int) -> Tensor:
            """(B, H, M, K) to (B, H, L / G, A G, K)."""
            x = F.pad(x_BHMK, (0, 0, before, behind)) if before or behind else x_BHMK
            return divided(x, 2, -1, stride // together, together).movedim(3, 2).flatten(3, 4)

        def group(x_BHNK: Tensor) -> Tensor:
            return columns(x_BHNK, ahead)

        def ungroup(x_BHUSK: Tensor) -> Tensor:
            x = divided(x_BHUSK, 3, -1, together).movedim(2, 3)
            return x.flatten(2, 4)[:, :, ahead : ahead + n]

        places_M = torch.arange(m, device=device)
        places_LW = columns(places_M[None, None, :, None], 0)[0, 0, :, :, 0]
        rows_LS = places_LW[:, above * together :]
        place_W = torch.arange(rows * together, device=device)
        row_S1 = place_W[above * together :, None]
        same = row_S1 % together == place_W % together
        permitted = same & (place_W < row_S1 if context.causal else place_W != row_S1)
        permitted = permitted[None, None]
        if behind or key_mask_BM is not None:
            real_BM = torch.ones_like(places_M[None]) > 0 if key_mask_BM is None else key_mask_BM
            real_BLW = columns(real_BM[:, None, :, None], 0)[:, 0, :, :, 0]
            permitted = permitted & real_BLW.unsqueeze(2)
        bias = positional(
            context.position,
            Own(stride // together, rows * together, rows * together),
            rows_LS,
            places_LW.flatten(),
        )
        k, v = (
            columns(x.to(q_BHNK.dtype), 0).transpose(1, 2).flatten(0, 1) for x in (k_BHMK, v_BHMV)
        )
        bias_HUSW = None if bias is None else bias(slice(None))
        return Grouping(group, ungroup, permitted, bias_HUSW), k, v

    def _together(self, rows: int) -> int:
        """Return G, how many columns of a grid are one problem."""
        together = 1
        while self.config.stride % (2 * together) == 0 and 2 * together * rows <= FEW:
            together *= 2
        return together

    def _grid(
        self,
        q_BHNK: Tensor,
        k_BHMK: Tensor,
        v_BHMV: Tensor,
        key_mask_BM: Tensor | None,
        context: Context,
    ) -> tuple[Tensor, Tensor]:
        """Return the softmax over keys a multiple of the stride away, but for the own one.

        Position t stands in row t // l and column t mod l; each column is a problem of its own.
        """
        n, m, device = q_BHNK.shape[2], k_BHMK.shape[2], q_BHNK.device
        stride, rows = self.config.stride, -(-m // self.config.stride)
        above = (m - n) // stride
        ahead, length = m - n - above * stride, rows * stride
        behind = length - m

        def columns(x_BHMK: Tensor, before: int) -> Tensor:
            """(B, H, M, K) to (B, H, L, A, K), a view where nothing is missing."""
            x = F.pad(x_BHMK, (0, 0, before, behind)) if before or behind else x_BHMK
            return divided(x, 2, -1, stride).transpose(2, 3)

        if key_mask_BM is None:
            key_mask_BM = torch.ones(1, m, dtype=torch.bool, device=device)
        real_BP = columns(key_mask_BM[:, None, :, None], 0).flatten(2)[:, 0]
        places_LA = torch.arange(length, device=device).view(rows, stride).mT.clamp(max=m - 1)
        k, v = (columns(x, 0).flatten(2, 3) for x in (k_BHMK, v_BHMV))
        q_BHLAK = columns(q_BHNK, ahead)
        autograd = needs_autograd(q_BHNK, context.position)
        asked = rows - above
        if torch.compiler.is_compiling() and not context.causal:
            # It would unroll a loop, for each length anew.
            spans = [(0, asked)]
        else:
            spans = [(start, min(start + CHUNK, asked)) for start in range(0, asked, CHUNK)]
        outs = []
        for start, stop in spans:
            reach = above + stop if context.causal else rows
            layout = Own(blocks=stride, group=rows, keys=reach)
            part = Part(
                layout,
                real_BP,
                _all_but_own(above + start, above + stop, reach, context.causal, device),
                positional(
                    context.position,
                    layout,
                    places_LA[:, above + start : above + stop],
                    places_LA.flatten(),
                ),
                self.rate,
            )
            outs.append(attend_part(q_BHLAK[..., start:stop, :], k, v, part, autograd=autograd))
        out_BHLAV = torch.cat([out for out, _ in outs], dim=3)
        lse_BHLA = torch.cat([lse for _, lse in outs], dim=3)
        stays = slice(ahead, ahead + n)
        return (
            out_BHLAV.transpose(2, 3).flatten(2, 3)[:, :, stays],
            lse_BHLA.transpose(2, 3).flatten(2, 3)[:, :, stays],
        )


def _all_but_own(start: int, stop: int, reach: int, causal: bool, device: torch.device) -> Rule:
    """Return the rule of some rows of a column: not the own place, and none below if causal."""
    own_S1 = torch.arange(start, stop, device=device).unsqueeze(-1)
    row_W = torch.arange(reach, device=device)
    return alike([(slice(None), row_W >= own_S1 if causal else row_W == own_S1)])
