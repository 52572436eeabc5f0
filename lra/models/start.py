"""Start of the weights of a network by its form; mechanisms' own parameters start as they say."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from attention_impls.contract import Layer
from lra.core.protocol import BlockForm
from lra.models.block import Block

NORMAL_STD = 0.02
"""Standard deviation of every weight under `normal`, as in GPT and BERT."""
_PROJECTIONS = ("query", "key", "value", "output")


@torch.no_grad()
def start_table(table: nn.Embedding, form: BlockForm) -> None:
    """Draw a table of tokens."""
    width = table.embedding_dim
    stds = {"lra": 1.0, "xavier": width**-0.5, "normal": NORMAL_STD, "fan_in": 1.0}
    nn.init.normal_(table.weight, std=stds[form.start])


@torch.no_grad()
def start_blocks(blocks: Sequence[Block], form: BlockForm) -> None:
    """Draw the projections of attention and the MLPs, and scale the weights that write to the
    residual stream where the form says so.

    Under `lra` and `xavier` they are as they were built. Layers without such projections start by
    themselves.
    """
    writing: list[nn.Linear] = []
    additions = 0
    for block in blocks:
        branches = [block.mechanism] if block.cross is None else [block.mechanism, block.cross]
        linears = [*(one for layer in branches for one in _projections(layer)), block.mlp.widen]
        for linear in (*linears, block.mlp.narrow):
            if form.start in ("normal", "fan_in"):
                std = NORMAL_STD if form.start == "normal" else linear.in_features**-0.5
                nn.init.normal_(linear.weight, std=std)
                if linear.bias is not None:
                    nn.init.zeros_(linear.bias)
        additions += len(branches) + 1
        outputs = [getattr(layer, "output", None) for layer in branches]
        writing += [one for one in (*outputs, block.mlp.narrow) if isinstance(one, nn.Linear)]
    if form.scaled_residual:
        for linear in writing:
            linear.weight.mul_(additions**-0.5)


def _projections(layer: Layer) -> list[nn.Linear]:
    found = (getattr(layer, name, None) for name in _PROJECTIONS)
    return [one for one in found if isinstance(one, nn.Linear)]
