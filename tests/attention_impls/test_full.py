"""What is particular to the materialised reference: a case by hand, dropout, the cache."""

from __future__ import annotations

import math

import pytest
import torch

from attention_impls.contract import Context
from lra.core.errors import UnsupportedError


def test_two_positions_by_hand(build) -> None:
    """Logits 0 and log 3 give weights 1/4 and 3/4."""
    layer = build(("full", {}), qkv_width=2)
    q = torch.ones(1, 2, 1, 1, dtype=torch.float64)
    k = torch.tensor([0.0, math.log(3.0)], dtype=torch.float64).expand(1, 2, 2).unsqueeze(-1)
    v = torch.tensor([4.0, 8.0], dtype=torch.float64).expand(1, 2, 2).unsqueeze(-1)
    out, _ = layer.attend(q, k, v, Context())
    torch.testing.assert_close(out, torch.full_like(out, 7.0))


def test_causal_queries_stand_at_the_end_of_longer_keys(build, draw) -> None:
    layer = build(("full", {}))
    q, k, v = draw(1, 2, 5)
    out, _ = layer.attend(q, k, v, Context(causal=True))
    for row, visible in ((0, 4), (1, 5)):
        alone, _ = layer.attend(
            q[:, :, row : row + 1], k[:, :, :visible], v[:, :, :visible], Context()
        )
        torch.testing.assert_close(out[:, :, row : row + 1], alone)


@pytest.mark.parametrize("causal", [False, True])
def test_weights_of_bfloat16_sum_to_one(causal, build, draw) -> None:
    """The softmax runs in float32: where all values are the same, no query or key is moved."""
    layer = build(("full", {}), dtype=torch.bfloat16)
    q, k, v = draw(2, 37, dtype=torch.bfloat16)
    out, _ = layer.attend(q, k, torch.ones_like(v), Context(causal))
    for gradient in torch.autograd.grad(out.sum(), (q, k)):
        assert gradient.abs().max() < 1e-5


def test_dropout_scales_what_it_keeps(build, draw) -> None:
    """A tenth of the weights go; the rest grow, so that the mean over draws stays."""
    layer = build(("full", {}), dropout=0.1)
    q, k, v = (x.detach() for x in draw(1, 5))
    expected, _ = layer.attend(q, k, v, Context())
    layer.train()
    torch.manual_seed(0)
    draws = torch.stack([layer.attend(q, k, v, Context())[0] for _ in range(1000)])
    assert not torch.equal(draws[0], draws[1])
    error = (draws.mean(0) - expected).abs()
    assert bool((error <= 5 * draws.std(0) / math.sqrt(1000)).all())


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
