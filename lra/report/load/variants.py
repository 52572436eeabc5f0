"""Configurations of mechanisms: their settings in force, and the differences between several."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from lra.core.catalogue import CYCLE
from lra.core.escape import escape_controls
from lra.core.protocol import Mechanism
from lra.report.words import differing, flat, leaves

_SWITCHES: dict[str, Any] = {
    "mask_form": "",
    "mask_per_head": False,
    "always_mask": False,
    "cross": True,
    "pad_to": 1,
    "options": {},
}
"""Defaults of an adapter's switches. Records hold every default filled in and not which ones were
defaults, so they are repeated here."""
_BY_KIND = ("mask_form", "mask_per_head")
"""Switches whose defaults depend on the kind of adapter, which a record does not tell: for classes
built from options they are either those above or `_CONFIGURED`."""
_CONFIGURED = ("additive", True)
"""Other defaults of the switches in `_BY_KIND`."""


def in_force(config: Mapping[str, Any], name: str = "") -> dict[str, Any]:
    """Return a configuration without empty values and without adapter switches at their defaults:
    records of an earlier version lack them. Different configurations stay different.

    A mechanism's `name` tells a cycle, whose configuration has that of each member by name.
    """
    if is_cycle(name, config):
        members = {member: in_force(own) for member, own in config.items()}
        return {member: own for member, own in members.items() if own}
    default: dict[str, Any] = {}
    if _is_adapted(config):
        kept = _BY_KIND if "options" in config else ()
        default = {key: value for key, value in _SWITCHES.items() if key not in kept}
    return {
        key: value
        for key, value in config.items()
        if not _is_absent(value) and not (key in default and _same(value, default[key]))
    }


def is_cycle(name: str, config: Mapping[str, Any]) -> bool:
    """Whether a configuration has that of each mechanism that a name joins; somebody's own name may
    have the sign in it, too."""
    return CYCLE in name and all(isinstance(own, Mapping) for own in config.values())


def _is_absent(value: Any) -> bool:
    return value is None or (isinstance(value, list | tuple | dict) and not value)


def _same(one: Any, other: Any) -> bool:
    """Whether two values are equal and of the same type: `True` is not 1."""
    return type(one) is type(other) and bool(one == other)


def chosen(config: Mapping[str, Any], name: str = "") -> dict[str, str]:
    """Return the chosen settings in force of a configuration, as text; of a cycle, after the name
    of the member.

    With options, the form of masks is left out where it is a default of some kind of adapter; else
    all of it is given, since the chosen part is unknown.
    """
    if is_cycle(name, config):
        return {
            f"{member}.{key}": text
            for member, own in config.items()
            for key, text in chosen(own).items()
        }
    said = in_force(config)
    if "options" in config and _is_adapted(config):
        masks = tuple(config[key] for key in _BY_KIND)
        if masks in (_CONFIGURED, tuple(_SWITCHES[key] for key in _BY_KIND)):
            said = {key: value for key, value in said.items() if key not in _BY_KIND}
    return flat(said)


def _is_adapted(config: Mapping[str, Any]) -> bool:
    """Whether it is the configuration of somebody's class, called through an adapter."""
    return config.keys() >= {"mask_form", "mask_per_head", "always_mask"}


def distinguishing_settings(configs: Sequence[Mapping[str, Any]], name: str = "") -> list[str]:
    """Return, for each of several configurations of a mechanism, `key=value` of the keys in which
    they differ in force; a key that one of them lacks is none, or at its default."""
    settings = [leaves(in_force(config, name)) for config in configs]
    of_members = any(is_cycle(name, config) for config in configs)
    default = {
        key: _SWITCHES.get(key.partition(".")[2] if of_members else key)
        for one in settings
        for key in one
    }
    return differing([{**default, **one} for one in settings])


def labelled(mechanisms: Sequence[Mechanism]) -> list[str]:
    """Return the name of each mechanism, with its settings where several of that name differ."""
    twins: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for one in mechanisms:
        twins[one.name].append(one.config)
    # In the order of twins, that of the mechanisms.
    apart = {name: iter(distinguishing_settings(configs, name)) for name, configs in twins.items()}
    return [
        escape_controls(f"{one.name} ({own})" if (own := next(apart[one.name])) else one.name)
        for one in mechanisms
    ]
