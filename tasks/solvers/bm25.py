"""The ranking of parts of a text by the words of a query: BM25, Robertson et al., TREC-3, 1994.

A word counts the more often it stands in a part, the shorter that part is, and in the fewer parts
it stands. Words are runs of letters, without regard to case.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import pairwise

_SATURATION, _BY_LENGTH = 1.5, 0.75
"""The usual k1 and b."""
_WORD = re.compile(r"[^\W\d_]+")


def best_part(query: bytes, text: bytes, parts: int) -> int:
    """Return the part of a text, cut in `parts` of equally many bytes, that fits a query best; of
    parts that fit as well the first."""
    counts = [Counter(_words(part)) for part in equal_parts(text, parts)]
    lengths = [count.total() for count in counts]
    mean = max(sum(lengths) / parts, 1.0)
    scores = [0.0] * parts
    for word in _words(query):
        held = sum(word in count for count in counts)
        rarity = math.log1p((parts - held + 0.5) / (held + 0.5))
        for part, (count, length) in enumerate(zip(counts, lengths, strict=True)):
            often = count[word]
            least = _SATURATION * (1 - _BY_LENGTH + _BY_LENGTH * length / mean)
            scores[part] += rarity * often * (_SATURATION + 1) / (often + least)
    return max(range(parts), key=scores.__getitem__)


def equal_parts(text: bytes, parts: int) -> list[bytes]:
    """Return a text in parts: byte b of n is in part b * parts // n."""
    edges = [-(-part * len(text) // parts) for part in range(parts + 1)]
    return [text[first:last] for first, last in pairwise(edges)]


def _words(text: bytes) -> list[str]:
    return _WORD.findall(text.decode("utf-8", "replace").lower())
