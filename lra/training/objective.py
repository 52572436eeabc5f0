"""What is minimised and what is counted: cross-entropy in float32, and labels told correctly.

L labels, of examples or of tokens, C classes
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lra.core.dataset import Split
from lra.core.errors import UnsupportedError
from lra.core.protocol import TrainSpec
from lra.training.batches import Batch, Collator, evaluation_rows
from lra.training.outcome import Score


def autocast_type(spec: TrainSpec, device: torch.device) -> torch.dtype | None:
    """Return the type that matrix products run in; None where all is float32.

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
    device = batch.tokens_SN.device.type
    with nullcontext() if autocast is None else torch.autocast(device, autocast):
        asked = () if batch.asked_SN is None else (batch.asked_SN,)
        logits_LC = model(batch.tokens_SN, batch.mask_SN, *asked)
    logits_LC = logits_LC.float()
    return F.cross_entropy(logits_LC, batch.labels_L, reduction="sum"), logits_LC


@torch.no_grad()
def evaluate(
    model: nn.Module,
    split: Split,
    collate: Collator,
    *,
    batch: int,
    device: torch.device,
    autocast: torch.dtype | None = None,
    poll: Callable[[], None] = lambda: None,
) -> Score:
    """Score every label of a split once, in evaluation mode; the model returns to its own mode.

    `poll` is called before each batch and may raise to give up.
    """
    was_training = model.training
    model.eval()
    total = torch.zeros((), dtype=torch.float64, device=device)
    correct = torch.zeros((), dtype=torch.int64, device=device)
    try:
        for rows in evaluation_rows(split, batch):
            poll()
            piece = collate(rows).to(device)
            loss, logits_LC = forward(model, piece, autocast)
            total += loss
            correct += (logits_LC.argmax(dim=-1) == piece.labels_L).sum()
    finally:
        model.train(was_training)
    answers = int(collate.answers_E.sum())
    return Score(int(correct), answers, float(total) / answers)
