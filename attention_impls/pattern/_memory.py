"""The decode state of attention that forgets: the last keys and values, with room for more.

B batch   M new keys   W remembered keys   R places in the room   H heads   K, V widths of a key, a
value head
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_impls.contract import seen
from lra.core.errors import UnsupportedError


class RememberedWindow(NamedTuple):
    """Decode state: the last W keys, oldest first, rotated by their absolute positions already.

    A value, though a step copies no window: states that follow from one another share a room of
    2 W places, in which none is written twice. Whoever finds the next one taken moves to another.
    """

    k_BHRK: Tensor
    v_BHRV: Tensor
    mask_BR: Tensor
    """Which of them are real; none is, before the first position."""
    end_B: Tensor
    """int64, on the CPU: the place behind the last key."""
    filled_B: Tensor
    """int64, on the CPU, shared as the room is: the places that are taken."""
    seen_B: Tensor
    """int64, on the CPU: positions consumed so far."""

    @property
    def window(self) -> slice:
        """The places of the last W keys."""
        end = int(self.end_B[0])
        return slice(end - self.k_BHRK.shape[2] // 2, end)

    @property
    def held(self) -> tuple[Tensor, Tensor, Tensor]:
        """The keys (B, H, W, K), the values (B, H, W, V) and which are real (B, W): views."""
        window = self.window
        return self.k_BHRK[:, :, window], self.v_BHRV[:, :, window], self.mask_BR[:, window]


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
    k_BHWK = torch.zeros(batch, heads, remembered, width, device=device, dtype=dtype)
    mask_BW = torch.zeros(batch, remembered, device=device, dtype=torch.bool)
    return _moved(k_BHWK, k_BHWK, mask_BW, torch.zeros(batch, dtype=torch.int64))


def remember_window(
    state: RememberedWindow, k_BHMK: Tensor, v_BHMV: Tensor, mask_BM: Tensor | None, needed: int
) -> tuple[RememberedWindow, Tensor, Tensor, Tensor]:
    """Return the state with new keys in place of the oldest, and all keys, values and mask.

    Raises `UnsupportedError` where it holds fewer than the `needed` keys and would forget one.
    """
    new, remembered = k_BHMK.shape[2], state.k_BHRK.shape[2] // 2
    end = seen(state) + new
    if remembered < needed and end > remembered:
        raise UnsupportedError(
            f"this decode state was made for {remembered} positions and {end} were asked for; "
            "call init_state with a larger length"
        )
    if mask_BM is None:
        mask_BM = torch.ones_like(k_BHMK[:, 0, :, 0], dtype=torch.bool)
    added, seen_B = (k_BHMK, v_BHMV, mask_BM), state.seen_B + new
    if not _has_room(state, added):
        k, v, mask = (
            torch.cat([old, x], dim=-2 if x.dim() == 4 else -1)
            for old, x in zip(state.held, added, strict=True)
        )
        return _moved(k[:, :, new:], v[:, :, new:], mask[:, new:], seen_B), k, v, mask
    free = slice(state.window.stop, state.window.stop + new)
    state.k_BHRK[:, :, free], state.v_BHRV[:, :, free], state.mask_BR[:, free] = added
    state.filled_B.add_(new)
    advanced = state._replace(end_B=state.end_B + new, seen_B=seen_B)
    everything = slice(state.window.start, free.stop)
    k, v = (x[:, :, everything] for x in (state.k_BHRK, state.v_BHRV))
    return advanced, k, v, state.mask_BR[:, everything]


def _moved(k_BHWK: Tensor, v_BHWV: Tensor, mask_BW: Tensor, seen_B: Tensor) -> RememberedWindow:
    """Return a state in a room of its own: copies, half of the room filled."""
    filled = torch.full_like(seen_B, mask_BW.shape[1])
    k, v = (F.pad(x, (0, 0, 0, x.shape[2])) for x in (k_BHWK, v_BHWV))
    mask = F.pad(mask_BW, (0, mask_BW.shape[1]))
    return RememberedWindow(k, v, mask, filled, filled.clone(), seen_B)


def _has_room(state: RememberedWindow, added: tuple[Tensor, ...]) -> bool:
    """Whether new keys may be written behind the state's own: the places are there and nobody has
    taken them, and writing there asks for no gradient and loses no precision."""
    room = (state.k_BHRK, state.v_BHRV, state.mask_BR)
    return (
        state.window.stop + added[0].shape[2] <= state.k_BHRK.shape[2]
        and torch.equal(state.end_B, state.filled_B)
        and all(
            old.is_contiguous()
            and old.is_inference() == torch.is_inference_mode_enabled()
            and torch.promote_types(old.dtype, x.dtype) == old.dtype
            and not (torch.is_grad_enabled() and (x.requires_grad or old.requires_grad))
            for old, x in zip(room, added, strict=True)
        )
    )
