"""Labels as an objective: a step computes the loss alone, an evaluation the counts with it."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from lra.models.output import Output
from lra.training.batches import Batch
from lra.training.objectives.labels import Labels

LABELS = torch.tensor([2, 0, 1])
BATCH = Batch(torch.zeros(3, 1, dtype=torch.uint8), None, LABELS)
LOGITS = torch.tensor([[0.0, 1.0, 3.0], [0.0, 2.0, 1.0], [1.0, 5.0, 0.0]])


class Kernels(TorchDispatchMode):
    """Counts what torch is asked to compute."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.asked.append(function._schema.name)
        return function(*args, **(kwargs or {}))


def test_the_loss_is_a_sum_and_two_of_three_are_right() -> None:
    counts = Labels().tally(Output(LOGITS), BATCH)
    by_hand = sum(float(torch.logsumexp(x, 0) - x[y]) for x, y in zip(LOGITS, LABELS, strict=True))
    assert float(counts.loss) == pytest.approx(by_hand, rel=1e-6)
    assert torch.equal(counts.loss, Labels().loss(Output(LOGITS), BATCH))
    assert int(counts.correct) == 2


def test_a_step_computes_nothing_but_the_loss() -> None:
    with Kernels() as bare:
        F.cross_entropy(LOGITS, LABELS, reduction="sum")
    with Kernels() as found:
        Labels().loss(Output(LOGITS), BATCH)
    assert found.asked == bare.asked != []


def test_the_loss_is_summed_in_float32() -> None:
    loss = Labels().loss(Output(LOGITS.to(torch.bfloat16)), BATCH)
    assert loss.dtype == torch.float32
    assert torch.equal(loss, Labels().loss(Output(LOGITS), BATCH))
