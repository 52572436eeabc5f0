"""The key-value cache of exact attention: all keys and values so far, in preallocated tensors.

B batch   M new keys   T positions the cache holds   H heads   K, V widths of a key, a value head
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from attention_impls.contract import seen
from lra.core.errors import UnsupportedError


class KeyValueCache(NamedTuple):
    """Decode state. The tensors are written in place: continue the newest state, not an older one,
    and decode under `torch.no_grad()`.
    """

    k_BHTK: Tensor
    v_BHTV: Tensor
    mask_BT: Tensor
    """Which of the positions seen are real."""
    padded_B: Tensor
    """Boolean, on the CPU: whether any position came with a mask. Where none did, none is used."""
    seen_B: Tensor
    """int64, on the CPU: positions written so far."""


def empty_cache(
    batch: int, heads: int, width: int, *, length: int, device: torch.device, dtype: torch.dtype
) -> KeyValueCache:
    """Return a cache for `length` positions that holds none."""
    shape_BHTK = (batch, heads, length, width)
    return KeyValueCache(
        k_BHTK=torch.zeros(shape_BHTK, device=device, dtype=dtype),
        v_BHTV=torch.zeros(shape_BHTK, device=device, dtype=dtype),
        mask_BT=torch.ones(batch, length, device=device, dtype=torch.bool),
        padded_B=torch.zeros(batch, dtype=torch.bool),
        seen_B=torch.zeros(batch, dtype=torch.int64),
    )


def remember(
    cache: KeyValueCache, k_BHMK: Tensor, v_BHMV: Tensor, mask_BM: Tensor | None
) -> tuple[KeyValueCache, Tensor, Tensor, Tensor | None]:
    """Write new keys behind the remembered ones; return the cache, and all keys, values and mask.

    Raises `UnsupportedError` where the cache is too short.
    """
    start, capacity = seen(cache), cache.k_BHTK.shape[2]
    end = start + k_BHMK.shape[2]
    if end > capacity:
        raise UnsupportedError(
            f"the key-value cache holds {capacity} positions and {end} were asked for; "
            "call init_state with a larger length"
        )
    cache.k_BHTK[:, :, start:end] = k_BHMK
    cache.v_BHTV[:, :, start:end] = v_BHMV
    if mask_BM is not None:
        cache.mask_BT[:, start:end] = mask_BM
    padded_B = cache.padded_B | (mask_BM is not None)
    advanced = cache._replace(padded_B=padded_B, seen_B=cache.seen_B + k_BHMK.shape[2])
    mask_BT = cache.mask_BT[:, :end] if bool(padded_B.any()) else None
    return advanced, cache.k_BHTK[:, :, :end], cache.v_BHTV[:, :, :end], mask_BT
