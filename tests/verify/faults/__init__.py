"""Mechanisms that are broken on purpose, each by a bug seen in the field; the kit must catch all.

Every file groups faults of one kind; every class says what is wrong with it.
"""

from verify.faults import (
    again,
    claims,
    combinations,
    corners,
    cost,
    drops,
    felt,
    future,
    habits,
    learning,
    meetings,
    numbers,
    padding,
    parts,
    pattern,
    precisions,
    ragged,
    sequels,
    sizes,
    specials,
    state,
    tables,
)

__all__ = [
    "again",
    "claims",
    "combinations",
    "corners",
    "cost",
    "drops",
    "felt",
    "future",
    "habits",
    "learning",
    "meetings",
    "numbers",
    "padding",
    "parts",
    "pattern",
    "precisions",
    "ragged",
    "sequels",
    "sizes",
    "specials",
    "state",
    "tables",
]
