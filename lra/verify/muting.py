"""Parameters that start as one small number throughout, and hide what they scale."""

from __future__ import annotations

from torch import Tensor, nn

MUTED = 0.1
"""Size below which a parameter that starts as one number throughout is drawn anew."""


def is_muting(parameter: Tensor) -> bool:
    """Whether it starts as one small number throughout, like the last projection of a block that
    starts as the identity: the parts that it scales would be hidden from every law."""
    values = parameter.detach()
    if not values.numel() or not values.is_floating_point():
        return False
    least, most = (float(end) for end in values.aminmax())
    return least == most and abs(most) < MUTED


def draw_anew(parameter: Tensor) -> None:
    """Draw a parameter as one that scales, or as a projection."""
    if parameter.dim() < 2:
        nn.init.uniform_(parameter, 0.5, 1.5)
    else:
        nn.init.normal_(parameter, std=parameter.shape[-1] ** -0.5)
