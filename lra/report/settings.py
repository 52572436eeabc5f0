"""Settings in words: which of them say something, and where training and timing differ in them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from lra.report.entries import Entry, Origin
from lra.report.words import differing, flat, in_force

_SWITCHES: dict[str, Any] = {
    "mask_form": "",
    "mask_per_head": False,
    "always_mask": False,
    "pad_to": 1,
    "options": {},
}
"""How an adapter calls somebody's class, when nobody chose otherwise."""
_CONFIGURED: dict[str, Any] = {
    **_SWITCHES,
    "mask_form": "additive",
    "mask_per_head": True,
}
"""The same where the class is built from a configuration object."""


def chosen(config: Mapping[str, Any]) -> dict[str, str]:
    """Return a configuration as text, without what is none and without an adapter's switches that
    stand at their defaults.

    Records hold every default filled in and not which they were, so those of the adapters are
    repeated here.
    """
    default: dict[str, Any] = {}
    if config.keys() >= {"mask_form", "mask_per_head", "always_mask"}:
        kinds = [_CONFIGURED, _SWITCHES] if "options" in config else [_SWITCHES]
        default = max(kinds, key=lambda kind: sum(config[k] == kind.get(k) for k in config))
    said = {key: v for key, v in in_force(config).items() if v != default.get(key)}
    return {key: text for key, text in flat(said).items() if key}


def trained_and_timed(entries: Iterable[Entry]) -> dict[tuple[str, str], str]:
    """Return how the settings of training and of timing differ, by scale and label.

    A scale fits a mechanism to its lengths (few features for short sequences); times and sizes
    are those of the paper's settings unless they are asked for. Settings that were not timed stand
    beside the only ones of the mechanism that were, if those were not trained.
    """
    trained: dict[tuple[str, str], Entry] = {}
    timed: dict[Origin, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for entry in sorted(entries, key=lambda entry: entry.origin == "run"):
        if entry.kind == "quality":
            trained[entry.scale, entry.label] = entry
        elif entry.kind == "efficiency":
            timed[entry.origin][entry.mechanism][entry.label] = entry.config
    sentences, labels = {}, {label for _, label in trained}
    for (scale, label), entry in sorted(trained.items()):
        config = entry.config
        beside = timed["run"][entry.mechanism] or timed["reference"][entry.mechanism]
        free = [one for name, one in beside.items() if name not in labels]
        other = beside.get(label, free[0] if len(free) == len(beside) == 1 else config)
        here, there = differing([flat(json.loads(c)) for c in (config, other)])
        if here != there:
            sentences[scale, label] = (
                f"{label} was trained at scale {scale} with {here}, and timed with {there}."
            )
    return sentences
