"""What is particular to the Nyströmformer: landmarks, the pseudo-inverse, the convolution."""

from __future__ import annotations

import msgspec
import pytest
import torch
import torch.nn.functional as F

from attention_impls._oracle import softmax_oracle
from attention_impls.contract import Context
from attention_impls.lowrank._banded import convolve
from attention_impls.lowrank.nystromformer import (
    NystromformerConfig,
    landmarks,
    pseudo_inverse,
)
from lra.core.errors import UsageError


def test_three_positions_and_two_landmarks_by_hand(build, draw) -> None:
    """The shorter segment first: positions {0} and {1, 2}."""
    layer = build(("nystromformer", {"landmarks": 2, "convolution": 3, "iterations": 4}))
    q, k, v = (x.detach() for x in draw(1, 3, heads=2))
    q_means, k_means = (torch.stack([x[:, :, 0], x[:, :, 1:].mean(2)], 2) for x in (q, k))

    def weights(a, b):
        return (a @ b.mT / 8**0.5).softmax(-1)

    a = weights(q_means, k_means)
    z = a.mT / a.sum(-2).amax(-1)[..., None, None]
    for _ in range(4):
        z = (
            13 / 4 * z
            - 15 / 4 * z @ a @ z
            + 7 / 4 * z @ a @ z @ a @ z
            - z @ (a @ z) @ (a @ z) @ (a @ z) / 4
        )
    wanted = weights(q, k_means) @ z @ weights(q_means, k) @ v
    taps = layer.taps_HJ.detach()[:, :, None, None]
    padded = F.pad(v, (0, 0, 1, 1))
    wanted = wanted + sum(taps[:, j] * padded[:, :, j : j + 3] for j in range(3))
    found, _ = layer.attend(q, k, v, Context(), own=True)
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize(("n", "count"), [(12, 4), (13, 4), (15, 4), (7, 5)])
def test_segments_are_whole_and_differ_by_one_at_most(n, count) -> None:
    x = torch.arange(n, dtype=torch.float64).view(1, 1, n, 1)
    means, real = landmarks(x, count, None)
    sizes = [n // count] * (count - n % count) + [n // count + 1] * (n % count)
    wanted = torch.stack([part.mean() for part in x.flatten().split(sizes)])
    torch.testing.assert_close(means.flatten(), wanted)
    assert bool(real.all())


def test_landmarks_are_means_over_real_positions() -> None:
    x = torch.randn(2, 1, 9, 4, dtype=torch.float64)
    mask = torch.ones(2, 9, dtype=torch.bool)
    mask[1, 2:6] = False
    x[1, :, 2:6] = float("nan")
    means, real = landmarks(x, 3, mask)
    assert real.tolist() == [[True] * 3, [True, False, True]]
    torch.testing.assert_close(means[1, 0, 0], x[1, 0, :2].mean(0))
    torch.testing.assert_close(means[1, 0, 2], x[1, 0, 6:].mean(0))
    assert not bool(means[1, 0, 1].any())


def test_the_iteration_converges_to_the_pseudo_inverse() -> None:
    """Slowly at first: six steps are an approximation, and more are a better one."""
    a = torch.randn(3, 2, 16, 16, dtype=torch.float64).softmax(-1)
    a[:, 1, :, 3:5], a[:, 1, 3:5] = 0.0, 0.0
    true = torch.linalg.pinv(a, rtol=1e-12)
    gaps = [float((a @ pseudo_inverse(a, steps) @ a - a).norm()) for steps in (6, 10, 30)]
    assert gaps[0] > gaps[1] > gaps[2] and gaps[2] < 1e-9
    torch.testing.assert_close(pseudo_inverse(a, 40), true, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("n", "m"), [(9, 13), (13, 9), (30, 41), (41, 5), (5, 41), (4, 41)])
@pytest.mark.parametrize("padded", [False, True])
def test_another_sequence_against_the_oracle(n, m, padded, build, draw, some_padding) -> None:
    """Both lengths above the landmarks, and either below."""
    layer = build(("nystromformer", {"landmarks": 4, "convolution": 3}))
    qkv = draw(2, n, m)
    context = Context(key_mask_BM=some_padding(2, m) if padded else None)
    found, _ = layer.attend(*qkv, context, own=False)
    wanted, weights = layer.oracle(*qkv, context, own=False)
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)
    upstream = torch.randn_like(found)
    for one, other in zip(
        torch.autograd.grad(found, qkv, upstream),
        torch.autograd.grad(wanted, qkv, upstream),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-9)
    if min(n, m) <= 4:
        torch.testing.assert_close(weights, softmax_oracle(*qkv, context)[1])


def test_another_sequence_has_no_convolution(build) -> None:
    layer = build(("nystromformer", {"landmarks": 4, "convolution": 3}))
    x = torch.randn(1, 9, 12, dtype=torch.float64)
    across = layer(x, Context(), source_BMD=x).y_BND
    own = layer(x, Context()).y_BND
    assert not torch.allclose(across, own)
    with torch.no_grad():
        layer.taps_HJ.zero_()
    torch.testing.assert_close(layer(x, Context()).y_BND, across)


def test_an_example_with_sharp_weights_leaves_its_neighbour_alone(build, draw) -> None:
    """The authors' start divides by the largest norm of the batch."""
    layer = build(("nystromformer", {"landmarks": 4}))
    q, k, v = draw(2, 37)
    alone, _ = layer.attend(q[1:], k[1:], v[1:], Context(), own=True)
    sharp = q.detach() * torch.tensor([50.0, 1.0]).view(2, 1, 1, 1)
    beside, _ = layer.attend(sharp, k, v, Context(), own=True)
    torch.testing.assert_close(beside[1:], alone)


@pytest.mark.parametrize("n", [0, 1, 3, 63, 64, 65, 200])
@pytest.mark.parametrize("taps", [1, 3, 35, 201])
def test_the_banded_products_are_a_convolution(n, taps) -> None:
    v = torch.randn(2, 3, n, 5, dtype=torch.float64, requires_grad=True)
    kernel = torch.randn(3, taps, dtype=torch.float64, requires_grad=True)
    found = convolve(v, kernel)
    if not n:
        assert found.shape == v.shape
        return
    wanted = F.conv2d(v, kernel[:, None, :, None], padding=(taps // 2, 0), groups=3)
    torch.testing.assert_close(found, wanted)
    upstream = torch.randn_like(found)
    torch.testing.assert_close(
        torch.autograd.grad(found, (v, kernel), upstream),
        torch.autograd.grad(wanted, (v, kernel), upstream),
    )


def test_hyper_parameters() -> None:
    assert NystromformerConfig() == NystromformerConfig(64, 6, 35)
    with pytest.raises(UsageError, match="convolution"):
        NystromformerConfig(convolution=4)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"landmarks": 0}, NystromformerConfig)
