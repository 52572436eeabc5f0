"""Small steps that mechanisms share: heads apart and together, padding, causality, places."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from attention_impls.contract.values import Context


def split_heads(x_BND: Tensor, heads: int) -> Tensor:
    """(B, N, H * K) to (B, H, N, K), a view."""
    batch, length, width = x_BND.shape
    return x_BND.view(batch, length, heads, width // heads).transpose(1, 2)


def merge_heads(x_BHNV: Tensor) -> Tensor:
    """(B, H, N, V) to (B, N, H * V)."""
    return x_BHNV.transpose(1, 2).flatten(-2)


def zero_padding(x_BND: Tensor, mask_BN: Tensor | None) -> Tensor:
    """Put zero where the mask is False, whatever stood there, NaN included."""
    return x_BND if mask_BN is None else x_BND.masked_fill(~mask_BN.unsqueeze(-1), 0.0)


def causal_mask(n: int, m: int, device: torch.device | None = None) -> Tensor:
    """(N, M) boolean: query i sees keys up to i + m - n, so that the last of both coincide."""
    return torch.ones(n, m, dtype=torch.bool, device=device).tril(m - n)


def seen(state: Any) -> int:
    """Return how many positions a decode state has consumed; 0 without one."""
    return 0 if state is None else int(state.seen_B[0])


def select_rows(state: Any, index_B: Tensor) -> Any:
    """Return copies of these rows of every tensor in a state, in this order: rows may be repeated
    and left out. States may be nested."""
    if isinstance(state, Tensor):
        return state.index_select(0, index_B.to(state.device))
    if isinstance(state, tuple) and hasattr(state, "_fields"):
        return type(state)(*(select_rows(part, index_B) for part in state))
    if isinstance(state, tuple | list):
        return type(state)(select_rows(part, index_B) for part in state)
    return state


def position_ids(
    n: int, m: int, context: Context, state: Any, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Return positions of n queries and of m new keys, both from where the state stands.

    Causal queries are aligned at the end of the keys; others count from the start. Places that the
    request gives, (B, N) and (B, M), come before both.
    """
    start = seen(state)
    offset = m - n if context.causal else 0
    rows_N = torch.arange(start + offset, start + offset + n, device=device)
    columns_M = torch.arange(start, start + m, device=device)
    if context.positions_BN is not None:
        rows_N = context.positions_BN
    if context.source_positions_BM is not None:
        columns_M = context.source_positions_BM
    return rows_N, columns_M


def default_scale(head_width: int) -> float:
    """1 / sqrt(head width): what logits are multiplied by."""
    return 1.0 / math.sqrt(head_width)
