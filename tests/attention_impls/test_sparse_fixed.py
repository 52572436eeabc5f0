"""The fixed pattern's own: the arena's form, and summaries of everything."""

from __future__ import annotations

import pytest
import torch

from attention_impls.contract import Context

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
