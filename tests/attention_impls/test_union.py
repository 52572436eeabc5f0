"""The Sparse Transformer's two patterns: their parts, and a step's keys, known from sizes alone."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from attention_impls.contract import Context
from attention_impls.pattern import sparse_fixed, sparse_strided

PATTERNS = [
    ("sparse_fixed", {"stride": 5, "summary": 2}),
    ("sparse_fixed", {"stride": 5, "summary": 2, "parity": "lra2021"}),
    ("sparse_fixed", {"stride": 3, "summary": 9}),
    ("sparse_strided", {"stride": 4}),
    ("sparse_strided", {"stride": 1}),
]


@pytest.mark.parametrize("case", PATTERNS, ids=str)
def test_the_last_row_of_the_pattern_without_the_others(case, build) -> None:
    layer = build(case)
    for m in range(1, 24):
        row = layer.support(1, m, Context(causal=True))[0]
        assert torch.equal(layer.read_last(m, row.device), row.nonzero().flatten())


@pytest.mark.parametrize("case", PATTERNS, ids=str)
def test_a_decode_step_asks_for_no_value(case, build) -> None:
    """Tensors without values raise when asked for one, as a GPU waits."""
    layer = build(case)
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        k, v, mask = torch.ones(2, 2, 23, 8), torch.ones(2, 2, 23, 8), torch.ones(2, 23) > 0
        for key_mask in (None, mask):
            out, _ = layer.attend(k[:, :, :1], k, v, Context(True, key_mask_BM=key_mask))
            assert out.shape == (2, 2, 1, 8)


PARTS = [
    ("sparse_fixed", {"stride": 4, "summary": 2}),
    ("sparse_fixed", {"stride": 4, "summary": 2, "parity": "lra2021"}),
    ("sparse_strided", {"stride": 4}),
]


@pytest.mark.parametrize("case", PARTS, ids=str)
@pytest.mark.parametrize("autograd", [False, True])
@pytest.mark.parametrize(("tile", "chunk"), [(60, 2), (10**6, 256)])
def test_the_parts_equal_the_oracle(
    tile, chunk, autograd, case, build, draw, some_padding, check_oracle, monkeypatch
) -> None:
    """By one block a tile and several, by the grid's rows in chunks, and by weights written out."""
    monkeypatch.setattr("attention_impls.pattern._parts.TILE", tile)
    monkeypatch.setattr("attention_impls.pattern._parts.TILE_COST", 0)
    monkeypatch.setattr(sparse_strided, "CHUNK", chunk)
    for module in (sparse_fixed, sparse_strided):
        monkeypatch.setattr(module, "needs_autograd", lambda q, position: autograd)
    layer = build(case)
    monkeypatch.setattr(
        layer, "attend", lambda q, k, v, c: (layer.in_parts(q, k, v, c.key_mask_BM, c), None)
    )
    for causal, n, m in ((False, 23, 23), (True, 24, 24), (True, 7, 22)):
        for mask in (None, some_padding(2, m)):
            check_oracle(layer, draw(2, n, m), Context(causal, key_mask_BM=mask))
