"""Decoding by use: answers of a trained model token by token, against its answers at once.

S sequences, N tokens, C classes
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lra.core.dataset import UNASKED, Split
from lra.models.model import Model

EXAMPLES = 32
"""Number of examples, the longest of the test split; all are cut to the shortest of them."""


@torch.no_grad()
def decode_agreement(model: Model, split: Split, device: torch.device) -> float:
    """Return the share of decoded tokens with the same answer both ways.

    The first half of each sequence is taken in at once, the rest token by token with the
    mechanism's states; tokens of that rest with a label are compared. In float32, in evaluation
    mode; for causal models with an answer for each token. Raises ValueError where no token of the
    second halves has a label.
    """
    model.eval()
    tokens_SN, asked_SN = _longest(split)
    tokens_SN = tokens_SN.to(device)
    half = tokens_SN.shape[1] // 2
    asked_SN[:, :half] = False
    if not asked_SN.any():
        raise ValueError("no token of the second halves is asked")
    at_once_SN = model(tokens_SN).logits_LC.argmax(dim=-1).cpu()
    by_steps_SN = _by_steps(model, tokens_SN, half).argmax(dim=-1).cpu()
    return float((at_once_SN == by_steps_SN)[asked_SN].double().mean())


def _by_steps(model: Model, tokens_SN: Tensor, half: int) -> Tensor:
    """Logits of all positions, (S, N, C)."""
    sequences, length = tokens_SN.shape
    states: Sequence[Any] | None = model.init_states(sequences, length=length)
    parts, first = [], 0
    for size in (half, *[1] * (length - half)) if half else [1] * length:
        found = model(tokens_SN[:, first : first + size], states=states, first=first)
        parts.append(found.logits_LC)
        states = found.states
        first += size
    return torch.cat(parts, dim=1)


def _longest(split: Split) -> tuple[Tensor, Tensor]:
    """Return the tokens of the longest examples, and which of them have a label, (S, N)."""
    lengths = split.lengths[:, 0]
    rows = np.argsort(-lengths, kind="stable")[:EXAMPLES]
    places_SN = split.starts[rows][:, None] + np.arange(lengths[rows].min())
    asked_SN = split.labels[places_SN] != UNASKED
    return torch.from_numpy(split.tokens[places_SN]), torch.from_numpy(asked_SN)
