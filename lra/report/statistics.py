"""Tests over seeds and ranks over tasks, for the rows of a table with several seeds."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean
from typing import NamedTuple

import msgspec
import pandas as pd

from lra.core.catalogue import CONTROLS, EXACT, NO_MIXING
from lra.report.accuracy import ACCURACY, Accuracies, scored
from lra.report.load.measurement import measured
from lra.report.load.select import Evidence
from lra.report.load.versions import Pairs, among, apart, measuring
from lra.report.rows import Key, of, row_keys
from lra.verdict.accuracy import (
    Difference,
    Ranks,
    average_ranks,
    holm_adjust,
    paired_difference,
)

LEVEL = 0.05
_Part = tuple[str, Pairs]
"""Protocol of a task, and versions of the measuring code."""
_BySeed = Mapping[_Part, Mapping[int, float]]


class Pair(NamedTuple):
    """Two rows that were tested, and whether they differ."""

    above: Key
    below: Key
    apart: bool


class Statistics(msgspec.Struct, frozen=True):
    """Comparisons of the rows of one table, over the tasks of its mean."""

    keys: tuple[Key, ...]
    """Rows with several seeds on every task, most accurate first."""
    means: dict[Key, float]
    against: dict[str, dict[Key, tuple[Difference, float]]]
    """Differences to exact attention and to no mixing, with p corrected for their number."""
    pairs: tuple[Pair, ...]
    """All pairs that share several seeds on each task, corrected for their number."""
    ranks: Ranks | None
    """Average ranks of rows but the controls, named by `rank_name`."""
    seed_distances: tuple[float, ...]
    """Distances between two seeds of one mechanism, in the mean over tasks."""

    @property
    def above(self) -> Counter[Key]:
        """Number of rows that each is better than."""
        return Counter(pair.above for pair in self.pairs if pair.apart)

    @property
    def below(self) -> Counter[Key]:
        """Number of rows that each is worse than."""
        return Counter(pair.below for pair in self.pairs if pair.apart)


def rank_name(key: Key) -> str:
    """Return the name of a row among the ranks."""
    return f"{key.origin} {key.variant}"


def statistics(evidence: Evidence, scores: Accuracies) -> Statistics | None:
    """Return the statistics of accuracies; None where fewer than two rows have several seeds."""
    columns = scores.averaged or scores.columns[: len(scores.columns) == 1]
    if scores.metric != ACCURACY or not columns:
        return None
    wanted = {column.protocol for column in columns}
    own = scored(evidence, scores)
    own = own[own["protocol"].isin(wanted) & own["value"].notna()]
    ids = list(zip(own["origin"], own["record"], strict=True))
    measured_by = [measuring(measured(evidence.records[id])) for id in ids]
    features = apart(set(measured_by))
    # No test compares two versions of the measuring code.
    versions = [among(pairs, features) for pairs in measured_by]
    parts = list(zip(own["protocol"], versions, strict=True))
    own = own.assign(part=pd.Series(parts, own.index, dtype=object))
    known = {key: _by_seed(of(own, key)) for key in row_keys(own)}
    known = {key: one for key, one in known.items() if _has_several(one, wanted)}
    if len(known) < 2:
        return None
    means = {
        key: fmean(fmean(seeds.values()) for seeds in _merged(one).values())
        for key, one in known.items()
    }
    order = sorted(known, key=lambda key: (-means[key], key.origin != "run", key.variant))
    grain = 1 / min(column.rows.test for column in columns)
    return Statistics(
        keys=tuple(order),
        means=means,
        against={
            name: _against(known, anchor, order, grain)
            for name in (EXACT, NO_MIXING)
            if (anchor := _anchor(order, name))
        },
        pairs=tuple(_pairs(known, grain)),
        ranks=average_ranks(
            {rank_name(key): _merged(known[key]) for key in order if key.mechanism not in CONTROLS}
        ),
        seed_distances=tuple(d for key in order for d in _seed_distances(known[key])),
    )


def _anchor(order: Sequence[Key], name: str) -> Key | None:
    """Best row of a mechanism, the run's before the reference's."""
    own = [key for key in order if key.mechanism == name]
    return min(own, key=lambda key: key.origin != "run", default=None)


def _by_seed(own: pd.DataFrame) -> dict[_Part, dict[int, float]]:
    """Accuracies by task and version of the measuring code, then by seed."""
    found: dict[_Part, dict[int, float]] = defaultdict(dict)
    for part, seed, value in zip(own["part"], own["seed"], own["value"], strict=True):
        found[part][int(seed)] = float(value)
    return dict(found)


def _merged(one: _BySeed) -> dict[str, dict[int, float]]:
    """Accuracies by task alone, then by seed."""
    found: dict[str, dict[int, float]] = defaultdict(dict)
    for (task, _), seeds in one.items():
        found[task] |= seeds
    return dict(found)


def _has_several(one: _BySeed, protocols: set[str]) -> bool:
    by_task = _merged(one)
    return by_task.keys() == protocols and all(len(seeds) > 1 for seeds in by_task.values())


def _against(
    known: Mapping[Key, _BySeed], anchor: Key, order: Sequence[Key], grain: float
) -> dict[Key, tuple[Difference, float]]:
    found = {
        key: difference
        for key in order
        if key != anchor
        and known[key].keys() == known[anchor].keys()
        and (difference := paired_difference(known[key], known[anchor], grain)) is not None
        and difference.p is not None
    }
    corrected = holm_adjust([one.p for one in found.values() if one.p is not None])
    return {key: (one, p) for (key, one), p in zip(found.items(), corrected, strict=True)}


def _pairs(known: Mapping[Key, _BySeed], grain: float) -> list[Pair]:
    pairs, p = [], []
    for one, other in combinations(known, 2):
        alike = known[one].keys() == known[other].keys()
        found = paired_difference(known[one], known[other], grain) if alike else None
        if found is not None and found.p is not None:
            pairs.append((one, other) if found.value > 0 else (other, one))
            p.append(found.p)
    return [
        Pair(above, below, q < LEVEL)
        for (above, below), q in zip(pairs, holm_adjust(p), strict=True)
    ]


def _seed_distances(one: _BySeed) -> list[float]:
    by_task = _merged(one)
    shared = sorted(set[int].intersection(*(set(seeds) for seeds in by_task.values())))
    means = [fmean(task[seed] for task in by_task.values()) for seed in shared]
    return [abs(first - second) for first, second in combinations(means, 2)]
