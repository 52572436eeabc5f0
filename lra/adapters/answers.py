"""What other people's code gives back, and what it is spared.

B batch   N queries   D model width
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lra.core.errors import LraError


def answer(given: Any, shape: torch.Size, name: str) -> Tensor:
    """Return the tensor of this shape that was given back, alone, first of several, or first in an
    object of Hugging Face's kind.

    Raises `LraError` for anything else.
    """
    first = given[0] if not isinstance(given, Tensor) and hasattr(given, "__getitem__") else given
    if not isinstance(first, Tensor):
        raise LraError(f"{name} answers with {type(first).__name__} where a tensor belongs")
    if first.shape != shape:
        raise LraError(
            f"{name} answers with shape {tuple(first.shape)} where {tuple(shape)} belongs"
        )
    return first


def finite_padding(x_BND: Tensor, mask_BN: Tensor | None) -> Tensor:
    """Put zero where padding is not finite, which no mask of theirs promises to survive."""
    if mask_BN is None:
        return x_BND
    return x_BND.masked_fill(~mask_BN.unsqueeze(-1) & ~x_BND.isfinite(), 0.0)
