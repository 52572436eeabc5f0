"""What is particular to the fixed pattern: its pairs, its reach in two hops, its parts."""

from __future__ import annotations

import msgspec
import pytest
import torch

from attention_impls.contract import Context
from attention_impls.pattern import sparse_fixed
from attention_impls.pattern.sparse_fixed import SparseFixedConfig
from lra.core.errors import UnsupportedError

BLOCKS_OF_3 = """
    xxx..x.
    xxx..x.
    xxx..x.
    ..xxxx.
    ..xxxx.
    ..xxxx.
    ..x..xx
"""
"""Blocks of three, of which the last column is the summary."""

ARENA = """
    xxxxxxxx
    xx......
    xxx.....
    xxxx....
    xx.xx...
    xx.xxx..
    xx.xxxx.
    xx.xx.xx
"""
"""The arena's: a class token, then blocks of three whose first and last column later rows read."""


def written(pattern: str) -> torch.Tensor:
    return torch.tensor([[sign == "x" for sign in line] for line in pattern.split()])


def test_the_pattern_against_a_mask_by_hand(build, draw) -> None:
    layer = build(("sparse_fixed", {"stride": 3, "summary": 1}))
    assert torch.equal(layer.support(7, 7, Context()), written(BLOCKS_OF_3))
    assert torch.equal(layer.support(7, 7, Context(causal=True)), written(BLOCKS_OF_3).tril())
    q, k, v = draw(1, 7)
    for causal in (False, True):
        pattern = written(BLOCKS_OF_3).tril() if causal else written(BLOCKS_OF_3)
        masked = (q @ k.mT / 8**0.5).masked_fill(~pattern, -torch.inf).softmax(-1) @ v
        for out in (
            layer.attend(q, k, v, Context(causal))[0],
            layer.in_parts(q, k, v, None, Context(causal)),
        ):
            torch.testing.assert_close(out, masked)


def test_the_arenas_mask_by_hand(build, draw, positions) -> None:
    """Position 0 is open both ways; no other row reads a later key, though nobody asked for that.
    Causal, there is no class token: the same blocks, counted from 0."""
    layer = build(("sparse_fixed", {"stride": 3, "summary": 1, "parity": "lra2021"}))
    assert torch.equal(layer.support(8, 8, Context()), written(ARENA))
    assert torch.equal(layer.support(7, 7, Context(causal=True)), written(ARENA)[1:, 1:])
    qkv = draw(2, 8)
    for position in positions(layer, "bias"):
        bias = 0 if position is None else position.logits(torch.arange(8), torch.arange(8))
        logits = qkv[0] @ qkv[1].mT / 8**0.5 + bias
        wanted = logits.masked_fill(~written(ARENA), -torch.inf).softmax(-1) @ qkv[2]
        for out in (
            layer.attend(*qkv, Context(position=position))[0],
            layer.in_parts(*qkv, None, Context(position=position)),
        ):
            torch.testing.assert_close(out, wanted)


@pytest.mark.parametrize(("stride", "summary"), [(4, 4), (4, 9), (1, 1), (30, 1)])
def test_a_summary_of_everything_is_full_attention(stride: int, summary: int, build) -> None:
    layer = build(("sparse_fixed", {"stride": stride, "summary": summary}))
    assert bool(layer.support(30, 30, Context()).all())
    assert bool(layer.support(30, 30, Context(causal=True)).sum() == 30 * 31 // 2)


def test_two_hops_reach_every_earlier_position(build) -> None:
    layer = build(("sparse_fixed", {"stride": 4, "summary": 2}))
    once = layer.support(30, 30, Context(causal=True)).double()
    assert torch.equal(once @ once > 0, torch.ones(30, 30).tril() > 0)


def test_another_sequence_is_refused(build) -> None:
    """Its positions are not the queries', so that no pattern of distances joins the two."""
    x, source = torch.zeros(1, 9, 12).double(), torch.zeros(1, 7, 12).double()
    with pytest.raises(UnsupportedError, match="sparse_fixed"):
        build(("sparse_fixed", {"stride": 3}))(x, Context(), source_BMD=source)


@pytest.mark.parametrize("parity", ["none", "lra2021"])
@pytest.mark.parametrize("autograd", [False, True])
@pytest.mark.parametrize("tile", [60, 10**6])
def test_the_parts_equal_the_oracle(
    tile, autograd, parity, build, draw, some_padding, monkeypatch
) -> None:
    """One block a tile and several, where causal tiles read no further than they may."""
    monkeypatch.setattr("attention_impls.pattern._parts.TILE", tile)
    monkeypatch.setattr("attention_impls.pattern._parts.TILE_COST", 0)
    monkeypatch.setattr(sparse_fixed, "needs_autograd", lambda q, position: autograd)
    layer = build(("sparse_fixed", {"stride": 4, "summary": 2, "parity": parity}))
    for causal, n, m in ((False, 23, 23), (True, 24, 24), (True, 7, 22)):
        for mask in (None, some_padding(2, m)):
            q, k, v = draw(2, n, m)
            context = Context(causal, key_mask_BM=mask)
            expected, _ = layer.oracle(q, k, v, context)
            found = layer.in_parts(q, k, v, mask, context)
            torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
            upstream = torch.randn_like(expected)
            torch.testing.assert_close(
                torch.autograd.grad(found, (q, k, v), upstream),
                torch.autograd.grad(expected, (q, k, v), upstream),
                rtol=1e-9,
                atol=1e-9,
            )


def test_early_rows_without_a_summary_still_see_their_block(build, draw) -> None:
    """A head of the summary pattern alone would have empty rows here, and leak the future."""
    q, k, v = draw(1, 8)
    layer = build(("sparse_fixed", {"stride": 4, "summary": 1}))
    out = layer.in_parts(q, k, v, None, Context(causal=True))
    torch.testing.assert_close(out[:, :, 0], v[:, :, 0])


def test_the_papers_blocks_are_the_default() -> None:
    assert SparseFixedConfig() == SparseFixedConfig(stride=128, summary=32, parity="none")
    with pytest.raises(msgspec.ValidationError, match=r"\$.summary"):
        msgspec.convert({"summary": 0}, SparseFixedConfig)
