"""Answers that a trained model writes by itself, token by token, against those of the task.

E examples, N tokens of the longest answer
"""

from __future__ import annotations

from statistics import fmean
from typing import NamedTuple

import numpy as np
import torch

from lra.core.dataset import Split
from lra.core.protocol import Rules
from lra.core.rouge import Rouge, rouge
from lra.models.sequence_model import SequenceModel
from lra.training.batches import Collator
from lra.training.generate import greedy

EXAMPLES = 256
"""Largest number of examples, the first of the test split."""


class Written(NamedTuple):
    """Means over examples."""

    exact: float
    """Share of answers of which every token is right."""
    rouge: Rouge


def write_answers(
    model: SequenceModel,
    split: Split,
    device: torch.device,
    *,
    rules: Rules,
    length: int | None,
    first: int,
) -> Written:
    """Write the answers greedily, as many tokens as each has, and score them.

    Token `first` is label 0. Sources are padded to `length` where there is one, as in training.
    Raises `UnsupportedError` for a mechanism that does not decode or keeps nothing of a source.
    """
    rows = np.arange(min(EXAMPLES, len(split)))
    batch = Collator(split, length=length, rules=rules)(rows).to(device)
    assert batch.source_EM is not None, "an answer follows from a source"
    numbers_E = split.lengths[rows, 1]
    starts_E = batch.tokens_SN[:, 0].long()
    found = greedy(
        model,
        batch.source_EM,
        batch.source_mask_EM,
        start=starts_E,
        end=None,
        limit=int(numbers_E.max()),
        first=first,
    )
    written_EN = found.tokens_BN.cpu().numpy() - first
    pairs = []
    for row, number in zip(rows, numbers_E, strict=True):
        begin = split.starts[2 * row + 1]
        pairs.append((written_EN[row, :number], split.labels[begin : begin + number]))
    scores = [rouge(mine, theirs) for mine, theirs in pairs]
    return Written(
        fmean(float(np.array_equal(mine, theirs)) for mine, theirs in pairs),
        Rouge(*(fmean(own) for own in zip(*scores, strict=True))),
    )
