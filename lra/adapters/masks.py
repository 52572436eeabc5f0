"""Masks as other people's code wants them.

B batch   N queries   M keys
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from attention_impls.contract import Context, Layer, MechanismConfig
from lra.core.errors import UnsupportedError

MaskForm = Literal["", "keep", "ignore", "ones", "additive"]
"""keep: True means attend. ignore: True means do not. ones: 1 means attend, 0 does not, as numbers
of the input's type. additive: 0, or the least finite number, of float32 in place of float64. Empty:
as the parameter's name suggests."""


class MaskedConfig(MechanismConfig, frozen=True):
    """Form of the masks that somebody's attention gets, and whether it gets another sequence."""

    mask_form: MaskForm = ""
    """Meaning of its masks."""
    mask_per_head: bool = False
    """Whether a mask of keys is (B, 1, 1, M), as for a product of heads; else (B, M)."""
    always_mask: bool = False
    """Whether it gets a mask even where nothing is padded."""
    cross: bool = True
    """Whether it claims another sequence, where its signature takes one."""


def convert_mask(keep: Tensor, form: MaskForm, dtype: torch.dtype) -> Tensor:
    """Return a boolean mask, True where one may attend, in this form."""
    if form == "keep":
        return keep
    if form == "ignore":
        return ~keep
    if form == "ones":
        return keep.to(dtype)
    # A softmax in float32, whatever its input's type, would meet a number of float64 as infinity.
    lowest = max(torch.finfo(dtype).min, torch.finfo(torch.float32).min)
    return torch.zeros(keep.shape, dtype=dtype, device=keep.device).masked_fill(~keep, lowest)


def pair_mask(keep_BM: Tensor | None, causal_NM: Tensor | None) -> Tensor | None:
    """Return which pairs are permitted, (B, 1, 1, M), (B, 1, N, M) or (N, M); None where all."""
    if keep_BM is None:
        return causal_NM
    keep_B11M = keep_BM[:, None, None, :]
    return keep_B11M if causal_NM is None else keep_B11M & causal_NM


def refuse_padding(layer: Layer, context: Context) -> None:
    """Raise `UnsupportedError`, with what to do, where there is padding and no mask for it."""
    padded = context.query_mask_BN is not None or context.key_mask_BM is not None
    if padded and layer.card.capabilities.padding == "none":
        raise UnsupportedError(
            f"{layer.name} cannot mask padding; give it an argument `mask`, "
            "or choose tasks whose rows have one length, such as image"
        )


def full_key_mask(x_BND: Tensor) -> Tensor:
    """Return a mask of keys, (B, N), that are all real."""
    return torch.ones(x_BND.shape[:2], dtype=torch.bool, device=x_BND.device)
