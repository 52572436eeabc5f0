"""Chunked attention's own: no chunk is felt, not even by dropout, none is kept."""

from __future__ import annotations

import math
from contextlib import nullcontext

import pytest
import torch
from torch import Tensor

from attention_impls.contract import Context
from attention_impls.dense import _streamed
from lra.core.catalogue import find
from lra.core.loading import load

CHUNKS = [(1, 1), (3, 4), (64, 64)]


@pytest.mark.parametrize(("queries", "keys"), CHUNKS)
@pytest.mark.parametrize("tile", [1, 100, 2**18])
@pytest.mark.parametrize("causal", [False, True])
def test_the_size_of_chunks_changes_nothing(
    queries, keys, tile, causal, build, draw, check_oracle, some_padding, positions, monkeypatch
) -> None:
    """Chunks that do not divide, of one position, of more than there are; heads apart, together."""
    monkeypatch.setattr(_streamed, "TILE", tile)
    layer = build(("chunked", {"query_chunk": queries, "key_chunk": keys}))
    for position in positions(layer, "bias"):
        for n, m in ((11, 11), (5, 11), (11, 5)):
            mask = some_padding(3, m)
            check_oracle(layer, draw(3, n, m), Context(causal, None, mask, position))


@pytest.mark.parametrize(("queries", "keys"), CHUNKS)
@pytest.mark.parametrize("tile", [1, 100, 2**18])
def test_each_chunk_has_its_part_of_masked_pairs_and_given_places(
    queries, keys, tile, build, draw, check_oracle, monkeypatch
) -> None:
    """Its examples, heads, queries and keys are its own; a trained bias sums over all."""
    monkeypatch.setattr(_streamed, "TILE", tile)
    layer = build(("chunked", {"query_chunk": queries, "key_chunk": keys}))
    position = load(find("position", "relative_buckets"))(layer.dims)
    for n, m in ((11, 11), (5, 11), (11, 5)):
        places = [torch.stack([torch.randperm(length) for _ in range(3)]) for length in (n, m)]
        context = Context(
            mask_BNM=torch.rand(3, n, m) > 0.3,
            position=position,
            positions_BN=places[0],
            source_positions_BM=places[1],
        )
        qkv = draw(3, n, m)
        check_oracle(layer, qkv, context)
        found, wanted = (
            torch.autograd.grad(way(*qkv, context)[0].square().sum(), position.table)[0]
            for way in (layer.attend, layer.oracle)
        )
        assert found.any()
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_a_first_chunk_of_padding_alone_is_no_nan(causal, build, draw, check_oracle) -> None:
    layer = build(("chunked", {"query_chunk": 2, "key_chunk": 2}))
    mask = torch.tensor([[False] * 4 + [True] * 3, [False] * 7])
    with torch.autograd.set_detect_anomaly(True, check_nan=True):
        check_oracle(layer, draw(2, 7), Context(causal=causal, key_mask_BM=mask))


def test_dropout_is_the_same_in_both_passes(build, draw) -> None:
    """The output is linear in the values: its gradient must be the weights that were used."""
    layer = build(("chunked", {"query_chunk": 2, "key_chunk": 3}), dropout=0.5).train()
    q, k, v = draw(2, 7, width=7)
    eye = torch.eye(7, dtype=torch.float64).expand(2, 2, 7, 7).clone().requires_grad_()
    torch.manual_seed(3)
    weights, _ = layer.attend(q, k, eye, Context())
    dropped = (weights == 0.0).double().mean()
    assert 0.2 < float(dropped) < 0.8
    torch.manual_seed(3)
    out, _ = layer.attend(q, k, v, Context())
    torch.testing.assert_close(out, weights @ v)
    upstream = torch.randn_like(out)
    found = torch.autograd.grad(out, (q, k, v), upstream)
    kept = (weights != 0.0).double() * 2

    def plain(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return ((q @ k.mT / math.sqrt(7)).softmax(-1) * kept) @ v

    wanted = torch.autograd.grad(plain(q, k, v), (q, k, v), upstream)
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_nothing_of_all_pairs_exists_even_with_a_bias_masks_and_dropout(
    causal, masked, build, draw, some_padding, watched
) -> None:
    """A mask of pairs is an input, here of one element; none is made of it."""
    layer = build(("chunked", {"query_chunk": 8, "key_chunk": 8}), dropout=0.5).train()
    position = load(find("position", "alibi"))(layer.dims)
    qkv = draw(1, 256)
    pairs = torch.tensor(True).expand(1, 256, 256) if masked else None
    context = Context(causal, None, some_padding(1, 256), position, mask_BNM=pairs)
    with watched() as seen:
        out, _ = layer.attend(*qkv, context)
        out.sum().backward()
    assert seen.elements <= 256 * 2 * 8


def test_autocast_does_not_reach_inside(build, draw) -> None:
    layer = build(("chunked", {}))
    qkv = draw(2, 9, dtype=torch.float32)
    wanted, _ = layer.attend(*qkv, Context())
    with torch.autocast("cpu", torch.bfloat16):
        found, _ = layer.attend(*qkv, Context())
        gradient = torch.autograd.grad(found.sum(), qkv[2])[0]
    torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(gradient, torch.autograd.grad(wanted.sum(), qkv[2])[0])


def test_on_a_gpu_many_heads_are_worked_on_together(build, monkeypatch) -> None:
    """Each group is a round of launches: of 64 heads, and all keys, one for each chunk of queries;
    of a long input one too, though it is of one example."""
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())
    layer = build(("chunked", {})).to("meta")
    seen = []
    inner = _streamed._Tiles.logits
    monkeypatch.setattr(
        _streamed._Tiles, "logits", lambda *asked: seen.append(asked[1:4]) or inner(*asked)
    )
    with torch.no_grad():
        layer.attend(*[torch.empty(8, 8, 1024, 64, device="meta")] * 3, Context())
        assert len(seen) == 4
        layer.attend(*[torch.empty(1, 4, 2**16, 64, device="meta")] * 3, Context())
    assert len(seen) == 4 + 2**16 // 256
