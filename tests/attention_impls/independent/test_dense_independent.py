"""The oracles of exact attention against fractions by hand and against torch's own.

Vaswani et al. 2017, equation 1: softmax(Q K^T / sqrt(d_k)) V. Torch's own is
`torch.nn.functional.scaled_dot_product_attention`, whose masks and head groups are its own.
"""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from plain import drawn, same
from torch.nn.attention.bias import causal_lower_right

from attention_impls.contract import Context
from attention_impls.positions.alibi import Alibi

EXACT = ["full", "sdpa", "chunked", "grouped_query", "multi_query"]

Q = [[2.0, 0.0, 0.0, 0.0]]
"""Times a key over sqrt(4) = 2, it picks out the key's first number."""

K = [[math.log(weight), 7.0, -3.0, 1.0] for weight in (1.0, 2.0, 3.0)]
"""So that e to the logits is 1, 2, 3."""

V = [[6.0], [12.0], [18.0]]


def heads(rows: list[list[float]], count: int) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64).expand(1, count, -1, -1)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize(
    ("queries", "context", "wanted"),
    [
        # 1/6 of 6, 2/6 of 12, 3/6 of 18.
        (3, Context(), [14.0, 14.0, 14.0]),
        # Row 0 reads key 0; row 1 has 1/3 of 6 and 2/3 of 12; row 2 reads all.
        (3, Context(causal=True), [6.0, 10.0, 14.0]),
        # Two queries are the last two of three: the first of them reads keys 0 and 1.
        (2, Context(causal=True), [10.0, 14.0]),
        # Without key 1: 1/4 of 6 and 3/4 of 18.
        (1, Context(key_mask_BM=torch.tensor([[True, False, True]])), [15.0]),
        (1, Context(key_mask_BM=torch.tensor([[False, False, False]])), [0.0]),
        # Without key 0: nothing for row 0, 12 for row 1, 2/5 of 12 and 3/5 of 18 for row 2.
        (3, Context(True, key_mask_BM=torch.tensor([[False, True, True]])), [0.0, 12.0, 15.6]),
    ],
)
def test_three_keys_by_hand(name, queries, context, wanted, build) -> None:
    layer = build((name, {}))
    out, weights = layer.oracle(
        heads(Q * queries, 2), heads(K, layer.kv_heads), heads(V, layer.kv_heads), context
    )
    same(out, [[[[x] for x in wanted]] * 2])
    assert weights.shape == (1, 2, queries, 3)


@pytest.mark.parametrize("name", EXACT)
def test_alibi_by_hand(name, build) -> None:
    """Press et al. 2022: two heads have the slopes 2^-4 and 2^-8; a key d back loses d slopes."""
    layer = build((name, {}))
    position = Alibi(layer.dims)
    out, _ = layer.oracle(
        heads(Q, 2),
        heads(K, layer.kv_heads),
        heads(V, layer.kv_heads),
        Context(causal=True, position=position),
    )
    for number, slope in enumerate((1 / 16, 1 / 256)):
        far, near, own = math.exp(-2 * slope), 2 * math.exp(-slope), 3.0
        wanted = (6 * far + 12 * near + 18 * own) / (far + near + own)
        assert float(out[0, number, 0, 0]) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("causal", [False, True])
def test_against_torch(name, causal, build) -> None:
    """Groups of heads too: torch repeats each head of keys for as many queries in a row."""
    layer = build((name, {}), qkv_width=32, heads=4)
    q, (k, v) = drawn(2, 4, 5, 8), drawn(2, 2, layer.kv_heads, 9, 8, seed=1)
    mask = causal_lower_right(5, 9) if causal else None
    wanted = F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=True)
    same(layer.oracle(q, k, v, Context(causal))[0], wanted)
    if not causal:
        hidden = torch.tensor([[True] * 9, [True, False, True] * 3])
        wanted = F.scaled_dot_product_attention(q, k, v, hidden[:, None, None], enable_gqa=True)
        same(layer.oracle(q, k, v, Context(key_mask_BM=hidden))[0], wanted)


def test_no_mixing_is_the_value_itself(build) -> None:
    """The X (OPT) line of Choromanski et al. 2021 returns V."""
    layer = build(("identity", {}))
    q, k, v = drawn(3, 1, 2, 3, 4)
    out, weights = layer.oracle(q, k, v, Context())
    same(out, v)
    same(weights, torch.eye(3).double().expand(1, 2, 3, 3))


@pytest.mark.parametrize("causal", [False, True])
def test_the_mean_weighs_alike_whatever_is_compared(build, causal: bool) -> None:
    """Exact attention does so between equal queries and keys."""
    layer = build(("mean", {}))
    v, alike = drawn(2, 2, 5, 4), torch.ones(2, 2, 5, 4, dtype=torch.float64)
    out, _ = layer.oracle(drawn(2, 2, 5, 4, seed=1), drawn(2, 2, 5, 4, seed=2), v, Context(causal))
    same(out, F.scaled_dot_product_attention(alike, alike, v, is_causal=causal))
