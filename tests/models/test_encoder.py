from __future__ import annotations

from collections.abc import Callable

import torch

from lra.models.model import Model

Build = Callable[..., Model]
TOKENS = torch.tensor([[3, 1, 4, 1], [5, 9, 2, 6]], dtype=torch.uint8)


def test_recomputing_runs_each_block_again_on_the_way_back(build: Build) -> None:
    model = build()
    body = model.body
    runs: list[int] = []
    for number, block in enumerate(body.blocks):
        block.mlp.register_forward_pre_hook(lambda module, given, n=number: runs.append(n))
    body.recompute = True
    model(TOKENS).logits_LC.sum().backward()
    there, back = list(range(len(body.blocks))), list(reversed(range(len(body.blocks))))
    assert runs == [*there, *back]
    runs.clear()
    with torch.no_grad():
        model(TOKENS)
    assert runs == there
