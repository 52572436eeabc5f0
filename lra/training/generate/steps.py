"""A model that takes in tokens and says how likely each next one is, with caches.

R rows   N tokens   V vocabulary   C answers
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import prod
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lra.models.model import Model
from lra.models.sequence_model import SequenceModel


def vocabulary_of(model: Model | SequenceModel) -> int:
    """Return the number of tokens that a model reads in what it writes."""
    table = model.target if isinstance(model, SequenceModel) else model.embedding
    return prod(table.parts) if table.parts else table.tokens.num_embeddings


class Steps:
    """A decoder, or an encoder-decoder whose states hold its source, after some tokens."""

    def __init__(
        self, model: Model | SequenceModel, states: Sequence[Any] | None, *, first: int = 0
    ) -> None:
        """Go on from `states`, which have taken in no token yet. `first` is the token of the
        model's first answer: other tokens than those that it answers with are never likely."""
        self._model = model
        self._states = states
        self._taken = 0
        self._first = first

    def feed(self, tokens_RN: Tensor) -> Tensor:
        """Take in tokens, and return the logarithms of the probabilities of the token after the
        last of them, (R, V), in float32 or better."""
        rows, length = tokens_RN.shape
        if isinstance(self._model, SequenceModel):
            found = self._model.decode(tokens_RN, None, states=self._states, first=self._taken)
            logits_RV = found.logits_LC[:, -1]
        else:
            lasts = None
            if length > 1:  # a vocabulary is wide: the head answers for the last tokens alone
                lasts = torch.arange(1, rows + 1, device=tokens_RN.device) * length - 1
            found = self._model(tokens_RN, None, lasts, states=self._states, first=self._taken)
            logits_RV = found.logits_LC.view(rows, -1)
        self._states = found.states
        self._taken += length
        precise = torch.promote_types(logits_RV.dtype, torch.float32)
        log_p_RC = logits_RV.log_softmax(dim=-1, dtype=precise)
        behind = vocabulary_of(self._model) - self._first - log_p_RC.shape[1]
        if not self._first and behind <= 0:
            return log_p_RC
        return F.pad(log_p_RC, (self._first, behind), value=-math.inf)

    def select(self, index_R: Tensor) -> None:
        """Go on with these rows, in this order: each may be repeated or left out."""
        assert self._states is not None
        self._states = self._model.body.select_states(self._states, index_R)
