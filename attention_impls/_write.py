"""Results written where they are needed: into a part of an array that is there already."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def write(target: Tensor, function: Callable[..., Tensor], *arguments: Tensor) -> Tensor:
    """Write a function's result into a view and return that; `function` takes `out`.

    The compiler takes `out` for whole tensors only, but leaves out the copy by itself.
    """
    if torch.compiler.is_compiling():
        return target.copy_(function(*arguments))
    return function(*arguments, out=target)
