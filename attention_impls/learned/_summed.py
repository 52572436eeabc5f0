"""Sinkhorn Transformer as the Long Range Arena ran it: strided sets, and sums of runs.

B batch   N positions   H heads   K width of a query or key head   V width of a value head
S positions in a set, and slots   U sets, and positions in a run

Position t stands in set t mod U and in run t // U. Its code cut blocks along the wrong axis, which
makes sets of them, and its sorting contracts blocks and permutation over different indices, which
leaves the sum of a run for each slot, whatever the permutation.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_impls._oracle import softmax_oracle
from attention_impls.contract import Context
from attention_impls.dense._fused import fused_softmax


def summed_attention(
    q_BHNK: Tensor,
    k_BHNK: Tensor,
    v_BHNV: Tensor,
    context: Context,
    *,
    size: int,
    dropout: float,
) -> Tensor:
    """Return softmax over the own set plus softmax over the slots, (B, H, N, V)."""
    batch, _, n, _ = q_BHNK.shape
    count = max(1, -(-n // size))
    missing = size * count - n
    real_BN = context.key_mask_BM
    if real_BN is None:
        real_BN = torch.ones(1, n, dtype=torch.bool, device=q_BHNK.device)
    else:
        k_BHNK, v_BHNV = (x.masked_fill(~real_BN[:, None, :, None], 0.0) for x in (k_BHNK, v_BHNV))

    def divided(x_BHNK: Tensor) -> Tensor:
        """(B, H, N, K) to (B, H, S, U, K), zero behind the last position."""
        x = F.pad(x_BHNK, (0, 0, 0, missing))
        return x.reshape(*x.shape[:2], size, count, x.shape[-1])

    def by_set(x_BHSUK: Tensor) -> Tensor:
        """To (B * U, H, S, K)."""
        return x_BHSUK.movedim(3, 1).flatten(0, 1)

    q, k, v = (divided(x) for x in (q_BHNK, k_BHNK, v_BHNV))
    real_B1SU1 = divided(real_BN[:, None, :, None].expand(batch, -1, -1, -1))
    in_sets, in_runs = None, None
    if missing or context.key_mask_BM is not None:
        in_sets = by_set(real_B1SU1).mT
        in_runs = real_B1SU1.any(3).mT
    own = fused_softmax(by_set(q), by_set(k), by_set(v), in_sets, None, dropout=dropout)
    own_BUHSV = own.view(batch, count, *own.shape[1:])
    own_BHNV = own_BUHSV.movedim(1, 3).flatten(2, 3)[:, :, :n]
    precise = torch.promote_types(q_BHNK.dtype, torch.float32)
    with torch.autocast(q_BHNK.device.type, enabled=False):
        # Logits of sums are as many times as large.
        k_BHSK, v_BHSV = (x.sum(3, dtype=precise) for x in (k, v))
        runs = fused_softmax(q_BHNK.to(precise), k_BHSK, v_BHSV, in_runs, None, dropout=dropout)
    return own_BHNV + runs.to(own_BHNV.dtype)


def summed_oracle(
    q_BHNK: Tensor, k_BHNK: Tensor, v_BHNV: Tensor, context: Context, *, size: int
) -> tuple[Tensor, Tensor]:
    """Return the same, and both weights of a pair added up, (B, H, N, N), in float64."""
    n, device = q_BHNK.shape[2], q_BHNK.device
    count = max(1, -(-n // size))
    places = torch.arange(n, device=device)
    apart_NN = (places.unsqueeze(-1) - places) % count
    _, own_BHNN = softmax_oracle(q_BHNK, k_BHNK, v_BHNV, context, apart_NN == 0)
    run_SN = (places // count == torch.arange(size, device=device).unsqueeze(-1)).double()
    run_B1SN = run_SN.expand(1, 1, -1, -1)
    if context.key_mask_BM is not None:
        run_B1SN = run_B1SN * context.key_mask_BM[:, None, None, :]
    logits_BHNS = q_BHNK.double() @ (run_B1SN @ k_BHNK.double()).mT / math.sqrt(q_BHNK.shape[-1])
    there = (run_B1SN.sum(-1) > 0).unsqueeze(2)
    top_BHN1 = logits_BHNS.detach().masked_fill(~there, -math.inf).amax(-1, keepdim=True)
    shares = torch.exp((logits_BHNS - top_BHN1).masked_fill(~there, -math.inf))
    total = shares.sum(-1, keepdim=True)
    weights_BHNN = own_BHNN + shares / torch.where(total > 0.0, total, 1.0) @ run_B1SN
    return weights_BHNN @ v_BHNV.double(), weights_BHNN
