"""What the Sparse Transformer's two patterns share: a step's keys, known from sizes alone."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from attention_impls.contract import Context

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
