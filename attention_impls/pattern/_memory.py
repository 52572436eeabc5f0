"""The decode state of attention that forgets: the last keys and values, a ring written out.

B batch   M new keys   W remembered keys   H heads   K, V widths of a key, a value head
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from attention_impls.contract import seen
from lra.core.errors import UnsupportedError


class RememberedWindow(NamedTuple):
    """Decode state: the last W keys, oldest first, rotated by their absolute positions already."""

    k_BHWK: Tensor
    v_BHWV: Tensor
    mask_BW: Tensor
    """Which of them are real; none is, before the first position."""
    seen_B: Tensor
    """int64, on the CPU: positions consumed so far."""


def empty_window(
    batch: int,
    heads: int,
    width: int,
    *,
    remembered: int,
    device: torch.device,
    dtype: torch.dtype,
) -> RememberedWindow:
    """Return an empty memory of so many keys."""
    shape_BHWK = (batch, heads, remembered, width)
    return RememberedWindow(
        k_BHWK=torch.zeros(shape_BHWK, device=device, dtype=dtype),
        v_BHWV=torch.zeros(shape_BHWK, device=device, dtype=dtype),
        mask_BW=torch.zeros(batch, remembered, device=device, dtype=torch.bool),
        seen_B=torch.zeros(batch, dtype=torch.int64),
    )


def remember_window(
    state: RememberedWindow, k_BHMK: Tensor, v_BHMV: Tensor, mask_BM: Tensor | None, needed: int
) -> tuple[RememberedWindow, Tensor, Tensor, Tensor]:
    """Return the state with new keys in place of the oldest, and all keys, values and mask.

    Raises `UnsupportedError` where it holds fewer than the `needed` keys and would forget one.
    """
    remembered = state.k_BHWK.shape[2]
    end = seen(state) + k_BHMK.shape[2]
    if remembered < needed and end > remembered:
        raise UnsupportedError(
            f"this decode state was made for {remembered} positions and {end} were asked for; "
            "call init_state with a larger length"
        )
    if mask_BM is None:
        mask_BM = torch.ones_like(k_BHMK[:, 0, :, 0], dtype=torch.bool)
    k = torch.cat([state.k_BHWK, k_BHMK], dim=2)
    v = torch.cat([state.v_BHWV, v_BHMV], dim=2)
    mask = torch.cat([state.mask_BW, mask_BM], dim=1)
    gone = k.shape[2] - remembered
    advanced = RememberedWindow(
        # Copies, so that a long prefill is not kept alive by its last keys.
        k_BHWK=k[:, :, gone:].clone(),
        v_BHWV=v[:, :, gone:].clone(),
        mask_BW=mask[:, gone:].clone(),
        seen_B=state.seen_B + k_BHMK.shape[2],
    )
    return advanced, k, v, mask
