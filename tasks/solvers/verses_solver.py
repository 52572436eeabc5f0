"""Tells a poem's form by reading it: which words of the first two verses return in which of the
last two."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_SPACE, _NEWLINE = b" ", b"\n"


def told_form(tokens: npt.NDArray[np.integer], word: int) -> int:
    """Return 1 (ABAB) or 0 (ABBA) for a poem of bytes + 1, its words `word` bytes long: the form
    that more of its words have."""
    poem = (tokens - 1).astype(np.uint8).tobytes()
    lines = poem.replace(_SPACE, b"").rstrip(_NEWLINE).split(_NEWLINE)
    first, second, third, fourth = (
        {line[place : place + word] for place in range(0, len(line), word)}
        for line in (*lines[:2], *lines[-2:])
    )
    straight = len(first & third) + len(second & fourth)
    crossed = len(first & fourth) + len(second & third)
    return int(straight > crossed)
