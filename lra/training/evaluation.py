"""Evaluation: the score of a split, batch by batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lra.core.dataset import Split
from lra.training.batches import Collator, evaluation_rows
from lra.training.forward import forward
from lra.training.objectives.objective import Objective
from lra.training.outcome import Score
from lra.training.ranks import ALONE, Ranks


@dataclass(frozen=True)
class Tally:
    """Counts over a split so far."""

    batches: int
    """Number of batches of `evaluation_rows`, in their order."""
    loss: Tensor
    """Loss summed over answers, in nat; float64, ()."""
    correct: Tensor
    """Number of correct answers; int64, ()."""


def evaluate(
    model: nn.Module,
    split: Split,
    collate: Collator,
    objective: Objective,
    *,
    batch: int,
    device: torch.device,
    autocast: torch.dtype | None = None,
    ranks: Ranks = ALONE,
    begun: Tally | None = None,
    poll: Callable[[Tally], None] = lambda tally: None,
) -> Score:
    """Score every label of a split once, in evaluation mode; the model returns to its own mode.

    Ranks take the batches in turns. `poll` is called before each round with this rank's tally so
    far, and may raise to give up; `begun` is a tally, summed over the ranks, to go on from.
    """
    was_training = model.training
    model.eval()
    if begun is None or ranks.index > 0:
        nothing = torch.zeros((), dtype=torch.float64), torch.zeros((), dtype=torch.int64)
        tally = Tally(0 if begun is None else begun.batches, *nothing)
    else:
        tally = begun
    total, correct = tally.loss.to(device).clone(), tally.correct.to(device).clone()
    batches = evaluation_rows(split, batch)
    try:
        for first in range(tally.batches, len(batches), ranks.count):
            poll(Tally(first, total, correct))
            for rows in batches[first + ranks.index : first + ranks.index + 1]:
                here = collate(rows).to(device)
                with torch.no_grad():
                    counts = objective.tally(forward(model, here, autocast), here)
                total += counts.loss
                correct += counts.correct
    finally:
        model.train(was_training)
    answers = int(collate.answers_E.sum())
    return Score(int(ranks.total(correct)), answers, float(ranks.total(total)) / answers)
