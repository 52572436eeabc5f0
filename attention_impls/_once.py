"""Backward passes that give first derivatives alone: gradients of gradients are refused."""

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
        _require_no_graph()
        return backward(ctx, *upstream)

    return refusing


def refuse_second_derivative(x: Tensor) -> Tensor:
    """Return a tensor whose backward pass refuses to be part of a graph."""
    if x.requires_grad and not torch.compiler.is_compiling():
        x.register_hook(_require_no_graph)  # type: ignore[no-untyped-call]
    return x


def _require_no_graph(*_: Tensor) -> None:
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():
        raise RuntimeError(
            "create_graph=True: this attention's backward pass has no derivative; take 'full' for "
            "gradients of gradients"
        )
