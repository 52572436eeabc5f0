"""A model that takes in tokens and says how likely each next one is, with caches.

R rows   N tokens   V vocabulary
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lra.models.model import Model
from lra.models.sequence_model import SequenceModel


class Steps:
    """A decoder, or an encoder-decoder whose states hold its source, after some tokens."""

    def __init__(
        self, model: Model | SequenceModel, states: Sequence[Any] | None, taken: int
    ) -> None:
        """Go on from `states`, which have taken in so many tokens."""
        self._model = model
        self._states = states
        self._taken = taken

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
        return logits_RV.log_softmax(dim=-1, dtype=precise)

    def select(self, index_R: Tensor) -> None:
        """Go on with these rows, in this order: each may be repeated or left out."""
        assert self._states is not None
        self._states = self._model.body.select_states(self._states, index_R)
