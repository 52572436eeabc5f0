"""Laws of every registered mechanism: equality with its oracle, its support, its numerics.

A new file in the room is tested here without a line of its own. The dense float64 oracle is the
paper's formula; small blocks make short inputs cross the borders of tiles.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from attention_impls.contract import Context, Dims, Position, merge_heads, zero_padding
from lra.core.cards import PositionCard
from lra.core.catalogue import find, load, names

pytestmark = pytest.mark.usefixtures("small_blocks")

LENGTHS = (1, 2, 7, 37)


@pytest.mark.parametrize("name", names("mechanism"))
def test_every_file_loads(name: str) -> None:
    mechanism = load(find("mechanism", name))
    assert mechanism.Config() == mechanism.Config()


@pytest.mark.parametrize("length", LENGTHS)
def test_equals_its_oracle(
    any_case, length, build, draw, check_oracle, directions, positions, some_padding
) -> None:
    layer = build(any_case)
    masks: list[Tensor | None] = [None]
    if layer.card.capabilities.padding != "none":
        masks.append(some_padding(3, length))
    for causal in directions(layer):
        for mask in masks:
            for position in positions(layer, "bias"):
                context = Context(causal=causal, key_mask_BM=mask, position=position)
                check_oracle(layer, draw(3, length), context)


@pytest.mark.parametrize(("n", "m"), [(5, 9), (9, 5), (1, 37), (37, 1), (30, 41)])
def test_cross_equals_its_oracle(
    cross_case, n, m, build, draw, check_oracle, directions, positions, some_padding
) -> None:
    layer = build(cross_case)
    for causal in directions(layer):
        if causal and n > m:
            continue
        for mask in (None, some_padding(2, m)):
            for position in positions(layer, "bias"):
                context = Context(causal=causal, key_mask_BM=mask, position=position)
                check_oracle(layer, draw(2, n, m), context)


@pytest.mark.parametrize("length", [1, 11, 37])
def test_whole_layer_equals_projections_around_the_oracle(
    any_case, length, build, directions, positions, some_padding
) -> None:
    """Also holds a `mix` that skips projections to the same result and gradients."""
    layer = build(any_case)
    can = layer.card.capabilities
    x = torch.randn(2, length, 12, dtype=torch.float64, requires_grad=True)
    leaves = [x, *layer.parameters()]
    mask = None if can.padding == "none" else some_padding(2, length)
    for causal in directions(layer):
        for position in positions(layer, "bias", "rotary"):
            context = Context(causal, query_mask_BN=mask, key_mask_BM=mask, position=position)
            y = layer(x, context).y_BND
            qkv = layer.project(zero_padding(x, mask), context, None, None)
            expected = layer.output(merge_heads(layer.oracle(*qkv, context)[0]))
            expected = zero_padding(expected, mask)
            torch.testing.assert_close(y, expected, rtol=1e-9, atol=1e-9)
            upstream = torch.randn_like(y)
            found = torch.autograd.grad(
                y, leaves, upstream, materialize_grads=True, allow_unused=True
            )
            wanted = torch.autograd.grad(
                expected, leaves, upstream, materialize_grads=True, allow_unused=True
            )
            torch.testing.assert_close(found, wanted, rtol=1e-8, atol=1e-8)


def test_cross_layer_equals_projections_around_the_oracle(cross_case, build, some_padding) -> None:
    layer = build(cross_case)
    x = torch.randn(2, 7, 12, dtype=torch.float64)
    source = torch.randn(2, 13, 12, dtype=torch.float64)
    query_mask, key_mask = some_padding(2, 7), some_padding(2, 13)
    context = Context(query_mask_BN=query_mask, key_mask_BM=key_mask)
    y = layer(x, context, source_BMD=source).y_BND
    x, source = zero_padding(x, query_mask), zero_padding(source, key_mask)
    qkv = layer.project(x, context, source, None)
    expected = layer.output(merge_heads(layer.oracle(*qkv, context)[0]))
    torch.testing.assert_close(y, zero_padding(expected, query_mask), rtol=1e-9, atol=1e-9)


def test_nothing_outside_the_support_is_felt(any_case, build, draw, directions) -> None:
    """Neither the output's gradients nor the oracle's weights reach a pair outside `support`."""
    layer = build(any_case)
    length = 37
    q, k, v = draw(1, length)
    for causal in directions(layer):
        context = Context(causal=causal)
        support = layer.support(length, length, context)
        assert support.shape == (length, length) and support.device.type == "cpu"
        assert bool(support.diagonal().all())
        out, _ = layer.attend(q, k, v, context)
        for i in range(0, length, 5):
            row = out[:, :, i].square().sum()
            for gradient in torch.autograd.grad(
                row, (k, v), retain_graph=True, materialize_grads=True, allow_unused=True
            ):
                felt = gradient.abs().amax(dim=(0, 1, 3)) > 0
                assert not bool((felt & ~support[i]).any())
        weights = layer.oracle(q, k, v, context)[1]
        assert not bool((weights.abs().amax(dim=(0, 1)) > 0)[~support].any())


class LearnedBias(Position):
    """A trained bias per head and distance, for the law below."""

    card = PositionCard(title="", paper="", year=2026, acts_on="logits")

    def __init__(self, dims: Dims) -> None:
        super().__init__(dims)
        self.table = nn.Parameter(torch.randn(dims.heads, 2 * dims.max_length))

    def logits(self, rows_N: Tensor, columns_M: Tensor) -> Tensor:
        return self.table[:, self.dims.max_length + rows_N.unsqueeze(-1) - columns_M]


def test_a_trained_bias_gets_the_oracles_gradient(
    bias_case, build, draw, directions, some_padding
) -> None:
    layer = build(bias_case)
    position = LearnedBias(layer.dims).double()
    qkv = draw(2, 37)
    for causal in directions(layer):
        context = Context(causal=causal, key_mask_BM=some_padding(2, 37), position=position)
        upstream = torch.randn(2, 2, 37, 8, dtype=torch.float64)
        found, wanted = (
            torch.autograd.grad(
                out, position.table, upstream, allow_unused=True, materialize_grads=True
            )
            if out.requires_grad
            else None
            for out in (layer.attend(*qkv, context)[0], layer.oracle(*qkv, context)[0])
        )
        torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)


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


def test_bfloat16_stays_close_to_float32(any_case, build, directions, positions) -> None:
    """Under autocast, relative to the norm: the output within 2e-2 of float32's, the gradient of
    the input, which is rounded on two ways, within 5e-2."""
    layer = build(any_case, dtype=torch.float32, width=64, qkv_width=64)
    x = torch.randn(2, 37, 64, requires_grad=True)
    for causal in directions(layer):
        for position in positions(layer, "bias", "rotary"):
            context = Context(causal=causal, position=position)
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


@pytest.mark.gpu
def test_cuda_equals_the_oracle(
    any_case, build, draw, check_oracle, directions, some_padding
) -> None:
    layer = build(any_case, dtype=torch.float32).cuda()
    qkv = [x.detach().cuda().requires_grad_() for x in draw(2, 37, dtype=torch.float32)]
    for causal in directions(layer):
        mask = some_padding(2, 37).cuda()
        check_oracle(layer, qkv, Context(causal=causal), 1e-3)
        if layer.card.capabilities.padding != "none":
            check_oracle(layer, qkv, Context(causal=causal, key_mask_BM=mask), 1e-3)
