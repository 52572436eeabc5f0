"""Configurations of mechanisms: what of them is in force, and what tells several apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lra.core.protocol import Mechanism
from lra.report.words import differing, flat, plain, visible

_SWITCHES: dict[str, Any] = {
    "mask_form": "",
    "mask_per_head": False,
    "always_mask": False,
    "cross": True,
    "pad_to": 1,
    "options": {},
}
"""How an adapter calls somebody's class, when nobody chose otherwise. Records hold every default
filled in and not which they were, so they are repeated here."""
_CONFIGURED: dict[str, Any] = {
    **_SWITCHES,
    "mask_form": "additive",
    "mask_per_head": True,
}
"""The same where the class is built from a configuration object as Hugging Face's are."""
_BY_KIND = tuple(key for key in _SWITCHES if _SWITCHES[key] != _CONFIGURED[key])
"""What stands at a default or not according to the kind of adapter, where there are options: of
these there are two kinds, which a record does not tell apart."""


def in_force(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration without what is none and without an adapter's switches that stand at
    their defaults: records of an earlier version lack them. Configurations that differ stay so.
    """
    default: dict[str, Any] = {}
    if config.keys() >= {"mask_form", "mask_per_head", "always_mask"}:
        kept = _BY_KIND if "options" in config else ()
        default = {key: value for key, value in _SWITCHES.items() if key not in kept}
    return {
        key: value
        for key, value in config.items()
        if plain(value) != plain(None) and not (key in default and value == default[key])
    }


def chosen(config: Mapping[str, Any]) -> dict[str, str]:
    """Return as text what of a configuration is in force, and which kind's defaults are not."""
    default: dict[str, Any] = {}
    if "options" in config and config.keys() >= {"mask_form", "mask_per_head", "always_mask"}:
        kinds = [_CONFIGURED, _SWITCHES]
        default = max(kinds, key=lambda kind: sum(config[k] == kind.get(k) for k in config))
    said = {key: v for key, v in in_force(config).items() if v != default.get(key)}
    return flat(said)


def told_apart(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return, for each of several configurations, `key=value` of the keys in which they differ in
    force; what one of them lacks is none, or at its default."""
    settings = [flat(in_force(config)) for config in configs]
    default = {key: plain(_SWITCHES.get(key)) for one in settings for key in one}
    return differing([{**default, **one} for one in settings])


def labelled(mechanisms: Sequence[Mechanism]) -> list[str]:
    """Return each one's name, with its settings where several of that name differ."""
    labels = []
    for one in mechanisms:
        twins = [other.config for other in mechanisms if other.name == one.name]
        own = told_apart(twins)[twins.index(one.config)]
        labels.append(visible(f"{one.name} ({own})" if own else one.name))
    return labels
