"""Finds the adapter for somebody's class, and makes of both a layer of our contract."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

import msgspec

from attention_impls.contract import Layer, MechanismConfig
from lra.adapters import core, module
from lra.adapters.core import AdaptedCore, CoreConfig
from lra.adapters.hugging_face import AdaptedHuggingFace, FromConfig, HuggingFaceConfig
from lra.adapters.module import AdaptedModule, ModuleConfig
from lra.adapters.stranger import Stranger, by_pairs
from lra.adapters.xformers import AdaptedXformers, Component
from lra.core import catalogue, peers
from lra.core.cards import AttentionCard, Capabilities
from lra.core.catalogue import Target
from lra.core.errors import UsageError


class Adapter(NamedTuple):
    """One shape that attention comes in."""

    words: str
    layer: type[Layer]
    config: type[MechanismConfig]
    stranger: type[Stranger]
    capabilities: Callable[[Stranger], Capabilities]


CORE = Adapter(
    "a core, (B, H, N, K) in and out, between our projections",
    AdaptedCore, CoreConfig, Stranger, core.capabilities,
)  # fmt: skip
COMPONENT = Adapter(
    "a component of xFormers' registry, between our projections",
    AdaptedXformers, CoreConfig, Component, core.capabilities,
)  # fmt: skip
MODULE = Adapter(
    "a module, (B, N, D) in and out", AdaptedModule, ModuleConfig, Stranger, module.capabilities
)
HUGGING_FACE = Adapter(
    "a module of Hugging Face's kind, built from a config",
    AdaptedHuggingFace, HuggingFaceConfig, FromConfig, module.capabilities,
)  # fmt: skip


def load(target: Target) -> type[Layer]:
    """Import a mechanism's module and return its class as a layer of our contract.

    Raises `UsageError` for a class that no adapter fits.
    """
    found = catalogue.load(target)
    if inspect.isclass(found) and issubclass(found, Layer):
        return found
    if target.ours:
        raise UsageError(f"{target.module} must define a Layer; see attention_impls/contract")
    peer = peers.read(target.name) if target.is_peer else None
    settings, claims = ({}, {}) if peer is None else (peer.settings, peer.claims)
    return adapt(found, target.name, settings, claims)


def adapt(
    found: Callable[..., Any],
    name: str,
    settings: dict[str, Any] | None = None,
    claims: dict[str, Any] | None = None,
) -> type[Layer]:
    """Return a layer around somebody's class or function.

    Raises `UsageError` where it cannot be called.
    """
    adapter = _fitting(found)
    stranger = adapter.stranger(found, name, settings or {}, claims or {})
    unmet = stranger.unmet(set(_given(stranger)))
    if not stranger.first or unmet:
        asks = ", ".join(unmet) or "nothing that could be the input"
        raise UsageError(
            f"{name} cannot be called: it asks for {asks}; wrap it in a module with "
            "forward(x, mask=None), (B, N, D) in and out"
        )
    capabilities = msgspec.structs.replace(adapter.capabilities(stranger), **stranger.claims)
    card = AttentionCard(
        title=name,
        paper="",
        year=0,
        time="not declared",
        memory="not declared",
        linear=False,
        capabilities=capabilities,
        assumed=tuple(_assumed(adapter, stranger)),
    )
    sizes = stranger.sizes
    members: dict[str, Any] = {
        "__doc__": inspect.getdoc(found) or name,
        "__module__": found.__module__,
        "stranger": stranger,
        "card": card,
        "Config": stranger.config(adapter.config),
        "name": name,
        "crosses_causally": by_pairs(stranger),
        "square": issubclass(adapter.layer, AdaptedModule) and "head_width" not in sizes,
    }
    return cast(type[Layer], type(adapter.layer.__name__, (adapter.layer,), members))


def _fitting(found: Callable[..., Any]) -> Adapter:
    plain = Stranger(found, "")
    by_head = "key" in plain.asks and "value" in plain.asks
    if inspect.isclass(found) and by_head and hasattr(found, "from_config"):
        return COMPONENT
    if "config" in plain.constructor and plain.first == "hidden_states":
        return HUGGING_FACE
    if by_head and not {"width", "heads"} <= plain.sizes.keys():
        return CORE
    return MODULE


def _given(stranger: Stranger) -> Iterator[str]:
    yield stranger.first
    asks = stranger.asks
    yield from (asks[role] for role in ("key", "value") if role in asks)


def _assumed(adapter: Adapter, stranger: Stranger) -> Iterator[str]:
    """What was read into its signatures, in words."""
    yield adapter.words
    sizes, asks, claims = stranger.sizes, stranger.asks, stranger.claims
    if sizes:
        yield "built with " + ", ".join(f"{n} = the model's {r}" for r, n in sizes.items())
    masks = {role: name for role, name in asks.items() if role.endswith("mask")}
    for role, name in masks.items():
        yield f"{name} masks {_MASKS[role]}"
    if "causal" in sizes:
        yield f"two instances with the same parameters, {sizes['causal']} false and true"
    if claims:
        yield "taken to claim " + ", ".join(f"{key} = {value}" for key, value in claims.items())


_MASKS: dict[str, str] = {
    "key_mask": "padded keys",
    "source_mask": "padded keys of another sequence",
    "pairs_mask": "pairs",
}
