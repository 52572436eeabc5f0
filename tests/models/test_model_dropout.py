"""Dropout: the share it drops, what it leaves, and whose draws they are."""

from __future__ import annotations

import pytest
import torch

from lra.models.dropout import Dropout


@pytest.mark.parametrize("p", [0.1, 0.25, 0.5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_share_is_dropped_and_the_rest_made_up_for(p: float, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x = torch.ones(3, 1001, 77, dtype=dtype, requires_grad=True)
    y = Dropout(p)(x)
    assert y.dtype == dtype
    zero = (y == 0).float().mean().item()
    # Five standard deviations.
    assert zero == pytest.approx(p, abs=5 * (p * (1 - p) / x.numel()) ** 0.5)
    kept = y[y != 0]
    torch.testing.assert_close(kept, torch.full_like(kept, 1 / (1 - p)), rtol=1e-2, atol=0)
    y.sum().backward()
    # The gradient goes where the values went.
    assert torch.equal(x.grad, y)


def test_neighbours_are_dropped_independently() -> None:
    """Four elements come from one number: none of them tells of another."""
    torch.manual_seed(1)
    zero = (Dropout(0.5)(torch.ones(400_000)) == 0).float().view(-1, 8)
    together = torch.corrcoef(zero.T) - torch.eye(8)
    assert together.abs().max() < 5 / 50_000**0.5


def test_the_generator_alone_decides() -> None:
    x, dropout = torch.randn(7, 11), Dropout(0.3)
    torch.manual_seed(5)
    first, second = dropout(x), dropout(x)
    torch.manual_seed(5)
    assert torch.equal(dropout(x), first)
    assert not torch.equal(first, second)


def test_nothing_happens_in_evaluation_or_at_zero() -> None:
    x = torch.randn(5, 3)
    state = torch.get_rng_state()
    assert torch.equal(Dropout(0.3).eval()(x), x)
    assert torch.equal(Dropout(0.0)(x), x)
    assert torch.equal(torch.get_rng_state(), state)


def test_all_may_go() -> None:
    assert not Dropout(1.0)(torch.randn(9)).any()
