"""Output of a whole model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor


class Output(NamedTuple):
    """Answers of a model, E examples or T tokens, C classes."""

    logits_LC: Tensor
    """(E, C); without pooling (T, C) for the tokens asked for, or (S, N, C) for all."""
    states: Sequence[Any] | None = None
    """Where decode states were given: these, after the N tokens."""
