"""Mechanisms whose accuracy and whose speed come from different settings, said in a sentence."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable

from lra.report.entries import Entry
from lra.report.words import differing, flat


def trained_and_timed(entries: Iterable[Entry]) -> dict[str, str]:
    """Return, by label, how the settings of training and of timing differ.

    A scale fits a mechanism to its lengths (few features for short sequences); times and sizes
    are those of the paper's settings unless they are asked for.
    """
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for entry in entries:
        if entry.mechanism:
            found[entry.label][entry.kind] = entry.config
    sentences = {}
    for label, kinds in sorted(found.items()):
        if {"quality", "efficiency"} <= kinds.keys() and len(set(kinds.values())) > 1:
            configs = [flat(json.loads(kinds[kind])) for kind in ("quality", "efficiency")]
            trained, timed = differing(configs)
            sentences[label] = f"{label} was trained with {trained} and timed with {timed}."
    return sentences
