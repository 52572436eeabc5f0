"""Mechanisms that were trained with other settings than they were timed with, in words."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from lra.report.entries import Entry, Origin
from lra.report.mechanisms.configs import told_apart
from lra.report.words import count, listing

_ONE_BY_ONE = 3
"""So many mechanisms of a scale get a sentence each."""


class Settings(NamedTuple):
    """Of one mechanism: those in which its training and its timing differ."""

    trained: str
    timed: str


Differences = Mapping[tuple[str, str], Settings]
"""By scale and label."""
StandIns = Mapping[tuple[str, Origin], str]
"""Whose timings stand for settings of a mechanism that were not timed, by it and origin."""


def trained_and_timed(entries: Iterable[Entry]) -> dict[tuple[str, str], Settings]:
    """Return how the settings of training and of timing differ.

    A scale fits a mechanism to its lengths (few features for short sequences); times and sizes
    are those of the paper's settings unless they are asked for. Settings that were not timed stand
    beside their mechanism's stand-in.
    """
    entries = list(entries)
    trained: dict[tuple[str, str], Entry] = {}
    timed: dict[Origin, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for entry in sorted(entries, key=lambda entry: entry.origin == "run"):
        if entry.kind == "quality":
            trained[entry.scale, entry.label] = entry
        elif entry.kind == "efficiency":
            timed[entry.origin][entry.mechanism][entry.label] = entry.config
    instead = {scale: stand_ins(entries, scale) for scale in {scale for scale, _ in trained}}
    found = {}
    for (scale, label), entry in sorted(trained.items()):
        origin: Origin = "run" if timed["run"][entry.mechanism] else "reference"
        beside = timed[origin][entry.mechanism]
        shown = label if label in beside else instead[scale].get((entry.mechanism, origin), "")
        other = beside.get(shown, entry.config)
        here, there = told_apart([json.loads(c) for c in (entry.config, other)])
        if here != there:
            found[scale, label] = Settings(here, there)
    return found


def stand_ins(entries: Iterable[Entry], scale: str) -> dict[tuple[str, Origin], str]:
    """Return whose timings stand for those of settings that were trained at a scale and not timed:
    by mechanism and origin, the label that was timed at the most lengths.

    A mechanism is left out where two were at as many, or where one of those timed was trained at
    that scale, too.
    """
    trained: set[str] = set()
    lengths: dict[tuple[str, Origin], dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for entry in entries:
        if entry.kind == "quality" and entry.scale == scale:
            trained.add(entry.label)
        elif entry.kind == "efficiency":
            own = lengths[entry.mechanism, entry.origin][entry.label]
            own |= set() if entry.value is None else {entry.length}
    found = {}
    for key, timed in lengths.items():
        most = max(map(len, timed.values()))
        first, *others = [label for label, own in timed.items() if len(own) == most]
        if not others and trained.isdisjoint(timed):
            found[key] = first
    return found


def in_words(
    found: Differences, shown: Collection[tuple[str, str]], *, briefly: bool = False
) -> list[str]:
    """Say how settings of those `shown`, by scale and label, differ: at a scale where few of all
    `found` do one by one, else in a sentence; with `briefly` that one names at most three and no
    settings.
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
        elif own and briefly:
            few = len(own) <= _ONE_BY_ONE
            names = listing([*own]) if few else count(len(own), "mechanism")
            told.append(
                f"Trained at scale {scale} and timed with other settings, which the tables name: "
                f"{names}."
            )
        elif own:
            parts = [f"{label} with {one.trained} ({one.timed})" for label, one in own.items()]
            told.append(
                f"Trained at scale {scale}, and timed with the settings in brackets: "
                f"{'; '.join(parts)}."
            )
    return told
