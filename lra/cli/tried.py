"""The extent of what `lra verify` tried, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lra.core.findings import Finding, Tried

COUNTED = ("held", "failed", "unclaimed", "reported")
"""Verdicts that rest on cases; a law that is not claimed says nothing about sizes."""

MOST_REASONS = 3
"""Largest number of reasons against sizes that are printed."""


def describe_extent(findings: Iterable[Finding]) -> Iterator[str]:
    """Yield a line on all that laws were tried on, and one for each reason that kept sizes out."""
    tried = [one.tried for one in findings if one.tried is not None and one.verdict in COUNTED]
    if not tried:
        return
    dtypes = sorted({dtype for one in tried for dtype in one.dtypes}, key=_by_precision)
    words = [
        _count(tried, "lengths", "length {}", "lengths {}"),
        _listed(dtypes),
        _count(tried, "heads", "heads: {}", "{} heads"),
        _count(tried, "head_widths", "of width {}", "of widths {}"),
        _count(tried, "batches", "batches of {}", "batches of {}"),
    ]
    if rate := max(one.dropout for one in tried):
        words.append(f"dropout {rate:g}")
    yield "tried: " + ", ".join(word for word in words if word)
    yield from _reasons(tried)


def _count(tried: list[Tried], name: str, one: str, several: str) -> str:
    """Return the least and the greatest of a size, in words."""
    ranges = [found for each in tried if (found := getattr(each, name)) is not None]
    if not ranges:
        return ""
    least, most = min(low for low, _ in ranges), max(high for _, high in ranges)
    return one.format(f"{most:,}") if least == most else several.format(f"{least:,} to {most:,}")


def _listed(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


def _by_precision(dtype: str) -> tuple[int, str]:
    """Order types from the widest to the narrowest."""
    return -int("".join(filter(str.isdigit, dtype)) or 0), dtype


def _reasons(tried: list[Tried]) -> Iterator[str]:
    """Yield the sizes that could not be tried, once for each reason, with the shortest of them."""
    sizes_by_reason: dict[str, list[str]] = {}
    for sizes, why in sorted({own for one in tried for own in one.refusals.items()}):
        sizes_by_reason.setdefault(why, []).append(sizes)
    for why, all_sizes in list(sizes_by_reason.items())[:MOST_REASONS]:
        yield f"not tried with {min(all_sizes, key=len)}: {why}"
    if (more := len(sizes_by_reason) - MOST_REASONS) > 0:
        yield f"nor in other sizes, for {more} reasons more"
