"""Mechanisms whose accuracy and whose speed come from different settings, said in a sentence."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable

from lra.report.entries import Entry, Origin
from lra.report.words import differing, flat


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
