"""Kernel attention as a whole: from queries, keys, values and a context to outputs and a state.

B batch   H heads   N queries   M keys   K head width   V value width
R features   U = V + 1: the values and a row of ones, whose sum is the denominator
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_impls.contract import Context, causal_mask
from attention_impls.kernel._bidirectional import (
    bidirectional,
    lowest,
    read_sum,
    sum_of_keys,
)
from attention_impls.kernel._causal import Causal
from attention_impls.kernel._chunks import by_chunks
from attention_impls.kernel._features import FeatureMap, SoftmaxFeatures
from attention_impls.kernel._fused import fits, fused
from attention_impls.kernel._halves import Halves
from attention_impls.kernel._products import working_dtype
from lra.core.errors import UnsupportedError


class KernelState(NamedTuple):
    """All that the past is to a causal kernel: its size does not grow with the length."""

    memory_BHUR: Tensor
    """Sum over the keys of [v, 1] phi(k)^T, divided by exp(log_scale). float32 or better."""
    log_scale_BH: Tensor
    """The largest log scale of any key so far; stays at the lowest float where keys have none."""
    seen_B: Tensor
    """Positions consumed, int64, on the CPU."""


def empty_state(
    batch: int, heads: int, features: int, values: int, device: torch.device, dtype: torch.dtype
) -> KernelState:
    """Return the state before the first key."""
    dtype = torch.promote_types(dtype, torch.float32)
    memory_BHUR = torch.zeros(batch, heads, values + 1, features, device=device, dtype=dtype)
    log_scale_BH = torch.full((batch, heads), lowest(dtype), device=device, dtype=dtype)
    return KernelState(memory_BHUR, log_scale_BH, torch.zeros(batch, dtype=torch.int64))


class SourceSum(NamedTuple):
    """All that another sequence is to queries: its size does not grow with the length."""

    sum_BHUR: Tensor
    """Sum over the keys of [v, 1] phi(k)^T, up to a positive factor. float32 or better."""


def keep_sum(
    k_BHMK: Tensor,
    v_BHMV: Tensor,
    mask_BM: Tensor | None,
    features: FeatureMap,
    dtype: torch.dtype,
) -> SourceSum:
    """Return the sum over all keys that are real; arithmetic as in `kernel_attention`, in `dtype`,
    which is float32 or better."""
    with torch.autocast(k_BHMK.device.type, enabled=False):
        return SourceSum(sum_of_keys(k_BHMK.to(dtype), v_BHMV.to(dtype), mask_BM, features))


def attend_sum(q_BHNK: Tensor, kept: SourceSum, features: FeatureMap) -> Tensor:
    """Return the attention of queries to the keys of a sum, (B, H, N, V) in the dtype of q."""
    with torch.autocast(q_BHNK.device.type, enabled=False):
        out_BHNV = read_sum(q_BHNK.to(kept.sum_BHUR.dtype), kept.sum_BHUR, features)
    return out_BHNV.to(q_BHNK.dtype)


def kernel_attention(
    q_BHNK: Tensor,
    k_BHMK: Tensor,
    v_BHMV: Tensor,
    context: Context,
    state: KernelState | None,
    features: FeatureMap,
) -> tuple[Tensor, KernelState | None]:
    """Return (B, H, N, V) in the dtype of v, and the advanced state where one was given.

    All arithmetic is in float32 or better, autocast or not: sums over thousands of keys and
    exponentials need it. On a GPU operands of products are in bfloat16 where the inputs are. Rows
    with nothing to attend to are zero.
    """
    with torch.autocast(q_BHNK.device.type, enabled=False):
        dtype = working_dtype(q_BHNK, k_BHMK, v_BHMV)
        q, k, v = q_BHNK.to(dtype), k_BHMK.to(dtype), v_BHMV.to(dtype)
        if not context.causal:
            out_BHNV = _bidirectional(q, k, v, context.key_mask_BM, features)
        else:
            out_BHNV, state = _causal(q, k, v, context.key_mask_BM, state, features)
    return out_BHNV.to(v_BHMV.dtype), state


def _bidirectional(
    q: Tensor, k: Tensor, v: Tensor, mask_BM: Tensor | None, features: FeatureMap
) -> Tensor:
    """Choose how: in half precision by fused attention, or without tiles."""
    if q.dtype == torch.bfloat16 and isinstance(features, SoftmaxFeatures):
        if fits(q.shape[3], v.shape[3]):
            return fused(q, k, v, mask_BM, features.omega)
        q, k, v = q.float(), k.float(), v.float()
        features = SoftmaxFeatures.of(features.omega, q.dtype)
    if q.dtype == torch.bfloat16:
        out_BHNV: Tensor = Halves.apply(q, k, v, mask_BM, features)  # type: ignore[no-untyped-call]
        return out_BHNV
    return bidirectional(q, k, v, mask_BM, features)


def _causal(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask_BM: Tensor | None,
    state: KernelState | None,
    features: FeatureMap,
) -> tuple[Tensor, KernelState | None]:
    """Align queries and keys at their ends, and scan."""
    n, m = q.shape[2], k.shape[2]
    if m < n and state is not None:
        raise UnsupportedError(
            f"a continued kernel state got {n} queries but {m} keys; give as many keys as queries"
        )
    if m < n:  # queries before the first key see nothing
        out_BHNV, _ = _causal(q[:, :, n - m :], k, v, mask_BM, None, features)
        return F.pad(out_BHNV, (0, 0, n - m, 0)), None
    if m > n:  # keys before the first query are seen by all
        q = F.pad(q, (0, 0, m - n, 0))
    past = state or empty_state(
        q.shape[0], q.shape[1], features.width(q.shape[3]), v.shape[3], q.device, q.dtype
    )
    dtype = torch.float32 if q.dtype == torch.bfloat16 else q.dtype
    memory_BHUR, log_scale_BH = past.memory_BHUR.to(dtype), past.log_scale_BH.to(dtype)
    scan = by_chunks if q.dtype == torch.bfloat16 else Causal.apply
    out_BHNV, memory_BHUR, log_scale_BH = scan(
        q, k, v, mask_BM, memory_BHUR, log_scale_BH, features
    )
    if state is not None:
        state = KernelState(memory_BHUR, log_scale_BH, state.seen_B + m)
    return out_BHNV[:, :, m - n :], state


def normalised(log_weights_BHNM: Tensor, v_BHMV: Tensor, context: Context) -> tuple[Tensor, Tensor]:
    """Return the outputs and the weights of dense kernel attention, given log phi(q) . phi(k).

    For oracles: float64, rows that sum to 1, or are zero where no key is permitted.
    """
    n, m = log_weights_BHNM.shape[2:]
    permitted = torch.ones(n, m, dtype=torch.bool, device=log_weights_BHNM.device)
    if context.causal:
        permitted = causal_mask(n, m, permitted.device)
    if context.key_mask_BM is not None:
        permitted = permitted & context.key_mask_BM[:, None, None, :]
    none_BHN1 = ~permitted.any(-1, keepdim=True)
    logits = log_weights_BHNM.masked_fill(~(permitted | none_BHN1), -torch.inf)
    weights_BHNM = logits.softmax(-1).masked_fill(none_BHN1, 0.0)
    return weights_BHNM @ v_BHMV.double(), weights_BHNM
