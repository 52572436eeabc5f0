"""Calls of as many positions at every length: many short examples in one, few long ones in another.

So short inputs fill a GPU as well, and lengths are compared at its full rate. Their batches differ
with their lengths; figures are told for one example, or each length would have tables of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence

from lra.report.entries import Entry

_OF_A_CALL = {
    "latency",
    "latency_wall",
    "energy",
    "energy_seconds",
    "operations",
    "declared_operations",
    "minimum_bytes",
    "peak_allocated_bytes",
    "peak_reserved_bytes",
    "peak_device_bytes",
    "peak_resident_bytes",
    "peak_tensor_bytes",
}
"""Metrics that are as many times as large as there are examples in a call."""


class OfExample(Entry, frozen=True, kw_only=True):
    """An entry whose figure is of one example of a call."""

    tokens: int
    """Positions of the whole call."""


def tokens_of(entry: Entry) -> int | None:
    """Return how many positions the calls have that an entry's table is of, if all have as many."""
    return entry.tokens if isinstance(entry, OfExample) else None


def by_tokens(entries: Sequence[Entry], key: Callable[[Entry], Hashable]) -> list[Entry]:
    """Return the entries, those of calls of as many positions as entries of one example.

    `key` is of what else must be alike. Lengths belong together where each has a batch of its own
    and the products are equal, for two batches of several examples at least. A call of one example
    as long as that counts there, and stays among others of one example as well.
    """
    alike: dict[Hashable, list[Entry]] = defaultdict(list)
    for entry in entries:
        alike[key(entry)].append(entry)
    found: list[Entry] = []
    for own in alike.values():
        together = _together(own)
        single = {e.length for e in own if e.batch == 1} - together
        for entry in own:
            batch = entry.batch or 1
            tokens = batch * entry.length
            if tokens in together:
                found.append(_of_one(entry, batch, tokens))
            if tokens not in together or (batch == 1 and single):
                found.append(entry)
    return found


def _together(entries: Sequence[Entry]) -> set[int]:
    """How many positions the calls have that belong together."""
    lengths: dict[int, set[int]] = defaultdict(set)
    for entry in entries:
        lengths[entry.batch or 1].add(entry.length)
    alone = [(batch, own) for batch, own in lengths.items() if batch > 1 and len(own) == 1]
    products = [batch * length for batch, own in alone for length in own]
    return {tokens for tokens in products if products.count(tokens) > 1}


def _of_one(entry: Entry, batch: int, tokens: int) -> OfExample:
    own = {name: getattr(entry, name) for name in entry.__struct_fields__}
    if entry.metric in _OF_A_CALL:
        for name in ("value", "q1", "q3", "minimum"):
            own[name] = None if own[name] is None else own[name] / batch
    return OfExample(**{**own, "batch": None}, tokens=tokens)
