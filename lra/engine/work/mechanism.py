"""Class and device of a cell's mechanism, as torch needs them."""

from __future__ import annotations

import msgspec
import torch

from attention_impls.contract import Layer, MechanismConfig
from lra.adapters.adapt import configure, load
from lra.core import catalogue
from lra.core.errors import LraError, UsageError
from lra.core.protocol import Mechanism


def load_mechanism(mechanism: Mechanism, reference: str) -> tuple[type[Layer], MechanismConfig]:
    """Return the class behind a mechanism, with its claims in this configuration, and the
    configuration."""
    layer = load(catalogue.find("mechanism", reference or mechanism.name))
    try:
        config = msgspec.convert(mechanism.config, layer.Config)
    except msgspec.ValidationError as error:
        raise UsageError(f"mechanism '{mechanism.name}': {error}; fix its settings") from error
    return configure(layer, config), config


def device(name: str) -> torch.device:
    """Return the device of a name; raises `LraError` where there is none."""
    if name == "cuda" and not torch.cuda.is_available():
        raise LraError("torch finds no GPU here; choose --device cpu or install a build for CUDA")
    return torch.device(name)
