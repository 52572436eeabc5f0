"""The Nyströmformer's own: landmarks, the pseudo-inverse, the convolution."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from attention_impls.contract import Context
from attention_impls.lowrank._banded import convolve
from attention_impls.lowrank.nystromformer import (
    landmarks,
    pseudo_inverse,
)


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


def test_another_sequence_has_no_convolution(build) -> None:
    layer = build(("nystromformer", {"landmarks": 4, "convolution": 3}))
    x = torch.randn(1, 9, 12, dtype=torch.float64)
    across = layer(x, Context(), source_BMD=x).y_BND
    own = layer(x, Context()).y_BND
    assert not torch.allclose(across, own)
    with torch.no_grad():
        layer.taps_HJ.zero_()
    torch.testing.assert_close(layer(x, Context()).y_BND, across)


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
