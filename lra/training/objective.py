"""Objective and counts: cross-entropy in float32, and correctly predicted labels.

L labels, of examples or of tokens, C classes
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lra.core.dataset import Split
from lra.core.errors import UnsupportedError
from lra.core.protocol import TrainSpec
from lra.training.batches import Batch, Collator, evaluation_rows
from lra.training.outcome import Score
from lra.training.ranks import ALONE, Ranks


def autocast_type(spec: TrainSpec, device: torch.device) -> torch.dtype | None:
    """Return the dtype of matrix products; None where all is float32.

    Raises `UnsupportedError` where the device lacks it.
    """
    if spec.precision == "float32":
        return None
    if device.type == "cuda" and not torch.cuda.is_bf16_supported():
        raise UnsupportedError("this GPU has no bfloat16; train with precision float32")
    return torch.bfloat16


def forward(model: nn.Module, batch: Batch, autocast: torch.dtype | None) -> tuple[Tensor, Tensor]:
    """Return the cross-entropy summed over a batch, in nat, and the logits, (L, C) float32."""
    # Entering autocast costs a small model's step about half a per cent even where it is off.
    place = batch.tokens_SN.device.type
    with nullcontext() if autocast is None else torch.autocast(place, autocast):
        asked = () if batch.asked_T is None else (batch.asked_T,)
        logits_LC = model(batch.tokens_SN, batch.mask_SN, *asked)
    logits_LC = logits_LC.float()
    return F.cross_entropy(logits_LC, batch.labels_L, reduction="sum"), logits_LC


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
                loss, right = _counted(model, collate(rows).to(device), autocast)
                total += loss
                correct += right
    finally:
        model.train(was_training)
    answers = int(collate.answers_E.sum())
    return Score(int(ranks.total(correct)), answers, float(ranks.total(total)) / answers)


@torch.no_grad()
def _counted(model: nn.Module, batch: Batch, autocast: torch.dtype | None) -> tuple[Tensor, Tensor]:
    """Return the loss summed over a batch, and the number of correctly predicted labels."""
    loss, logits_LC = forward(model, batch, autocast)
    return loss, (logits_LC.argmax(dim=-1) == batch.labels_L).sum()
