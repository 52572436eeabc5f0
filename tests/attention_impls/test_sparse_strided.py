"""The strided pattern's own: the gradient of its parts under dropout."""

from __future__ import annotations

import torch

from attention_impls.contract import Context


def test_dropout_has_the_gradient_of_its_own_draws(build, draw, small_tiles) -> None:
    layer = build(("sparse_strided", {"stride": 3}), dropout=0.3).train()

    def run(*qkv: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(0)
        return layer.in_parts(*qkv, None, Context())

    assert torch.autograd.gradcheck(run, draw(1, 9, width=3))
