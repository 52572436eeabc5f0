"""The materialised reference's own: the type of its softmax, and its cache."""

from __future__ import annotations

import pytest
import torch

from attention_impls.contract import Context
from lra.core.errors import UnsupportedError


@pytest.mark.parametrize("causal", [False, True])
def test_weights_of_bfloat16_sum_to_one(causal, build, draw) -> None:
    """The softmax runs in float32: where all values are the same, no query or key is moved."""
    layer = build(("full", {}), dtype=torch.bfloat16)
    q, k, v = draw(2, 37, dtype=torch.bfloat16)
    out, _ = layer.attend(q, k, torch.ones_like(v), Context(causal))
    for gradient in torch.autograd.grad(out.sum(), (q, k)):
        assert gradient.abs().max() < 1e-5


def test_a_full_cache_refuses_more_in_one_line(build) -> None:
    layer = build(("full", {}))
    x = torch.randn(2, 5, 12, dtype=torch.float64)
    state = layer.init_state(2, length=7, device=x.device, dtype=x.dtype)
    with torch.no_grad():
        _, state = layer(x, Context(causal=True), state=state)
        with pytest.raises(UnsupportedError, match=r"\b7\b.*\b10\b"):
            layer(x, Context(causal=True), state=state)


@torch.no_grad()
def test_the_cache_is_written_in_place(build) -> None:
    layer = build(("full", {}))
    x = torch.randn(2, 5, 12, dtype=torch.float64)
    first = layer.init_state(2, length=7, device=x.device, dtype=x.dtype)
    assert first.k_BHTK.shape == (2, 2, 7, 8)
    _, second = layer(x, Context(causal=True), state=first)
    assert second.k_BHTK.data_ptr() == first.k_BHTK.data_ptr()
    assert first.seen_B.tolist() == [0, 0] and second.seen_B.tolist() == [5, 5]
