"""On a GPU the forward and backward pass of a whole model wait for no value either."""

from __future__ import annotations

from types import ModuleType

import pytest
import torch
from torch import Tensor

from lra.training.batches import Batch
from lra.training.forward import forward
from lra.training.objectives.labels import Labels


def lost(tensor: Tensor | None) -> Tensor | None:
    """The same on the device without values, which raises when asked for one."""
    return None if tensor is None else tensor.to("meta")


@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_both_passes_ask_for_no_value(toy: ModuleType, padded: bool, asked: bool) -> None:
    model = toy.model(dropout=0.1).to("meta")
    if asked:
        model.pooling = "none"
    tokens_SN = torch.ones(3, toy.LENGTH, dtype=torch.uint8)
    answers = 7 if asked else 3
    batch = Batch(
        lost(tokens_SN),
        lost(tokens_SN > 0) if padded else None,
        lost(torch.zeros(answers, dtype=torch.int64)),
        lost(torch.arange(answers)) if asked else None,
    )
    output = forward(model, batch, None)
    torch.autograd.backward(Labels().loss(output, batch))
    assert output.logits_LC.shape[0] == answers
    assert all(parameter.grad is not None for parameter in model.parameters())
