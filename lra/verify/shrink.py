"""Search for a smaller input that breaks a law in the same way, so that a printed case is small."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec

from lra.core.findings import Case, Finding
from lra.verify.case_check import why_unfit
from lra.verify.clear_difference import clearest, is_as_clear
from lra.verify.law import Law
from lra.verify.subject import Subject
from lra.verify.trial import try_case

BELOW = 40
"""Longest input up to which each length is tried."""

REQUEST = {"position": "none", "special": False, "mask": "none", "causal": False}
"""The plainest request: its fields are left out one by one."""

LONGER = (64, 65, 129, 257, 513)
"""Lengths tried beyond."""


def shrink(found: Finding, law: Law, subject: Subject) -> Finding:
    """Return the failure at the smallest input that shows it: in evaluation, the plainest sizes,
    one example, one head, fewer positions. An empty input is a question of its own."""
    found = clearest(_is_same_failure, found, law, subject)
    assert found.case is not None
    case, smallest = found.case, found
    for group in _groups(case):
        for change in group:
            smaller = msgspec.structs.replace(case, **change)
            if smaller == case:
                break
            if not law.takes(smaller) or subject.refuses(smaller):
                continue
            # Laws differ in which requests make sense to them.
            if change.keys() & REQUEST.keys() and why_unfit(law, replace(subject, only=smaller)):
                continue
            again = try_case(law, subject, [smaller])
            if _is_same_failure(again, found):
                case, smallest = smaller, again
                break
    return msgspec.structs.replace(smallest, cases=found.cases, tried=found.tried)


def _groups(case: Case) -> Iterator[list[dict[str, Any]]]:
    """Yield changes that make a case smaller or plainer, in groups of which the first that still
    fails is kept."""
    yield [{"training": False}]
    yield [{"dtype": "float64"}]
    yield from ([{name: plain}] for name, plain in REQUEST.items())
    # The first example of a mask may be one without padding.
    yield [{"batch": batch} for batch in range(1 if case.mask == "none" else 2, case.batch)]
    yield [{"layer": layer} for layer in range(case.layer)]
    yield [{"biases": "drawn"}]
    yield [{"heads": 1, "head_width": 8, "width": None, "kv_heads": None}]
    yield [
        {"head_width": width, "width": None} for width in (8, *range(1, min(8, case.head_width)))
    ]
    yield [{"width": None}]
    # Fewer heads of keys, too: they have to divide the others.
    yield [
        {"heads": heads, "kv_heads": groups}
        for heads in range(1, case.heads)
        for groups in {case.kv_heads: 1, None: 1}
    ]
    yield [{"kv_heads": None}]
    if case.m is not None:
        yield [{"m": m} for m in _shorter(case.m)]
    yield [{"n": n} for n in _shorter(case.n)]


def _shorter(length: int) -> Iterator[int]:
    yield from range(1, min(length, BELOW))
    yield from (one for one in LONGER if one < length)


def _is_same_failure(again: Finding, found: Finding) -> bool:
    """Whether two failures have the same words but for their numbers, and not one a difference that
    may be rounding."""
    alike = (again.verdict, again.ending) == (found.verdict, found.ending)
    alike &= is_as_clear(again.detail, found.detail)
    return alike and _without_numbers(again.detail) == _without_numbers(found.detail)


def _without_numbers(detail: str) -> str:
    """Leave numbers out, and their count in a row."""
    words = re.sub(r"-?\d+(\.\d+)?(e[-+]?\d+)?|\b(inf|nan)\b", "#", detail)
    return re.sub(r"#(, (#|\.\.\.))+", "#", words)
