"""Global columns beside a window: every query reads its window and all global positions.

B batch   N positions   H heads   K width of a query or key head   V width of a value head
G global positions   U blocks of queries   S queries in a block   P padded keys
W keys in a window

In one softmax, by one of three courses: all pairs under a mask, blocks of queries folded into one
call, or two parts that are merged. A global column inside of a window counts once: in blocks and in
parts the window hides it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from attention_impls.dense._fused import fused_softmax
from attention_impls.pattern._band import Band
from attention_impls.pattern._folded import ALIGNED, attend_blocks, windows_beside
from attention_impls.pattern._layouts import Shared
from attention_impls.pattern._parts import Part, attend_part, merge
from attention_impls.pattern._windowed import window_part


@dataclass(frozen=True)
class Columns:
    """Global positions of a batch."""

    special_BN: Tensor
    """Which positions are global."""
    places_BG: Tensor
    """G different positions of each example, all global ones among them."""
    chosen_BG: Tensor
    """Which of these are global."""
    alike: bool
    """Whether they are the same in all examples, and no key is padded."""

    @property
    def most(self) -> int:
        """Return G."""
        return self.places_BG.shape[1]

    def of_one(self, x: Tensor) -> Tensor:
        """Return what stands for all examples, where they are alike: (1, ...), or else (B, ...)."""
        return x[:1] if self.alike else x

    def outside(self, mask_BN: Tensor | None) -> Tensor:
        """Return which keys are real but not global, (B, N), or of one example for all."""
        local_BN = ~self.of_one(self.special_BN)
        return local_BN if mask_BN is None else mask_BN & local_BN

    def read(self, x_BHNK: Tensor) -> Tensor:
        """Return the keys there, (B, H, G, K)."""
        index = self.places_BG[:, None, :, None]
        return x_BHNK.gather(2, index.expand(-1, x_BHNK.shape[1], -1, x_BHNK.shape[3]))


def attend_densely(
    q_BHNK: Tensor,
    k_BHNK: Tensor,
    v_BHNV: Tensor,
    band: Band,
    columns: Columns,
    mask_BN: Tensor | None,
    *,
    dropout: float,
) -> Tensor:
    """Return attention over the window and the columns, (B, H, N, V), by all pairs under a mask."""
    near_NN = band.mask(q_BHNK.device)
    # One mask for all examples, where it may be: a GPU reads it for each pair.
    special_BN = columns.of_one(columns.special_BN)
    permitted = None if near_NN is None else near_NN | special_BN[:, None, None, :]
    if mask_BN is not None:
        real = mask_BN[:, None, None, :]
        permitted = real if permitted is None else permitted & real
    return fused_softmax(q_BHNK, k_BHNK, v_BHNV, permitted, None, dropout=dropout)


def attend_in_blocks(
    q_BHNK: Tensor,
    k_BHNK: Tensor,
    v_BHNV: Tensor,
    band: Band,
    columns: Columns,
    mask_BN: Tensor | None,
    *,
    dropout: float,
) -> Tensor:
    """Return the same in one call: each block's window, and the global columns behind it."""
    n, device = q_BHNK.shape[2], q_BHNK.device
    missing = -columns.most % ALIGNED

    def read(x_BHNK: Tensor) -> Tensor:
        """The keys of each block, (B, U, H, W, K)."""
        x_BHPK = band.pad_keys(x_BHNK, x_BHNK.dtype)
        shifts = band.before + 1 + band.after
        if not columns.most:
            return windows_beside(x_BHPK, band.size, shifts)
        beside = F.pad(columns.read(x_BHNK), (0, 0, 0, missing)).unsqueeze(2)
        beside = beside.expand(-1, -1, band.count, -1, -1)
        return windows_beside(x_BHPK, band.size, shifts, beside)

    local_BN = columns.outside(mask_BN)
    local_BUW = band.real(local_BN, device).unfold(1, band.width, band.size)
    permitted = [local_BUW[:, None, :, None] & band.window_mask(device)]
    if columns.most:
        chosen_BG = columns.of_one(columns.chosen_BG)
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


def attend_in_parts(
    q_BHNK: Tensor,
    k_BHNK: Tensor,
    v_BHNV: Tensor,
    band: Band,
    columns: Columns,
    mask_BN: Tensor | None,
    *,
    dropout: float,
) -> Tensor:
    """Return the same by tiles: the window, then the columns, which all blocks read."""
    n = q_BHNK.shape[2]
    window = window_part(
        q_BHNK,
        k_BHNK,
        v_BHNV,
        band,
        key_mask_BM=columns.outside(mask_BN),
        position=None,
        origin=0,
        dropout=dropout,
        autograd=False,
    )
    parts = [window]
    if columns.most:
        shared = Shared(band.count, columns.most)
        part = Part(shared, real_BP=columns.chosen_BG, dropout=dropout)
        q_BHUSK = band.pad_queries(q_BHNK, q_BHNK.dtype)
        k, v = columns.read(k_BHNK), columns.read(v_BHNV)
        out, lse = attend_part(q_BHUSK, k, v, part, autograd=False)
        parts.append((out.flatten(2, 3)[:, :, :n], lse.flatten(2, 3)[:, :, :n]))
    return merge(parts).to(q_BHNK.dtype)
