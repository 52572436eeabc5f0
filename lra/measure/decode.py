"""Decoding: a prompt taken in at once, then one more position from the mechanism's state.

B batch, N length of the prompt, D width
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attention_impls.contract import Context, Layer
from lra.core.cells import EfficiencyCell
from lra.core.errors import UnsupportedError
from lra.core.records import Metric
from lra.measure.calls import normal
from lra.measure.layer import used_parameters


@dataclass(frozen=True)
class DecodeCalls:
    """Timed calls of a layer that decodes, with the sizes and the error found on the way."""

    prefill: Callable[[], object]
    """Takes in the whole prompt, from an empty state."""
    step: Callable[[], object]
    """Takes in one more position, always the same, from the state after the prompt."""
    state_bytes: int
    parameter_bytes: int
    error: float
    """Largest difference of that step from the parallel form, over the largest output."""

    def metrics(self) -> dict[str, Metric]:
        """Return all metrics but the times."""
        moved = self.state_bytes + self.parameter_bytes
        return {
            "minimum_bytes": Metric(value=float(moved), unit="B", better="lower"),
            "state_bytes": Metric(value=float(self.state_bytes), unit="B", better="lower"),
            "decode_error": error_metric(self.error),
        }


@torch.no_grad()
def prepare_decode(cell: EfficiencyCell, layer: Layer, device: torch.device) -> DecodeCalls:
    """Return the calls to time; raises `UnsupportedError` for a mechanism without a state."""
    if cell.level != "layer":
        raise UnsupportedError("decoding is measured at level layer; leave the other levels out")
    if layer.card.capabilities.decode == "none":
        raise UnsupportedError(f"{cell.mechanism.name} cannot decode; leave that mode out")
    generator = torch.Generator(device).manual_seed(0)
    shape = (cell.batch, cell.length + 1, layer.dims.width)
    x_BND, context = normal(shape, cell, device, generator), Context(causal=True)
    prompt_BND, last_B1D = x_BND[:, : cell.length], x_BND[:, cell.length :]

    def prefill() -> Any:
        with torch.no_grad():
            empty = layer.init_state(
                cell.batch, length=cell.length + 1, device=device, dtype=x_BND.dtype
            )
            return layer(prompt_BND, context, state=empty).state

    state = prefill()

    def step() -> Tensor:
        with torch.no_grad():
            y_B1D: Tensor = layer(last_B1D, context, state=state).y_BND
            return y_B1D

    wanted = layer(x_BND, context).y_BND[:, cell.length :].float()
    scale = wanted.abs().amax().clamp(min=torch.finfo(torch.float32).tiny)
    return DecodeCalls(
        prefill=prefill,
        step=step,
        state_bytes=bytes_of(state),
        parameter_bytes=sum(p.nbytes for p in used_parameters(layer)),
        error=float((step().float() - wanted).abs().amax() / scale),
    )


def bytes_of(state: Any) -> int:
    """Return the bytes of a state's tensors."""
    return sum(tensor.nbytes for tensor in _tensors(state))


def error_metric(error: float) -> Metric:
    """Return the metric of a step's difference from the parallel form."""
    finite = math.isfinite(error)
    return Metric(
        value=error if finite else None,
        unit="ratio",
        better="lower",
        why_null=None if finite else f"it is {error}",
    )


def _tensors(state: Any) -> Iterator[Tensor]:
    """Yield the tensors of a state, however nested."""
    if isinstance(state, Tensor):
        yield state
    elif isinstance(state, (tuple, list)):
        for part in state:
            yield from _tensors(part)
