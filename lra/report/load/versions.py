"""Versions of the code behind figures: which measured them, and in which of them figures differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from lra.core.cells import BaselineCell, Cell, ProfileCell, QualityCell
from lra.core.hashing import value_hash
from lra.core.migrate import EARLIER
from lra.core.versions import EDITS
from lra.report.words import listing

Pairs = tuple[tuple[str, str], ...]
"""Feature and version, sorted; hashable, where a cell has a mapping."""

_LEFT_OUT = ("declared", "look", "mechanism")
"""Features of the mechanism, which answers, and the look at what was attended to, which no figure
comes of."""
_DIGITS = 8
"""Digits of a hash, for people."""


def pairs(cell: Cell) -> Pairs:
    """Return all versions that a cell holds."""
    return tuple(sorted((feature, str(version)) for feature, version in cell.versions.items()))


def measuring(cell: Cell) -> Pairs:
    """Return the versions of all that measured a cell's figures, its data's among them."""
    return tuple(pair for pair in pairs(cell) if _head(pair[0]) not in _LEFT_OUT)


def mechanism(cell: Cell) -> str:
    """Return the version of a cell's mechanism; empty where there is none."""
    own = [version for feature, version in pairs(cell) if _head(feature) == "mechanism"]
    return own[0] if own else ""


def data_pairs(cell: QualityCell | BaselineCell | ProfileCell) -> Pairs:
    """Return the version of a cell's data, in whatever order its tokens are."""
    own = f"data/{cell.data.task}"
    return among(pairs(cell), (own, f"{own}/read", f"{EARLIER}data"))


def data_hash(cell: QualityCell | BaselineCell | ProfileCell) -> str:
    """Return the hash of a cell's data: all that it was asked for, and the version that made it."""
    return value_hash([cell.data, data_pairs(cell)])


def apart(sides: Iterable[Pairs]) -> list[str]:
    """Return the features that not all sides have in one version, sorted.

    A feature that a side does not use sets it apart from none, but for unchecked edits, and for
    those of an earlier protocol, which cannot be held against today's.
    """
    found: dict[str, set[str]] = defaultdict(set)
    earlier, today = set[str](), False
    for side in sides:
        old = {feature for feature, _ in side if feature.startswith(EARLIER)}
        earlier |= old
        today = today or not old
        for feature, version in with_edits(side):
            found[feature].add(version)
    differing = {feature for feature, versions in found.items() if len(versions) > 1}
    return sorted(differing | (earlier if today else set()))


def is_earlier(side: Pairs) -> bool:
    """Return whether versions are of an earlier protocol."""
    return any(feature.startswith(EARLIER) for feature, _ in side)


def with_edits(side: Pairs) -> Pairs:
    """Return a side that says so too where nothing was edited."""
    return side if EDITS in dict(side) else ((EDITS, ""), *side)


def among(side: Pairs, features: Collection[str]) -> Pairs:
    """Return those pairs of a side whose features are named."""
    return tuple(pair for pair in side if pair[0] in features)


def text(side: Pairs) -> str:
    """Return versions as they stand in report.csv: `data/text 1, train 1`."""
    return ", ".join(f"{feature} {version}" for feature, version in side)


def words(side: Pairs) -> str:
    """Return versions for people: `time 2`, `an earlier protocol (1a2b3c4d)`."""
    old = [version[:_DIGITS] for feature, version in side if feature.startswith(EARLIER)]
    if old:
        return f"an earlier protocol ({', '.join(old)})"
    return listing([f"{feature} {version[:_DIGITS]}" for feature, version in side])


def named(features: Iterable[str]) -> str:
    """Return features for people; those of an earlier protocol by that name."""
    told = ["an earlier protocol" if f.startswith(EARLIER) else f for f in features]
    return listing(list(dict.fromkeys(told)))


def _head(feature: str) -> str:
    return feature.removeprefix(EARLIER).partition("/")[0]
