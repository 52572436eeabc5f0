"""Names of mechanisms as a plot has room for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from lra.report.rows import Key
from lra.report.words import shortened


def names(keys: Sequence[Key]) -> list[str]:
    """Return the labels, with the origin where two rows share one."""
    labels = Counter(key.label for key in keys)
    return [
        f"{key.label} (reference)"
        if key.origin == "reference" and labels[key.label] > 1
        else key.label
        for key in keys
    ]


def short_names(keys: Sequence[Key], most: int) -> list[str]:
    """Return the same in at most `most` characters: without its settings where a name is too long
    and stands for one row alone, else cut."""
    found = names(keys)
    alone = Counter(key.mechanism for key in keys)
    return shortened(
        [
            key.mechanism if len(name) > most and alone[key.mechanism] == 1 else name
            for key, name in zip(keys, found, strict=True)
        ],
        most,
    )


def hollow_note(keys: Iterable[Key]) -> str:
    """Return what a caption adds where reference rows are drawn hollow; empty where none is."""
    return " Hollow: reference." if any(key.origin == "reference" for key in keys) else ""
