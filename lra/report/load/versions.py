"""Versions of the code behind figures: those that measured them, and the features in which they
differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from lra.core.cells import BaselineCell, Cell, ProfileCell, QualityCell
from lra.core.hashing import value_hash
from lra.core.migrate import EARLIER
from lra.core.versions import EDITS
from lra.report.words import listing

Pairs = tuple[tuple[str, str], ...]
"""Pairs of feature and version, sorted; hashable, unlike a cell's mapping."""

_LEFT_OUT = ("declared", "look", "mechanism")
"""First parts of features that measure no figure: the mechanism's own, and the look at trained
attention."""
_DIGITS = 8
"""Shown digits of a hash."""


def pairs(cell: Cell) -> Pairs:
    """Return all versions of a cell."""
    return tuple(sorted((feature, str(version)) for feature, version in cell.versions.items()))


def measuring(cell: Cell) -> Pairs:
    """Return the versions of the code that measured a cell's figures, its data's included."""
    return tuple(pair for pair in pairs(cell) if _head(pair[0]) not in _LEFT_OUT)


def mechanism(cell: Cell) -> str:
    """Return the version of a cell's mechanism; empty where there is none."""
    own = [version for feature, version in pairs(cell) if _head(feature) == "mechanism"]
    return own[0] if own else ""


def data_pairs(cell: QualityCell | BaselineCell | ProfileCell) -> Pairs:
    """Return the version of a cell's data, in any order of its tokens."""
    own = f"data/{cell.data.task}"
    return among(pairs(cell), (own, f"{own}/read", f"{EARLIER}data"))


def data_hash(cell: QualityCell | BaselineCell | ProfileCell) -> str:
    """Return the hash of a cell's data: its specification, and the version that made it."""
    return value_hash([cell.data, data_pairs(cell)])


def apart(sides: Iterable[Pairs]) -> list[str]:
    """Return the features with different versions among these sides, sorted.

    A side without a feature does not differ in it, but for unchecked edits, and for features of an
    earlier protocol, which cannot be compared with today's.
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
    """Return whether versions are those of an earlier protocol."""
    return any(feature.startswith(EARLIER) for feature, _ in side)


def with_edits(side: Pairs) -> Pairs:
    """Return a side with an empty entry for edits where nothing was edited."""
    return side if EDITS in dict(side) else ((EDITS, ""), *side)


def among(side: Pairs, features: Collection[str]) -> Pairs:
    """Return the pairs of a side with the named features."""
    return tuple(pair for pair in side if pair[0] in features)


def text(side: Pairs) -> str:
    """Return versions as in report.csv: `data/text 1, train 1`."""
    return ", ".join(f"{feature} {version}" for feature, version in side)


def words(side: Pairs) -> str:
    """Return versions for people: `time 2`, `an earlier protocol (1a2b3c4d)`."""
    old = [version[:_DIGITS] for feature, version in side if feature.startswith(EARLIER)]
    if old:
        return f"an earlier protocol ({', '.join(old)})"
    return listing([f"{feature} {version[:_DIGITS]}" for feature, version in side])


def named(features: Iterable[str]) -> str:
    """Return features for people; those of an earlier protocol under that one name."""
    told = ["an earlier protocol" if f.startswith(EARLIER) else f for f in features]
    return listing(list(dict.fromkeys(told)))


def _head(feature: str) -> str:
    return feature.removeprefix(EARLIER).partition("/")[0]
