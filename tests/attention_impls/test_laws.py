"""Laws of every registered mechanism: equality with its oracle, alone and as a layer; its support.

A new file in the room is tested here without a line of its own. The dense float64 oracle is the
paper's formula; small blocks make short inputs cross the borders of tiles.
"""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import Tensor, nn

from attention_impls._oracle import softmax_oracle
from attention_impls.contract import (
    Context,
    Dims,
    Layer,
    MechanismConfig,
    Position,
    merge_heads,
    zero_padding,
)
from lra.core.cards import AttentionCard, PositionCard
from lra.core.catalogue import find, load, names

pytestmark = pytest.mark.usefixtures("small_tiles")

LENGTHS = (1, 2, 7, 37)


@pytest.mark.parametrize("name", names("mechanism"))
def test_every_file_loads(name: str) -> None:
    mechanism = load(find("mechanism", name))
    assert issubclass(mechanism, Layer) and isinstance(mechanism.card, AttentionCard)
    assert isinstance(mechanism.Config(), MechanismConfig)


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
        for mask in (None, some_padding(2, m)):
            for position in positions(layer, "bias"):
                context = Context(causal=causal, key_mask_BM=mask, position=position)
                check_oracle(layer, draw(2, n, m), context)


@pytest.mark.parametrize("length", [1, 11, 37])
def test_whole_layer_equals_projections_around_the_oracle(
    any_case, length, build, directions, positions, some_padding
) -> None:
    """Also holds a `mix` that skips projections to the same result and gradients.

    The padded queries are the masked keys, none, or others.
    """
    layer = build(any_case)
    x = torch.randn(2, length, 12, dtype=torch.float64, requires_grad=True)
    leaves = [x, *layer.parameters()]
    mask = some_padding(2, length)
    masks = [(mask, mask), (None, mask), (mask.flip(0), mask)]
    if layer.card.capabilities.padding == "none":
        masks = [(None, None)]
    for causal, (queries, keys) in product(directions(layer), masks):
        for position in positions(layer, "bias", "rotary"):
            context = Context(causal, query_mask_BN=queries, key_mask_BM=keys, position=position)
            y = layer(x, context).y_BND
            qkv = layer.project(zero_padding(x, queries), context, None, None)
            expected = layer.output(merge_heads(layer.oracle(*qkv, context)[0]))
            expected = zero_padding(expected, queries)
            torch.testing.assert_close(y, expected, rtol=1e-9, atol=1e-9)
            upstream = torch.randn_like(y)
            found = torch.autograd.grad(
                y, leaves, upstream, materialize_grads=True, allow_unused=True
            )
            wanted = torch.autograd.grad(
                expected, leaves, upstream, materialize_grads=True, allow_unused=True
            )
            torch.testing.assert_close(found, wanted, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(("n", "m"), [(7, 13), (13, 7)])
def test_cross_layer_equals_projections_around_the_oracle(
    cross_case, n, m, build, directions, positions, some_padding
) -> None:
    layer = build(cross_case)
    x = torch.randn(2, n, 12, dtype=torch.float64)
    source = torch.randn(2, m, 12, dtype=torch.float64)
    queries, keys = some_padding(2, n), some_padding(2, m)
    x, source = zero_padding(x, queries), zero_padding(source, keys)
    for causal, position in product(directions(layer), positions(layer, "bias", "rotary")):
        context = Context(causal, query_mask_BN=queries, key_mask_BM=keys, position=position)
        y = layer(x, context, source_BMD=source).y_BND
        qkv = layer.project(x, context, source, None)
        expected = layer.output(merge_heads(layer.oracle(*qkv, context)[0]))
        torch.testing.assert_close(y, zero_padding(expected, queries), rtol=1e-9, atol=1e-9)


def test_a_part_of_the_source_sees_it_as_the_whole_does(
    cross_case, build, directions, positions
) -> None:
    """Its last positions as causal queries, its first ones otherwise: each stands at its place."""
    layer = build(cross_case)
    source = torch.randn(2, 13, 12, dtype=torch.float64)
    for causal, position in product(directions(layer), positions(layer, "bias", "rotary")):
        part = slice(6, 13) if causal else slice(0, 7)
        context = Context(causal, position=position)
        y = layer(source[:, part], context, source_BMD=source).y_BND
        expected = layer(source, context).y_BND[:, part]
        torch.testing.assert_close(y, expected, rtol=1e-9, atol=1e-9)


def test_an_exact_card_means_softmax_attention(
    exact_case, build, draw, directions, positions, some_padding
) -> None:
    """Over all permitted pairs, whatever the mechanism calls its own oracle."""
    layer = build(exact_case)
    assert not layer.card.approximates_softmax
    qkv = draw(2, 37)
    for causal, position in product(directions(layer), positions(layer, "bias")):
        context = Context(causal, key_mask_BM=some_padding(2, 37), position=position)
        expected, _ = softmax_oracle(*qkv, context)
        torch.testing.assert_close(layer.attend(*qkv, context)[0], expected)


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
