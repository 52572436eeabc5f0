"""Configurations of mechanisms: what of them is in force, and what tells several apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from lra.core.escape import escape_controls
from lra.core.protocol import Mechanism
from lra.report.words import differing, flat, plain

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
_BY_KIND = ("mask_form", "mask_per_head")
"""Those of which classes that are built from options have either the defaults above or others,
according to the kind of adapter, which a record does not tell."""
_CONFIGURED = ("additive", True)
"""Those others."""


def in_force(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration without what is none and without an adapter's switches that stand at
    their defaults: records of an earlier version lack them. Configurations that differ stay so.
    """
    default: dict[str, Any] = {}
    if _is_adapted(config):
        kept = _BY_KIND if "options" in config else ()
        default = {key: value for key, value in _SWITCHES.items() if key not in kept}
    return {
        key: value
        for key, value in config.items()
        if not _is_absent(value) and not (key in default and _same(value, default[key]))
    }


def _is_absent(value: Any) -> bool:
    return value is None or (isinstance(value, list | tuple | dict) and not value)


def _same(one: Any, other: Any) -> bool:
    """Whether two values are equal and of one type: `True` is not 1."""
    return type(one) is type(other) and bool(one == other)


def chosen(config: Mapping[str, Any]) -> dict[str, str]:
    """Return as text what of a configuration is in force and was chosen.

    With options, how masks are given is left out where it is the default of one kind of adapter;
    else all of it is said, as it is unknown which part was chosen.
    """
    said = in_force(config)
    if "options" in config and _is_adapted(config):
        masks = tuple(config[key] for key in _BY_KIND)
        if masks in (_CONFIGURED, tuple(_SWITCHES[key] for key in _BY_KIND)):
            said = {key: value for key, value in said.items() if key not in _BY_KIND}
    return flat(said)


def _is_adapted(config: Mapping[str, Any]) -> bool:
    """Whether it is of somebody's class, called through an adapter."""
    return config.keys() >= {"mask_form", "mask_per_head", "always_mask"}


def told_apart(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return, for each of several configurations, `key=value` of the keys in which they differ in
    force; what one of them lacks is none, or at its default."""
    settings = [flat(in_force(config)) for config in configs]
    default = {key: plain(_SWITCHES.get(key)) for one in settings for key in one}
    return differing([{**default, **one} for one in settings])


def labelled(mechanisms: Sequence[Mechanism]) -> list[str]:
    """Return each one's name, with its settings where several of that name differ."""
    twins: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for one in mechanisms:
        twins[one.name].append(one.config)
    # In the order of the twins, which is that of the mechanisms.
    apart = {name: iter(told_apart(configs)) for name, configs in twins.items()}
    return [
        escape_controls(f"{one.name} ({own})" if (own := next(apart[one.name])) else one.name)
        for one in mechanisms
    ]
