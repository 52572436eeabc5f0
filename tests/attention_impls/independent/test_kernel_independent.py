"""The oracles of kernel attention against their formulas in plain Python.

Linear attention (Katharopoulos et al. 2020, equations 5 and 7): phi(x) = elu(x) + 1, weights
phi(q_i) . phi(k_j) over their sum, no scale.

FAVOR+ (Choromanski et al. 2021, lemma 1 and section 2.4): phi(x) = exp(omega_r . x - |x|^2 / 2)
over sqrt(R), x = q or k over d^(1/4). Checked against google-research/google-research,
performer/fast_attention, as it stands in google-research/long-range-arena,
lra_benchmarks/models/performer/performer_attention.py, nonnegative_softmax_kernel_feature_creator
and generalized_kernel_feature_creator: the same, with a maximum subtracted, which cancels, and 1e-6
added to each feature, which does not; we leave the latter out.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from plain import Rows, blend, dot, drawn, same

from attention_impls.contract import Context


def test_three_positions_of_linear_attention_by_hand(build) -> None:
    """phi(1) = 2, phi(0) = 1, phi(-ln 2) = 1/2: the shares of the keys are 2, 1 and 1/2, whatever
    the query, as the width is 1."""
    q = torch.tensor([[[[0.3], [-2.0], [1.0]]]], dtype=torch.float64)
    k = torch.tensor([[[[1.0], [0.0], [-math.log(2)]]]], dtype=torch.float64)
    v = torch.tensor([[[[7.0], [14.0], [28.0]]]], dtype=torch.float64)
    layer = build(("linear", {}))
    # (2 * 7 + 1 * 14 + 1/2 * 28) / 3.5
    same(layer.oracle(q, k, v, Context())[0], [[[[12.0]] * 3]])
    # (2 * 7) / 2, (2 * 7 + 14) / 3, all.
    same(layer.oracle(q, k, v, Context(causal=True))[0], [[[[7.0], [28 / 3], [12.0]]]])
    # Without key 0: (14 + 14) / 1.5.
    context = Context(key_mask_BM=torch.tensor([[False, True, True]]))
    same(layer.oracle(q, k, v, context)[0], [[[[56 / 3]] * 3]])


def test_the_query_counts_where_there_are_two_channels(build) -> None:
    """phi(q) = (2, 1/2); phi(k) = (1, 1), (3, 1), (1, 4): weights 2.5, 6.5, 4, no 1 / sqrt(2)."""
    q = torch.tensor([[[[1.0, -math.log(2)]]]], dtype=torch.float64)
    k = torch.tensor([[[[0.0, 0.0], [2.0, 0.0], [0.0, 3.0]]]], dtype=torch.float64)
    v = torch.tensor([[[[1.0], [2.0], [3.0]]]], dtype=torch.float64)
    out, weights = build(("linear", {})).oracle(q, k, v, Context())
    same(out, [[[[(2.5 + 13 + 12) / 13]]]])
    same(weights, [[[[2.5 / 13, 6.5 / 13, 4 / 13]]]])


def favor(x: list[float], omega: Rows) -> list[float]:
    scaled = [number / len(x) ** 0.25 for number in x]
    half = dot(scaled, scaled) / 2
    return [math.exp(dot(row, scaled) - half) / math.sqrt(len(omega)) for row in omega]


def rectified(x: list[float], omega: Rows) -> list[float]:
    scaled = [number / len(x) ** 0.25 for number in x]
    return [max(0.0, dot(row, scaled)) + 0.001 for row in omega]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("kernel", "phi"), [("softmax", favor), ("relu", rectified)])
def test_performer(kernel, phi, causal, build) -> None:
    layer = build(("performer", {"kernel": kernel, "features": 5}))
    q, k, v = drawn(3, 1, 2, 3, 8)
    out, weights = layer.oracle(q, k, v, Context(causal))
    for number in range(2):
        omega = layer.omega_HRK[number].double().tolist()
        assert len(omega) == 5
        of_q, of_k = ([phi(row, omega) for row in x[0, number].tolist()] for x in (q, k))
        for i in range(3):
            keys = range(i + 1) if causal else range(3)
            pairs = [dot(of_q[i], of_k[j]) for j in keys]
            shares = [pair / sum(pairs) for pair in pairs]
            same(weights[0, number, i, : len(keys)], torch.tensor(shares, dtype=torch.float64))
            wanted = blend(shares, [v[0, number, j].tolist() for j in keys])
            same(out[0, number, i], torch.tensor(wanted, dtype=torch.float64))


@pytest.mark.parametrize("causal", [False, True])
def test_the_arenas_performer_by_hand(causal, build) -> None:
    """Its default kernel is 'generalized' with 'deterministic' features: no projection and no
    d^(-1/4), max(x, 0) + 0.001 channel by channel. For q = (1, -2) and keys (2, 0), (-1, 1), (1, 1)
    the weights are 1.001 a + 0.001 b, with (a, b) = (2.001, 0.001), (0.001, 1.001), (1.001, 1.001).
    """
    layer = build(("performer", {"parity": "lra2021"}), qkv_width=4)
    q = torch.tensor([[1.0, -2.0]] * 3, dtype=torch.float64).expand(1, 2, -1, -1)
    k = torch.tensor([[2.0, 0.0], [-1.0, 1.0], [1.0, 1.0]], dtype=torch.float64)
    k, v = k.expand(1, 2, -1, -1), drawn(1, 2, 3, 2)
    pairs = [1.001 * a + 0.001 * b for a, b in ((2.001, 0.001), (0.001, 1.001), (1.001, 1.001))]
    assert layer.omega_HRK.shape == (2, 2, 2)
    for found, _ in (
        layer.oracle(q, k, v, Context(causal)),
        layer.attend(q, k, v, Context(causal)),
    ):
        for i in range(3):
            seen = pairs[: i + 1] if causal else pairs
            shares = [pair / sum(seen) for pair in seen]
            for number in range(2):
                rows = v[0, number].tolist()[: len(seen)]
                same(found[0, number, i], torch.tensor(blend(shares, rows), dtype=torch.float64))
    layer.after_step(1000)
    same(layer.omega_HRK, torch.eye(2).double().expand(2, 2, 2))


def test_the_features_are_unbiased_for_softmax() -> None:
    """E[phi(q) . phi(k)] = exp(q . k / sqrt(d)) over Gaussian omega: of the formula that the oracle
    was just compared with, at d = 1, by Gauss-Hermite quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    for x, y in ((0.3, 0.7), (-1.0, 0.5), (0.9, 0.9)):
        pairs = [favor([x], [[float(z)]])[0] * favor([y], [[float(z)]])[0] for z in nodes]
        found = dot([float(w) for w in weights], pairs) / math.sqrt(2 * math.pi)
        assert found == pytest.approx(math.exp(x * y), rel=1e-12)
