"""Tables of rotary positions, as modules want them that turn queries and keys but keep no tables.

B batch   N positions   D width   K width of a head
"""

from __future__ import annotations

import inspect

import torch
from torch import Tensor

BASE = 10_000.0
"""Base of the wave lengths, as in the paper."""


def rotary_tables(like_BND: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Return cosines and sines, (1, N, K) each, of the positions of some inputs.

    Both halves of a head's width hold the same angles: the halves are turned against each other.
    """
    places_N = torch.arange(like_BND.shape[-2], device=like_BND.device, dtype=torch.float64)
    pairs = torch.arange(0, width, 2, device=like_BND.device, dtype=torch.float64)
    angles = places_N[:, None] * BASE ** (-pairs / width)
    angles_1NK = torch.cat([angles, angles], dim=-1)[None]
    return angles_1NK.cos().to(like_BND.dtype), angles_1NK.sin().to(like_BND.dtype)


def may_be_tables(parameter: inspect.Parameter) -> bool:
    """Whether a parameter may be a pair of tables: it has no annotation, or one of a tuple.

    Some modules have a parameter of the same name for a tensor that they add to their input.
    """
    annotation = parameter.annotation
    return annotation is parameter.empty or "tuple" in str(annotation).lower()
