"""Names of mechanisms that fit into a plot."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from lra.report.model import Row
from lra.report.rows import Key
from lra.report.words import shortened


def names(keys: Sequence[Key | Row]) -> list[str]:
    """Return the labels, with the origin where two rows share one."""
    labels = Counter(key.label for key in keys)
    return [
        f"{key.label} (reference)"
        if key.origin == "reference" and labels[key.label] > 1
        else key.label
        for key in keys
    ]


def short_names(keys: Sequence[Key | Row], most: int) -> list[str]:
    """Return the same in at most `most` characters: without its settings where a name is too long
    and stands for one row alone, else cut."""
    found = names(keys)
    rows: dict[str, list[int]] = defaultdict(list)
    for place, key in enumerate(keys):
        rows[key.mechanism].append(place)
    short = list(found)
    for mechanism, places in rows.items():
        # Rows of one mechanism are told apart by the settings that differ.
        own = shortened([found[n] for n in places], most)
        for n, text in zip(places, own, strict=True):
            short[n] = text if len(places) > 1 or text == found[n] else mechanism
    return shortened(short if len(set(short)) == len(set(found)) else found, most)


def hollow_note(keys: Iterable[Key]) -> str:
    """Return a caption's note on hollow reference rows; empty where there are none."""
    return " Hollow: reference." if any(key.origin == "reference" for key in keys) else ""
