"""The output among the values that other people's code returns."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from lra.core.errors import LraError


def output_of(given: Any, shape: torch.Size, name: str) -> Tensor:
    """Return the tensor of this shape: alone, first of several, or first in an object of Hugging
    Face's kind.

    Raises `LraError` for anything else.
    """
    first = given
    if not isinstance(given, Tensor):
        with suppress(LookupError, TypeError):
            first = given[0]
    if not isinstance(first, Tensor):
        raise LraError(f"{name} answers with {type(first).__name__} where a tensor belongs")
    if first.shape != shape:
        raise LraError(
            f"{name} answers with shape {tuple(first.shape)} where {tuple(shape)} belongs"
        )
    return first
