"""Sizes of differences in what laws say: the smallest input shown must not differ by rounding."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from lra.core.findings import Finding
from lra.verify.law import Law
from lra.verify.rotated_sizes import in_rotation
from lra.verify.subject import Subject
from lra.verify.trial import try_case

CLEAR = 1e-2
"""Difference, relative to the largest output or 1, that no rounding makes."""

SHARE = 1e-2
"""Share of the difference found first that a smaller input must still show, where that is less."""

_DIFFERENCE = re.compile(r"\bby (\d+(?:\.\d+)?(?:e[-+]?\d+)?|inf|nan)\b(?!.*\bby \d)")
"""Size of the difference that a law names last."""


def is_as_clear(smaller: str, found: str) -> bool:
    """Return whether the words on a smaller input name a difference that is as little due to
    rounding as that of the words on the input found first; true where either names none."""
    sizes = [_DIFFERENCE.search(words) for words in (smaller, found)]
    if not all(sizes):
        return True
    least, first = (float(size[1]) for size in sizes if size)
    return not least < min(CLEAR, SHARE * first)


def clearest(
    is_same: Callable[[Finding, Finding], bool],
    found: Finding,
    law: Law,
    subject: Subject,
) -> Finding:
    """Return the first failure of the same kind whose difference no rounding makes; the one found
    where there is none, or where that is clear already."""
    size = _DIFFERENCE.search(found.detail)
    if size is None or not float(size[1]) < CLEAR:
        return found
    for case in in_rotation(law, subject, law.cases(subject)):
        again = try_case(law, subject, [case])
        size = _DIFFERENCE.search(again.detail)
        if size is not None and float(size[1]) >= CLEAR and is_same(again, found):
            return msgspec.structs.replace(again, cases=found.cases)
    return found
