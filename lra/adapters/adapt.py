"""Layers of our contract, each made of somebody's class or function and the adapter that fits
it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple, cast

import msgspec
from torch import nn

from attention_impls.contract import Layer, MechanismConfig
from lra.adapters import core, module
from lra.adapters.assumptions import assumed
from lra.adapters.core import AdaptedCore
from lra.adapters.external import External, is_causal_by_pair_mask
from lra.adapters.hugging_face import FromConfig, HuggingFaceConfig
from lra.adapters.masks import MaskedConfig
from lra.adapters.module import AdaptedModule, ModuleConfig
from lra.adapters.xformers import AdaptedXformers, Component
from lra.core import loading, peers
from lra.core.cards import AttentionCard, Capabilities
from lra.core.catalogue import Target
from lra.core.errors import LraError, UsageError
from lra.core.peers import Peer


class Adapter(NamedTuple):
    """Adapter for one shape that attention comes in."""

    words: str
    layer: type[Layer]
    config: type[MaskedConfig]
    stranger: type[External]
    capabilities: Callable[[External], Capabilities]


CORE = Adapter(
    "a core, (B, H, N, K) in and out, between our projections",
    AdaptedCore, MaskedConfig, External, core.capabilities,
)  # fmt: skip
COMPONENT = Adapter(
    "a component of xFormers' registry, between our projections",
    AdaptedXformers, MaskedConfig, Component, core.capabilities,
)  # fmt: skip
MODULE = Adapter(
    "a module, (B, N, D) in and out", AdaptedModule, ModuleConfig, External, module.capabilities
)
CONFIGURED = Adapter(
    "a module, (B, N, D) in and out, built from a config",
    AdaptedModule, ModuleConfig, FromConfig, module.capabilities,
)  # fmt: skip
HUGGING_FACE = Adapter(
    "a module of Hugging Face's kind, built from a config",
    AdaptedModule, HuggingFaceConfig, FromConfig, module.capabilities,
)  # fmt: skip


def load(target: Target) -> type[Layer]:
    """Import a mechanism's module and return its class as a layer of our contract.

    Raises `UsageError` for a class that no adapter fits.
    """
    if target.is_peer:
        _require_package(peers.read(target.name).package, target.name)
    found = loading.load(target)
    if inspect.isclass(found) and issubclass(found, Layer):
        return found
    if target.ours:
        raise UsageError(f"{target.module} must define a Layer; see attention_impls/contract")
    return adapt(found, target.name, peers.read(target.name) if target.is_peer else None)


def _require_package(package: str, name: str) -> None:
    """Raise `LraError` where a peer's package is not installed: glue imports it late."""
    try:
        version(package)
    except PackageNotFoundError as error:
        raise LraError(
            f"{name} needs the package '{package}'; install the extra `peers`"
        ) from error


def adapt(found: Callable[..., Any], name: str, peer: Peer | None = None) -> type[Layer]:
    """Return a layer around somebody's class or function.

    Raises `UsageError` where it cannot be called, and for a class with parameters that torch would
    not find: training and counting it would say nothing.
    """
    if isinstance(found, nn.Module):
        raise UsageError(f"{name} is a module that is built already; name its class")
    is_module = inspect.isclass(found) and issubclass(found, nn.Module)
    home = str(getattr(found, "__module__", "")).partition(".")[0]
    if home in sys.stdlib_module_names and not is_module and _is_plain(found):
        raise UsageError(
            f"{name} is of Python's own module '{home}' and no attention; name a torch.nn.Module, "
            "or a function of q, k, v"
        )
    if inspect.isclass(found) and not is_module:
        raise UsageError(
            f"{name} is no torch.nn.Module, so nothing would find its parameters; derive it from "
            "torch.nn.Module, or name a function of q, k, v that uses it"
        )
    adapter = _adapter_for(found)
    stranger = adapter.stranger(found, name)
    if peer is not None:
        stranger = replace(
            stranger,
            settings=peer.settings,
            claims=peer.claims,
            package=peer.package,
            note=peer.note,
        )
    unmet = stranger.unmet(set(_settings_given(adapter, stranger)))
    if not stranger.call and not inspect.isclass(found):
        raise UsageError(
            f"{name} has no signature that can be read (it is written in C?); wrap it in a "
            "function of q, k, v"
        )
    if not stranger.first or unmet:
        asks = ", ".join(unmet) or "nothing that could be the input"
        raise UsageError(
            f"{name} cannot be called: it asks for {asks}; wrap it in a module with "
            "forward(x, mask=None), (B, N, D) in and out"
        )
    sizes, config = stranger.sizes, stranger.config(adapter.config)
    defaults = cast(MaskedConfig, config())
    card = AttentionCard(
        title=name,
        paper="",
        year=0,
        time="nothing",
        memory="nothing",
        linear=False,
        capabilities=_capabilities(adapter, stranger, defaults),
        assumed=tuple(_assumptions(adapter, stranger, defaults)),
    )
    members: dict[str, Any] = {
        "__doc__": inspect.getdoc(found) or name,
        "__module__": found.__module__,
        "adapter": adapter,
        "stranger": stranger,
        "card": card,
        "Config": config,
        "trials": tuple(config(**trial) for trial in (peer.trials if peer else ())),
        "name": name,
        "crosses_causally": is_causal_by_pair_mask(stranger),
        "square": issubclass(adapter.layer, AdaptedModule) and "head_width" not in sizes,
    }
    return cast(type[Layer], type(name, (adapter.layer,), members))


def _is_plain(found: Callable[..., Any]) -> bool:
    """Whether it is a class or a function. An object of another kind, such as a partial, has the
    name of its class's module."""
    return inspect.isclass(found) or inspect.isroutine(found)


def _adapter_for(found: Callable[..., Any]) -> Adapter:
    plain = External(found, "")
    by_head = "key" in plain.asks and "value" in plain.asks
    if inspect.isclass(found) and by_head and hasattr(found, "from_config"):
        return COMPONENT
    if not by_head and _is_built_from_config(plain):
        return HUGGING_FACE if plain.first == "hidden_states" else CONFIGURED
    if by_head and not {"width", "heads"} <= plain.sizes.keys():
        return CORE
    return MODULE


def _is_built_from_config(plain: External) -> bool:
    """Whether it takes a configuration object, which may have no default but None."""
    takes = plain.constructor.get("config")
    if takes is None or takes.default is takes.empty:
        return takes is not None
    try:
        return takes.default is None and inspect.isclass(FromConfig(plain.what, "").configuration)
    except UsageError:
        return False


def _settings_given(adapter: Adapter, stranger: External) -> Iterator[str]:
    yield stranger.first
    roles = {"key", "value", "key_mask", "rotary", "cosines", "sines"}
    if adapter.layer is not AdaptedModule:
        roles.add("pairs_mask")
    yield from (name for role, name in stranger.asks.items() if role in roles)


def _capabilities(adapter: Adapter, stranger: External, config: MaskedConfig) -> Capabilities:
    claims = _claims(adapter, stranger, config)
    return msgspec.structs.replace(adapter.capabilities(stranger), **claims)


def _claims(adapter: Adapter, stranger: External, config: MaskedConfig) -> dict[str, Any]:
    """Claims in place of those read from its signatures: a person's word comes last."""
    denied = adapter.capabilities(stranger).cross and not config.cross
    return {**stranger.claims, **({"cross": False} if denied else {})}


def configure(layer: type[Layer], config: MechanismConfig) -> type[Layer]:
    """Return the layer with a card of its claims in this configuration; a layer written for our
    contract claims the same in all of them."""
    adapter = getattr(layer, "adapter", None)
    if adapter is None:
        return layer
    can = _capabilities(adapter, layer.stranger, cast(MaskedConfig, config))  # type: ignore[attr-defined]
    if can == layer.card.capabilities:
        return layer
    members = {
        "__module__": layer.__module__,
        "card": msgspec.structs.replace(
            layer.card, capabilities=can, assumed=assumptions(layer, config)
        ),
    }
    return type(layer.__name__, (layer,), members)


def assumptions(layer: type[Layer], config: MechanismConfig) -> tuple[str, ...]:
    """Return what was read into the signatures of somebody's class in this configuration, in words;
    nothing for a layer written for our contract."""
    adapter = getattr(layer, "adapter", None)
    if adapter is None:
        return ()
    return tuple(_assumptions(adapter, layer.stranger, config))  # type: ignore[attr-defined, arg-type]


def _assumptions(adapter: Adapter, stranger: External, config: MaskedConfig) -> Iterator[str]:
    yield adapter.words
    yield from assumed(
        stranger,
        config,
        _claims(adapter, stranger, config),
        is_module=adapter.layer is AdaptedModule,
        crosses=_capabilities(adapter, stranger, config).cross,
    )
