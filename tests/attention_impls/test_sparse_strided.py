"""What is particular to the strided pattern: its pairs, its reach in two hops, its parts."""

from __future__ import annotations

import msgspec
import pytest
import torch

from attention_impls.contract import Context
from attention_impls.pattern import sparse_strided
from attention_impls.pattern.sparse_strided import SparseStridedConfig
from lra.core.errors import UnsupportedError

STRIDE_3 = """
    xxxx..x
    xxxxx..
    xxxxxx.
    xxxxxxx
    .xxxxxx
    ..xxxxx
    x..xxxx
"""


def written(pattern: str) -> torch.Tensor:
    return torch.tensor([[sign == "x" for sign in line] for line in pattern.split()])


def test_the_pattern_against_a_mask_by_hand(build, draw) -> None:
    layer = build(("sparse_strided", {"stride": 3}))
    assert torch.equal(layer.support(7, 7, Context()), written(STRIDE_3))
    assert torch.equal(layer.support(7, 7, Context(causal=True)), written(STRIDE_3).tril())
    q, k, v = draw(1, 7)
    for causal in (False, True):
        pattern = written(STRIDE_3).tril() if causal else written(STRIDE_3)
        masked = (q @ k.mT / 8**0.5).masked_fill(~pattern, -torch.inf).softmax(-1) @ v
        for out in (
            layer.attend(q, k, v, Context(causal))[0],
            layer.in_parts(q, k, v, None, Context(causal)),
        ):
            torch.testing.assert_close(out, masked)


def test_two_hops_reach_every_earlier_position_and_one_does_not(build) -> None:
    support = build(("sparse_strided", {"stride": 4})).support(30, 30, Context(causal=True))
    once = support.double()
    assert torch.equal(once @ once > 0, torch.ones(30, 30).tril() > 0)
    assert int(support.sum()) < 30 * 31 // 2


def test_another_sequence_is_refused(build) -> None:
    """Its positions are not the queries', so that no pattern of distances joins the two."""
    x, source = torch.zeros(1, 9, 12).double(), torch.zeros(1, 7, 12).double()
    with pytest.raises(UnsupportedError, match="sparse_strided"):
        build(("sparse_strided", {"stride": 3}))(x, Context(), source_BMD=source)


@pytest.mark.parametrize("autograd", [False, True])
@pytest.mark.parametrize(("tile", "chunk"), [(60, 2), (10**6, 256)])
def test_the_parts_equal_the_oracle(
    tile, chunk, autograd, build, draw, some_padding, monkeypatch
) -> None:
    """With the grid's rows in chunks, one block a tile, and by weights written out."""
    monkeypatch.setattr("attention_impls.pattern._parts.TILE", tile)
    monkeypatch.setattr("attention_impls.pattern._parts.TILE_COST", 0)
    monkeypatch.setattr(sparse_strided, "CHUNK", chunk)
    monkeypatch.setattr(sparse_strided, "needs_autograd", lambda q, position: autograd)
    layer = build(("sparse_strided", {"stride": 4}))
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


def test_dropout_has_the_gradient_of_its_own_draws(build, draw, small_tiles) -> None:
    layer = build(("sparse_strided", {"stride": 3}), dropout=0.3).train()

    def run(*qkv: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(0)
        return layer.in_parts(*qkv, None, Context())

    assert torch.autograd.gradcheck(run, draw(1, 9, width=3))


def test_the_papers_stride_is_the_default() -> None:
    assert SparseStridedConfig() == SparseStridedConfig(stride=128)
    with pytest.raises(msgspec.ValidationError, match=r"\$.stride"):
        msgspec.convert({"stride": 0}, SparseStridedConfig)
