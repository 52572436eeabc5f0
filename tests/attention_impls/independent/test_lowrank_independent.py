"""The oracles of low-rank attention against their formulas in plain Python.

Linformer (Wang et al. 2020, equation 7): softmax(Q (E K)^T / sqrt(d_k)) F V.

Nystromformer (Xiong et al. 2021, equations 13 and 14): means over segments as landmarks, three
softmaxes, and Z <- Z / 4 (13 I - A Z (15 I - A Z (7 I - A Z))). Checked against
mlpen/Nystromformer, LRA/code/attention_nystrom.py, NystromAttention: the same, the convolution a
depthwise one of V that is added to the result; its start divides by the largest sum of columns in
the whole batch (rows of A sum to 1), ours by that of each head, which is the same for one head.
"""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from plain import drawn, product, same, softmax, turned

from attention_impls.contract import Context


def set_compression(layer, e: list[list[float]], f: list[list[float]] | None) -> None:
    with torch.no_grad():
        layer.compression.key_MP[:3] = torch.tensor(e).double()
        if f is not None:
            layer.compression.value_MP[:3] = torch.tensor(f).double()


Q = torch.tensor([[2.0, 0.0, 0.0, 0.0]]).double().expand(1, 2, 1, 4)
K = torch.tensor([[math.log(w), 9.0, 0.0, 1.0] for w in (1.0, 2.0, 3.0)], dtype=torch.float64)
V = torch.tensor([[10.0], [20.0], [30.0]]).double()
E = [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
"""The first slot holds keys 0 and 2, whose logits ln 1 and ln 3 add up; the second key 1."""


def test_linformers_two_slots_by_hand(build) -> None:
    """Slots weigh 3/5 and 2/5; in F the first holds value 0 and the second twice value 1."""
    layer = build(("linformer", {"rank": 2}))
    set_compression(layer, E, [[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    k, v = K.expand(1, 2, -1, -1), V.expand(1, 2, -1, -1)
    out, weights = layer.oracle(Q, k, v, Context())
    same(out, torch.full((1, 2, 1, 1), 3 / 5 * 10 + 2 / 5 * 40).double())
    same(weights, [[[[3 / 5, 4 / 5, 0.0]]] * 2])
    # Without key 2 the first slot's logit is ln 1, and the slots weigh 1/3 and 2/3.
    out, _ = layer.oracle(Q, k, v, Context(key_mask_BM=torch.tensor([[True, True, False]])))
    same(out, [[[[1 / 3 * 10 + 2 / 3 * 40]]] * 2])


@pytest.mark.parametrize("sharing", ["key-value", "layerwise"])
def test_linformers_values_go_through_the_same_slots_where_shared(sharing, build) -> None:
    """The slots' values are 10 + 30 and 20: 3/5 of 40 and 2/5 of 20."""
    layer = build(("linformer", {"rank": 2, "sharing": sharing}))
    set_compression(layer, E, None)
    out, _ = layer.oracle(Q, K.expand(1, 2, -1, -1), V.expand(1, 2, -1, -1), Context())
    same(out, torch.full((1, 2, 1, 1), 32.0).double())


def test_linformer_against_torch(build) -> None:
    layer = build(("linformer", {"rank": 4}))
    q, (k, v) = drawn(2, 2, 5, 8), drawn(2, 2, 2, 9, 8, seed=1)
    e, f = layer.compression.key_MP[:9].T, layer.compression.value_MP[:9].T
    same(layer.oracle(q, k, v, Context())[0], F.scaled_dot_product_attention(q, e @ k, f @ v))


def softmaxes(a, b) -> list[list[float]]:
    logits = product(a, turned(b))
    return [softmax([x / math.sqrt(len(a[0])) for x in row]) for row in logits]


def less(number: float, a) -> list[list[float]]:
    """number I - a."""
    return [[number * (i == j) - x for j, x in enumerate(row)] for i, row in enumerate(a)]


def nystrom(q, k, v, segments: list[list[int]], iterations: int) -> list[list[float]]:
    means = [
        [[sum(x[j][c] for j in part) / len(part) for c in range(len(x[0]))] for part in segments]
        for x in (q, k)
    ]
    left, middle, right = softmaxes(q, means[1]), softmaxes(*means), softmaxes(means[0], k)
    columns = max(sum(column) for column in turned(middle))
    z = [[x / columns for x in row] for row in turned(middle)]  # rows sum to 1
    for _ in range(iterations):
        az = product(middle, z)
        bracket = less(13, product(az, less(15, product(az, less(7, az)))))
        z = [[x / 4 for x in row] for row in product(z, bracket)]
    return product(left, product(z, product(right, v)))


@pytest.mark.parametrize(
    ("n", "count", "segments"),
    [
        (6, 3, [[0, 1], [2, 3], [4, 5]]),
        (6, 2, [[0, 1, 2], [3, 4, 5]]),
        (3, 2, [[0], [1, 2]]),  # ours: where they do not divide, the shorter first
    ],
)
@pytest.mark.parametrize("iterations", [0, 1, 6])
def test_nystromformer(n, count, segments, iterations, build) -> None:
    config = {"landmarks": count, "iterations": iterations, "convolution": 0}
    layer = build(("nystromformer", config))
    q, k, v = drawn(3, 1, 2, n, 8)
    out, _ = layer.oracle(q, k, v, Context())
    for number in range(2):
        heads = (x[0, number].tolist() for x in (q, k, v))
        same(out[0, number], nystrom(*heads, segments, iterations))


def test_its_convolution_is_torchs_depthwise_one_and_a_residual(build) -> None:
    with_it = build(("nystromformer", {"landmarks": 2, "convolution": 3}))
    without = build(("nystromformer", {"landmarks": 2, "convolution": 0}))
    q, k, v = drawn(3, 2, 2, 6, 8)
    # As the authors: heads are channels, the kernel is (taps, 1), one per head.
    kernel = with_it.taps_HJ[:, None, :, None]
    added = F.conv2d(v, kernel, padding=(1, 0), groups=2)
    wanted = without.oracle(q, k, v, Context())[0] + added
    same(with_it.oracle(q, k, v, Context())[0], wanted)
