"""Laws of numbers: strides, sizes down to none, extreme logits, bfloat16, seeds and state dicts."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from attention_impls.contract import Context

pytestmark = pytest.mark.usefixtures("small_tiles")


def test_strides_of_the_inputs_do_not_matter(any_case, build, draw, directions) -> None:
    layer = build(any_case)
    qkv = [x.detach() for x in draw(2, 37)]
    strided = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in qkv]
    gapped = [torch.stack([x, x], dim=-1)[..., 0] for x in qkv]
    for causal in directions(layer):
        context = Context(causal=causal)
        expected, _ = layer.attend(*qkv, context)
        for other in (strided, gapped):
            assert not any(x.is_contiguous() for x in other)
            torch.testing.assert_close(layer.attend(*other, context)[0], expected)


@pytest.mark.parametrize("size", [1e-8, 1e4])
def test_extreme_logits_stay_finite(any_case, size, build, draw, directions) -> None:
    layer = build(any_case, dtype=torch.float32)
    q, k, v = (x.detach() for x in draw(2, 37, dtype=torch.float32))
    q, k = (x.mul(size**0.5).requires_grad_() for x in (q, k))
    v.requires_grad_()
    for causal in directions(layer):
        out, _ = layer.attend(q, k, v, Context(causal=causal))
        gradients = torch.autograd.grad(
            out.square().sum(), (q, k, v), allow_unused=True, materialize_grads=True
        )
        assert all(bool(x.isfinite().all()) for x in (out, *gradients))


def test_autocast_stays_close_to_float32(
    any_case, build, directions, positions, some_padding
) -> None:
    """Relative to the norm: the output within 2e-2 of float32's, the gradient of the input, which
    is rounded on two ways, within 5e-2."""
    layer = build(any_case, dtype=torch.float32, width=64, qkv_width=64)
    x = torch.randn(2, 37, 64, requires_grad=True)
    masks = [None] if layer.card.capabilities.padding == "none" else [None, some_padding(2, 37)]
    for causal, mask in product(directions(layer), masks):
        for position in positions(layer, "bias", "rotary"):
            context = Context(causal, query_mask_BN=mask, position=position)
            exact = layer(x, context).y_BND
            with torch.autocast("cpu", dtype=torch.bfloat16):
                rounded = layer(x, context).y_BND
            assert rounded.dtype == torch.bfloat16
            upstream = torch.randn_like(exact)
            gradients = [
                torch.autograd.grad(y, x, upstream.to(y.dtype))[0] for y in (exact, rounded)
            ]
            assert (rounded.float() - exact).norm() <= 2e-2 * exact.norm()
            assert (gradients[1] - gradients[0]).norm() <= 5e-2 * gradients[0].norm()


def test_a_bfloat16_layer_stays_close_to_float32(
    any_case, build, directions, positions, some_padding
) -> None:
    """From the same rounded parameters and inputs: the output within 1e-2, the gradient within
    1.5e-2, which leaves room for rounded results and little for rounded sums."""
    rounded, precise = (
        build(any_case, dtype=dtype, width=64, qkv_width=64)
        for dtype in (torch.bfloat16, torch.float32)
    )
    precise.load_state_dict(rounded.state_dict())
    x = torch.randn(2, 37, 64, generator=torch.Generator().manual_seed(0)).bfloat16()
    masks = [None] if rounded.card.capabilities.padding == "none" else [None, some_padding(2, 37)]
    for causal, mask in product(directions(rounded), masks):
        for position in positions(rounded, "bias", "rotary"):
            context = Context(causal, query_mask_BN=mask, position=position)
            results = []
            for layer in (precise, rounded):
                leaf = x.to(layer.query.weight.dtype).requires_grad_()
                y = layer(leaf, context).y_BND
                results.append((y, torch.autograd.grad(y, leaf, x.to(y.dtype))[0]))
            for wanted, found, limit in zip(*results, (1e-2, 1.5e-2), strict=True):
                assert found.dtype == torch.bfloat16
                assert (found.float() - wanted).norm() <= limit * wanted.norm()


@pytest.mark.parametrize(("batch", "length"), [(0, 7), (2, 0), (0, 0)])
def test_nothing_in_gives_nothing_out(
    any_case, batch, length, build, directions, positions
) -> None:
    """An empty batch and an empty input pass, forward and backward, and train nothing."""
    layer = build(any_case)
    x = torch.randn(batch, length, 12, dtype=torch.float64, requires_grad=True)
    masks = [None]
    if layer.card.capabilities.padding != "none":
        masks.append(torch.ones(batch, length, dtype=torch.bool))
    for causal, mask in product(directions(layer), masks):
        for position in positions(layer, "bias", "rotary"):
            y = layer(x, Context(causal, query_mask_BN=mask, position=position)).y_BND
            assert y.shape == x.shape
            y.sum().backward()
    assert not any(bool(p.grad.any()) for p in layer.parameters() if p.grad is not None)


@pytest.mark.parametrize("n", [0, 3])
def test_an_empty_source_gives_zero(cross_case, n, build, draw, directions) -> None:
    layer = build(cross_case)
    qkv = draw(2, n, 0)
    for causal in directions(layer):
        out, _ = layer.attend(*qkv, Context(causal=causal))
        assert out.shape == (2, 2, n, 8) and not bool(out.any())
        torch.autograd.grad(out.sum(), qkv, allow_unused=True)


def test_eval_is_deterministic_and_ignores_dropout(any_case, build, directions) -> None:
    layer, dropping = build(any_case), build(any_case, dropout=0.5)
    x = torch.randn(2, 37, 12, dtype=torch.float64)
    for causal in directions(layer):
        context = Context(causal=causal)
        first = layer(x, context).y_BND
        assert torch.equal(first, layer(x, context).y_BND)
        assert torch.equal(first, dropping(x, context).y_BND)


def test_state_dict_carries_all_draws(any_case, build, directions) -> None:
    layer, other = build(any_case, seed=1), build(any_case, seed=2)
    x = torch.randn(2, 37, 12, dtype=torch.float64)
    context = Context(causal=directions(layer)[0])
    assert not torch.equal(layer(x, context).y_BND, other(x, context).y_BND)
    other.load_state_dict(layer.state_dict())
    assert torch.equal(layer(x, context).y_BND, other(x, context).y_BND)
    assert torch.equal(build(any_case, seed=1)(x, context).y_BND, layer(x, context).y_BND)
