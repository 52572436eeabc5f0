"""Class and device of a cell's mechanism, as torch needs them."""

from __future__ import annotations

from typing import cast

import msgspec
import torch
from msgspec import UNSET

from attention_impls.contract import Layer, MechanismConfig, Position
from lra.adapters.adapt import configure, load
from lra.core import catalogue, loading
from lra.core.errors import LraError, UsageError
from lra.core.protocol import Mechanism, ModelSpec
from lra.models.language import Slots
from lra.models.layers import Layers, Member
from lra.training.setup import Network


def load_mechanism(mechanism: Mechanism, reference: str) -> tuple[type[Layer], MechanismConfig]:
    """Return the class behind a mechanism, with its claims in this configuration, and the
    configuration."""
    layer = load(catalogue.find("mechanism", reference or mechanism.name))
    try:
        config = msgspec.convert(mechanism.config, layer.Config)
    except msgspec.ValidationError as error:
        raise UsageError(f"mechanism '{mechanism.name}': {error}; fix its settings") from error
    return configure(layer, config), config


def load_layers(mechanism: Mechanism, reference: str = "") -> Layers:
    """Return a mechanism as the layers of a stack, or several in turns."""
    target = catalogue.find("mechanism", reference or mechanism.name)
    if not target.members:
        return Layers.of(*load_mechanism(mechanism, reference))
    return Layers(
        tuple(
            Member(*load_mechanism(Mechanism(name=one.name, config=config), one.reference))
            for one in target.members
            for config in [mechanism.config[one.name]]
        )
    )


def load_network(spec: ModelSpec, mechanism: Mechanism, reference: str) -> Network:
    """Return the mechanisms and positions of a model around one that is measured."""
    own = load_layers(mechanism, reference)
    named = {} if spec.slots is UNSET else spec.slots
    slots = Slots(*(load_layers(named[one]) if one in named else own for one in Slots._fields))
    places = (
        spec.position,
        spec.position if spec.decoder_position is UNSET else spec.decoder_position,
    )
    source, target = (
        cast(type[Position], loading.load(catalogue.find("position", name))) for name in places
    )
    return Network(slots, (source, target))


def device(name: str) -> torch.device:
    """Return the device of a name; raises `LraError` where there is none."""
    if name == "cuda" and not torch.cuda.is_available():
        raise LraError("torch finds no GPU here; choose --device cpu or install a build for CUDA")
    return torch.device(name)
