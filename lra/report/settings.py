"""Mechanisms that were trained with other settings than they were timed with, in words."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from lra.report.configs import told_apart
from lra.report.entries import Entry, Origin
from lra.report.words import listing

_ONE_BY_ONE = 3
"""So many mechanisms of a scale get a sentence each."""


class Settings(NamedTuple):
    """Of one mechanism: those in which its training and its timing differ."""

    trained: str
    timed: str


Differences = Mapping[tuple[str, str], Settings]
"""By scale and label."""


def trained_and_timed(entries: Iterable[Entry]) -> dict[tuple[str, str], Settings]:
    """Return how the settings of training and of timing differ.

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
    found, labels = {}, {label for _, label in trained}
    for (scale, label), entry in sorted(trained.items()):
        config = entry.config
        beside = timed["run"][entry.mechanism] or timed["reference"][entry.mechanism]
        free = [one for name, one in beside.items() if name not in labels]
        other = beside.get(label, free[0] if len(free) == len(beside) == 1 else config)
        here, there = told_apart([json.loads(c) for c in (config, other)])
        if here != there:
            found[scale, label] = Settings(here, there)
    return found


def in_words(
    found: Differences, shown: Collection[tuple[str, str]], *, names_only: bool = False
) -> list[str]:
    """Say how settings of those `shown`, by scale and label, differ: at a scale where few of all
    `found` do one by one, else in a sentence; with `names_only` that one leaves out the settings.
    """
    scales: dict[str, dict[str, Settings]] = defaultdict(dict)
    for (scale, label), one in found.items():
        scales[scale][label] = one
    told = []
    for scale, everywhere in scales.items():
        own = {label: one for label, one in everywhere.items() if (scale, label) in shown}
        if len(everywhere) <= _ONE_BY_ONE:
            told += [
                f"{label} was trained at scale {scale} with {one.trained}, and timed with "
                f"{one.timed}."
                for label, one in own.items()
            ]
        elif own and names_only:
            told.append(
                f"Trained at scale {scale} and timed with other settings, which the tables name: "
                f"{listing([*own])}."
            )
        elif own:
            parts = [f"{label} with {one.trained} ({one.timed})" for label, one in own.items()]
            told.append(
                f"Trained at scale {scale}, and timed with the settings in brackets: "
                f"{'; '.join(parts)}."
            )
    return told
