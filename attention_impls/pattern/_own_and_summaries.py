"""The own block and the other blocks' summary columns, in one softmax: by parts, or by two calls.

B batch   N queries   M keys   H heads   K width of a query or key head   V width of a value head
U blocks of queries   S positions in a block   P summary columns   W keys that a block reads
T blocks of a tile

The own block's summaries are in both sets, and are to count once. By parts, which a CPU works off
in tiles, the second set hides them. By two calls, for a GPU and for compilers, the first is without
them: so the second copies no key, and hides none but those that are later.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_impls.contract import Position
from attention_impls.pattern._bias import positional
from attention_impls.pattern._joined import Grouping, attend_joined
from attention_impls.pattern._layouts import Own, Shared, divided
from attention_impls.pattern._parts import Hidden, Part, alike, attend_part, needs_autograd
from attention_impls.pattern._summary_columns import Summaries


def attend_in_parts(
    q_BHNK: Tensor,
    k_BHMK: Tensor,
    v_BHMV: Tensor,
    key_mask_BM: Tensor | None,
    position: Position | None,
    summaries: Summaries,
    *,
    causal: bool,
    origin: int,
    dropout: float,
) -> list[tuple[Tensor, Tensor]]:
    """Return the own block and the others' summaries, outputs (B, H, N, V) and log sums (B, H, N).

    Queries stand at the end of the keys; `origin` is the position of the first key, where blocks
    begin.
    """
    n, m, device = q_BHNK.shape[2], k_BHMK.shape[2], q_BHNK.device
    size = summaries.size
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
        dropout=dropout,
    )
    parts = [attend_part(q, k, v, part, autograd=autograd)]

    columns_P = summaries.columns(m, device)
    if len(columns_P):
        step = summaries.per_block if causal else 0
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
            dropout=dropout,
        )
        k, v = (x.index_select(2, columns_P) for x in (k_BHMK, v_BHMV))
        parts.append(attend_part(q, k, v, part, autograd=autograd))
    stays = slice(ahead, ahead + n)
    return [(out.flatten(2, 3)[:, :, stays], lse.flatten(2, 3)[:, :, stays]) for out, lse in parts]


def attend_in_two_calls(
    q_BHNK: Tensor,
    k_BHMK: Tensor,
    v_BHMV: Tensor,
    key_mask_BM: Tensor | None,
    position: Position | None,
    summaries: Summaries,
    *,
    causal: bool,
    token: int,
    dropout: float,
) -> Tensor:
    """Return the same joined, (B, H, N - token, V): blocks are counted from `token` on, and a key
    ahead of them is read by all, and reads nothing here."""
    n, m, device = q_BHNK.shape[2], k_BHMK.shape[2], q_BHNK.device
    rows_N = torch.arange(m - n + token, m, device=device)
    columns_P = F.pad(summaries.columns(m - token, device) + token, (token, 0))
    seen_NP = columns_P <= rows_N.unsqueeze(-1) if causal else columns_P[None] >= 0
    seen_B1NP = seen_NP[None, None]
    if key_mask_BM is not None:
        seen_B1NP = seen_B1NP & key_mask_BM[:, None, None, columns_P]
    k, v = (x.to(q_BHNK.dtype).index_select(2, columns_P) for x in (k_BHMK, v_BHMV))
    bias_HNP = None if position is None else position.logits(rows_N, columns_P)
    bias_H1NP = None if bias_HNP is None else bias_HNP.unsqueeze(1)
    q = q_BHNK[:, :, token:]
    afar = Grouping(_as_one, _as_it_was, seen_B1NP, bias_H1NP), k, v
    own = _own_blocks(
        q, k_BHMK, v_BHMV, key_mask_BM, position, summaries, causal=causal, token=token
    )
    return attend_joined(q, own, afar, dropout=dropout)


def _own_blocks(
    q_BHNK: Tensor,
    k_BHMK: Tensor,
    v_BHMV: Tensor,
    key_mask_BM: Tensor | None,
    position: Position | None,
    summaries: Summaries,
    *,
    causal: bool,
    token: int,
) -> tuple[Grouping, Tensor, Tensor]:
    """Return the own block but for its summaries."""
    n, m, device = q_BHNK.shape[2], k_BHMK.shape[2] - token, q_BHNK.device
    size, own = summaries.size, summaries.own_places
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
    layout = Own(count, summaries.own_width, summaries.own_width)
    bias = positional(position, layout, rows_US, rows_US[:, own].flatten())
    k, v = (read(x.to(q_BHNK.dtype)).flatten(0, 1) for x in (k_BHMK, v_BHMV))
    bias_HUSW = None if bias is None else bias(slice(None))
    return Grouping(group, ungroup, permitted, bias_HUSW), k, v


def _as_one(x_BHNK: Tensor) -> Tensor:
    """All queries of an example are one block."""
    return x_BHNK.unsqueeze(2)


def _as_it_was(x_BH1NK: Tensor) -> Tensor:
    """Undo it."""
    return x_BH1NK.squeeze(2)
