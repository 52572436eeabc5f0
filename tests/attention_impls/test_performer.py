"""The Performer's own: its draws, the laws of its estimator, its scales."""

from __future__ import annotations

import math

import pytest
import torch
from scipy.special import hyp0f1
from torch import Tensor

from attention_impls._draws import seeded
from attention_impls.contract import Context
from attention_impls.kernel._draws import haar, orthogonal_draws
from attention_impls.kernel._features import SoftmaxFeatures

SOFTMAX = ("performer", {"features": 24})
directions = pytest.mark.parametrize("causal", [False, True], ids=["bidirectional", "causal"])


# The draws.


def test_first_rows_of_a_rotation_have_mean_zero() -> None:
    """Within 4 standard errors; LAPACK's Q alone, whose first entry is always negative, has not."""
    gaussian = torch.randn(4000, 8, 8, generator=seeded(1), dtype=torch.float64)
    limit = 4 / math.sqrt(4000 * 8)
    assert haar(gaussian)[:, 0].mean(0).abs().max() < limit
    assert torch.linalg.qr(gaussian).Q[:, 0].mean(0).abs().max() > limit


def test_blocks_of_rows_are_orthogonal_and_the_last_is_cut() -> None:
    draws = orthogonal_draws(3, 20, 8, "sqrt", seeded(2)).double()
    products = draws @ draws.mT / 8
    block = torch.arange(20) // 8
    within = block[:, None] == block[None, :]
    unit = torch.eye(20, dtype=torch.float64).expand(3, 20, 20)
    torch.testing.assert_close(products * within, unit * within, rtol=0, atol=1e-6)
    assert products[:, ~within].abs().max() > 0.1


def test_lengths_are_those_of_gaussian_rows() -> None:
    """chi: squared lengths have mean K and variance 2 K, within 5 standard errors."""
    squared = orthogonal_draws(500, 16, 16, "chi", seeded(3)).double().square().sum(-1).flatten()
    error = math.sqrt(2 * 16 / len(squared))
    assert abs(squared.mean() - 16) < 5 * error
    assert abs(squared.var() / 32 - 1) < 5 * math.sqrt(3 / len(squared))


def test_draws_come_from_seed_layer_and_head_alone(build) -> None:
    def omega(seed: int, layer_index: int) -> Tensor:
        layer = build(SOFTMAX)
        return type(layer)(layer.dims, layer.config, layer_index=layer_index, seed=seed).omega_HRK

    first = omega(0, 0)
    torch.manual_seed(99)
    assert torch.equal(first, omega(0, 0))
    others = [omega(1, 0), omega(0, 1), omega(1, 1)]
    assert not any(torch.equal(first, other) for other in others)
    assert not torch.equal(others[0], others[1])
    assert not torch.equal(first[0], first[1])


def test_draws_change_after_every_so_many_steps_only(build) -> None:
    layer = build(("performer", {"features": 24, "redraw_every": 3})).train()
    x = torch.randn(2, 9, 12, dtype=torch.float64)
    seen = [layer.omega_HRK.clone()]
    for step in range(1, 8):
        layer(x, Context()).y_BND.sum().backward()
        assert torch.equal(layer.omega_HRK, seen[-1])
        layer.after_step(step)
        if step % 3 == 0:
            assert not any(torch.equal(layer.omega_HRK, omega) for omega in seen)
            seen.append(layer.omega_HRK.clone())
        assert torch.equal(layer.omega_HRK, seen[-1])
    resumed = build(("performer", {"features": 24, "redraw_every": 3}))
    resumed.after_step(6)
    assert torch.equal(resumed.omega_HRK, seen[-1])
    other = build(("performer", {"features": 24}), seed=5)
    other.load_state_dict(layer.state_dict())
    assert torch.equal(other.omega_HRK, seen[-1])


def test_period_zero_keeps_the_first_draws(build) -> None:
    layer = build(("performer", {"features": 24, "redraw_every": 0}))
    first = layer.omega_HRK.clone()
    for step in (1, 1000, 2000):
        layer.after_step(step)
    assert torch.equal(layer.omega_HRK, first)


# The estimator: phi(x) . phi(y) / R for exp(x . y), over many independent draws.

WIDTH = 16
TRIALS = 20_000


def estimates(omega_TRK: Tensor, x_K: Tensor, y_K: Tensor) -> Tensor:
    """Return one estimate per trial, from the features and log scales that keys get."""
    features = SoftmaxFeatures.of(omega_TRK, torch.float64)
    trials, draws, width = omega_TRK.shape
    (phi_x, scale_x), (phi_y, scale_y) = (
        features.keys((z * width**0.25).expand(trials, 1, width)) for z in (x_K, y_K)
    )
    return ((phi_x * phi_y).sum(-1) * (scale_x + scale_y).exp()).squeeze(-1) / draws


def pair() -> tuple[Tensor, Tensor, float, float]:
    """Return x, y, s = |x + y|^2 and exp(x . y): along the first axis, where a wrong sign shows."""
    x, y = torch.zeros(2, WIDTH, dtype=torch.float64)
    x[0], y[0], x[1], y[2] = 0.45, 0.45, 0.1, -0.15
    return x, y, float((x + y).square().sum()), float(torch.exp(x @ y))


def within(values: Tensor, expected: float, errors: float = 5.0) -> bool:
    return bool((values.mean() - expected).abs() <= errors * values.std() / math.sqrt(len(values)))


def test_positive_features_obey_their_error_law() -> None:
    """Independent draws: mean exp(x . y), relative mean squared error (e^s - 1) / R."""
    x, y, s, kernel = pair()
    omega = torch.randn(TRIALS, 16, WIDTH, generator=seeded(4), dtype=torch.float64)
    found = estimates(omega, x, y) / kernel
    assert within(found, 1.0)
    assert within((found - 1).square(), math.expm1(s) / 16)


@pytest.mark.parametrize("draws", [WIDTH, 24])
def test_orthogonal_draws_are_unbiased_and_better(draws) -> None:
    """In one block the error is under that of independent draws by the paper's gap; in more, still
    under it. By three standard errors."""
    x, y, s, kernel = pair()
    found = estimates(orthogonal_draws(TRIALS, draws, WIDTH, "chi", seeded(5)), x, y) / kernel
    assert within(found, 1.0)
    errors = (found - 1).square()
    norms = float(x.square().sum() + y.square().sum())
    gap = 2 * (draws - 1) / (draws * (WIDTH + 2)) * (1 - math.exp(-norms / 2) / kernel) ** 2
    bound = math.expm1(s) / draws - (gap if draws <= WIDTH else 0.0)
    assert float(errors.mean()) + 3 * float(errors.std()) / math.sqrt(TRIALS) < bound


def test_equal_lengths_estimate_the_regularised_kernel() -> None:
    """E = exp(-(|x|^2 + |y|^2) / 2) 0F1(; K / 2; K s / 4), a little less than exp(x . y)."""
    x, y, s, kernel = pair()
    found = estimates(orthogonal_draws(TRIALS, 16, WIDTH, "sqrt", seeded(8)), x, y)
    norms = float(x.square().sum() + y.square().sum())
    expected = math.exp(-norms / 2) * float(hyp0f1(WIDTH / 2, WIDTH * s / 4))
    assert within(found, expected) and expected < kernel
    assert not within(found, kernel)


# The scales.


@directions
@pytest.mark.parametrize("place", [0, 70, 149])
@pytest.mark.parametrize("size", [4.0, 16.0, 40.0])
def test_a_huge_key_stays_exact_in_float32(causal, place, size, build, draw, check_oracle) -> None:
    """Its features are tiny: under one scale for all keys, or for those of a chunk, it would
    vanish, and with it all there is to see for the queries before the next key."""
    layer = build(("performer", {"features": 64}), dtype=torch.float32, qkv_width=64)
    q, k, v = draw(1, 150, width=32, dtype=torch.float32)
    with torch.no_grad():
        k[:, :, place] *= size
    check_oracle(layer, [q, k, v], Context(causal=causal), 1e-4)


def test_a_huge_later_key_moves_nothing_before_it(build, draw) -> None:
    layer = build(("performer", {"features": 64}), dtype=torch.float32, qkv_width=64)
    q, k, v = (x.detach() for x in draw(1, 150, width=32, dtype=torch.float32))
    before, _ = layer.attend(q, k, v, Context(causal=True))
    for place in (1, 63, 64, 100, 149):
        larger = k.clone()
        larger[:, :, place] *= 40.0
        after, _ = layer.attend(q, larger, v, Context(causal=True))
        torch.testing.assert_close(after[:, :, :place], before[:, :, :place], rtol=1e-6, atol=1e-6)
        assert not torch.equal(after[:, :, place:], before[:, :, place:])


@directions
def test_masked_keys_do_not_set_the_scale(causal, build, draw) -> None:
    """Real keys are huge, so their features tiny; those of the masked keys are not."""
    layer = build(("performer", {"features": 64}), dtype=torch.float32, qkv_width=64)
    q, k, v = (x.detach() for x in draw(1, 150, width=32, dtype=torch.float32))
    mask = torch.ones(1, 150, dtype=torch.bool)
    mask[:, [0, 64, 80]] = False
    context = Context(causal=causal, key_mask_BM=mask)
    k *= 40.0
    expected, _ = layer.attend(q, k, v, context)
    assert bool(expected[:, :, 1:].any(-1).all())
    k[:, :, ~mask[0]] = 0.0
    assert torch.equal(layer.attend(q, k, v, context)[0], expected)


@directions
def test_small_weights_are_not_floored(causal, build, draw) -> None:
    """A constant added to each feature would pull weights of keys as small as e^-40 to uniform."""
    layer = build(SOFTMAX, dtype=torch.float32)
    q, k, v = (x.detach() for x in draw(1, 70, dtype=torch.float32))
    k[:, :, 35:] = 0.0
    v[:, :, 35:] = 0.0
    k[:, :, :35] = 15.0
    expected, _ = layer.oracle(q, k, v, Context(causal=causal))
    out, _ = layer.attend(q, k, v, Context(causal=causal))
    assert expected[:, :, -1].abs().max() < 1e-3 * v.abs().max()
    torch.testing.assert_close(out.double(), expected, rtol=1e-3, atol=1e-30)


def test_relu_features_are_never_empty(build, draw) -> None:
    """A query with no positive projection sees all such keys alike, by the floor."""
    layer = build(("performer", {"features": 2, "kernel": "relu"}))
    q, k, v = (x.detach() for x in draw(1, 9))
    layer.omega_HRK.fill_(-1.0)
    out, _ = layer.attend(q.abs(), k.abs(), v, Context())
    torch.testing.assert_close(out, v.mean(2, keepdim=True).expand_as(out))
