"""Backward passes that are written by hand, for first derivatives: others are refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import torch
from torch import Tensor

Gradients = TypeVar("Gradients")


def once_differentiable(backward: Callable[..., Gradients]) -> Callable[..., Gradients]:
    """Return a `backward` that refuses to be part of a graph, as for gradients of gradients.

    Torch's decorator of this name refuses later, in a pass back to all leaves alone:
    `torch.autograd.grad` for chosen ones passes by, and returns a part of their gradient.
    """

    @wraps(backward)
    def refusing(ctx: Any, *upstream: Tensor) -> Gradients:
        if torch.is_grad_enabled() and not torch.compiler.is_compiling():
            raise RuntimeError(
                "create_graph=True: this attention's backward pass is written by hand and has no "
                "derivative; take 'full' for gradients of gradients"
            )
        return backward(ctx, *upstream)

    return refusing
