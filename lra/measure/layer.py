"""The layer that a cell measures, as the owner of the parts that it would share in a model."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

from attention_impls.contract import Dims, Layer, MechanismConfig


def build(mechanism: type[Layer], dims: Dims, config: MechanismConfig, *, seed: int = 0) -> Layer:
    """Return a layer on the CPU, in float32; the seed draws all that is random in it.

    The parts that layers of a model share are its submodule: moved, cast, counted and cleared with
    it, once, as in a model.
    """
    torch.manual_seed(seed)
    shared: nn.Module | None = mechanism.build_shared(dims, config)
    layer = mechanism(dims, config, shared=shared, seed=seed)
    if shared is not None:
        layer.add_module("shared_by_all", shared)
    return layer


def used_parameters(layer: Layer) -> Iterator[nn.Parameter]:
    """Yield the parameters that a call reads: all but those that the layer declares unused."""
    for name, parameter in layer.named_parameters():
        if not name.startswith(layer.unused):
            yield parameter
