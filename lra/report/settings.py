"""Mechanisms whose accuracy and whose speed come from different settings, said in a sentence."""

from __future__ import annotations

import json
from collections.abc import Iterable

from lra.report.entries import Entry
from lra.report.words import differing, flat


def trained_and_timed(entries: Iterable[Entry]) -> dict[tuple[str, str], str]:
    """Return how the settings of training and of timing differ, by scale and label.

    A scale fits a mechanism to its lengths (few features for short sequences); times and sizes
    are those of the paper's settings unless they are asked for.
    """
    trained: dict[tuple[str, str], str] = {}
    timed: dict[str, str] = {}
    for entry in entries:
        if entry.kind == "quality":
            trained[entry.scale, entry.label] = entry.config
        elif entry.kind == "efficiency":
            timed[entry.label] = entry.config
    sentences = {}
    for (scale, label), config in sorted(trained.items()):
        if timed.get(label, config) != config:
            here, there = differing([flat(json.loads(c)) for c in (config, timed[label])])
            sentences[scale, label] = (
                f"{label} was trained at scale {scale} with {here}, and timed with {there}."
            )
    return sentences
