"""Calls of somebody's code, and errors of its own in terms of its signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from lra.adapters.directions import Directions
from lra.adapters.external import External
from lra.adapters.failing_line import argument_left_out, multiple_asked_for, wordless
from lra.adapters.masks import MaskedConfig
from lra.core.errors import LraError
from lra.core.traceback_place import place_of


def call(
    stranger: External,
    config: MaskedConfig,
    inner: Directions,
    causal: bool,
    positional: Sequence[Tensor],
    named: Mapping[str, Any],
) -> Any:
    """Return what its module for a direction returns.

    Raises `LraError` where the cause of an error can be told from the line that raised it, and for
    parameters that were made in this call: an optimiser has its list before.
    """
    module = inner.of(causal)
    if torch.compiler.is_compiling():
        return module(*positional, **named)
    try:
        given = module(*positional, **named)
    except LraError:
        raise
    except Exception as error:
        advice = _advice(stranger, config, error, positional, named)
        shown = wordless(error)
        if not (advice or shown):
            raise
        home = getattr(stranger.what, "__module__", "")
        line = " ".join(f"{type(error).__name__}: {shown or error}".split())
        told = f"; {advice}" if advice else ""
        raise LraError(f"{line}{place_of(error, home)}{told}") from error
    for made in inner.made_in_a_call(causal):
        raise LraError(
            f"{stranger.name} makes its parameter '{made}' in its first forward, when an optimiser "
            "has its list already: it would stay as it is; make it in __init__"
        )
    return given


def _advice(
    stranger: External,
    config: MaskedConfig,
    error: Exception,
    positional: Sequence[Tensor],
    named: Mapping[str, Any],
) -> str:
    """Return what to do about an error; empty where nothing can be told."""
    sequences = [*positional, *(x for x in named.values() if isinstance(x, Tensor))]
    given = {*named, *list(stranger.call)[: len(positional)]}
    left_out = argument_left_out(error, [name for name in stranger.call if name not in given])
    if left_out and left_out == stranger.asks.get("key_mask"):
        return f"it was called without '{left_out}': --set always_mask=true gives it one"
    if left_out:
        return (
            f"it was called without '{left_out}', for which nothing here has a value; wrap it in a "
            "module that gives it"
        )
    lengths = {x.shape[-2] for x in sequences if x.ndim > 2}
    multiple = multiple_asked_for(error, lengths)
    if multiple:
        pads = f"--set pad_to={multiple} pads its input to a multiple"
        return pads if hasattr(config, "pad_to") else f"in a module that wraps it {pads}"
    if "shapes cannot be multiplied" in str(error):
        empty = {n for n, p in stranger.constructor.items() if p.default is p.empty}
        sizes = [n for n in sorted(empty) if type(getattr(config, n, None)) is int]
        if sizes:
            return f"a number fits inputs of one width alone: --set '{sizes[0]}=$width'"
    return ""
