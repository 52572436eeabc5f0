"""A model's call on a batch, in the precision that the protocol asks for."""

from __future__ import annotations

from contextlib import nullcontext

import torch
from torch import Tensor, nn

from lra.core.errors import UnsupportedError
from lra.core.protocol import TrainSpec
from lra.models.output import Output
from lra.training.batches import Batch


def autocast_type(spec: TrainSpec, device: torch.device) -> torch.dtype | None:
    """Return the dtype of matrix products; None where all is float32.

    Raises `UnsupportedError` where the device lacks it.
    """
    if spec.precision == "float32":
        return None
    if device.type == "cuda" and not torch.cuda.is_bf16_supported():
        raise UnsupportedError("this GPU has no bfloat16; train with precision float32")
    return torch.bfloat16


def forward(model: nn.Module, batch: Batch, autocast: torch.dtype | None) -> Output:
    """Return a model's output for a batch; its logits have the dtype of the last product."""
    # Entering autocast costs a small model's step about half a per cent even where it is off.
    place = batch.tokens_SN.device.type
    with nullcontext() if autocast is None else torch.autocast(place, autocast):
        asked = () if batch.asked_T is None else (batch.asked_T,)
        given: tuple[Tensor | None, ...] = (batch.tokens_SN, batch.mask_SN)
        if batch.source_EM is not None:
            given = (batch.source_EM, batch.tokens_SN, batch.source_mask_EM, batch.mask_SN)
        output: Output = model(*given, *asked)
    return output
