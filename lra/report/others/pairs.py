"""Which of ours stands beside which public implementation, and what both cost in one round."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Sequence
from itertools import chain

import msgspec

from lra.core import peers
from lra.core.peers import Peer
from lra.report.costs.derived import why_none
from lra.report.entries import Busy, Entry
from lra.report.rows import EXACT, NO_MIXING, by_length, torn
from lra.report.table import sorted_groups
from lra.report.words import flat, plain
from lra.verdict.peer_ratio import Costs

_PADDING = 1.05
"""So many times as long as its blocks need may be what theirs is given."""


class Pair(msgspec.Struct, frozen=True):
    """A mechanism and a public implementation of it, both with one configuration."""

    ours: tuple[Entry, ...]
    theirs: tuple[Entry, ...]
    peer: Peer
    alike: tuple[str, ...]
    """Settings in which both agree, in words."""
    unlike: tuple[str, ...]
    """Settings that should agree and do not."""

    def burdens(self, length: int) -> tuple[str, ...]:
        """Return what our adapter has theirs do for nothing, in words: where nothing is padded, as
        in timings, a mask, and more padding than its blocks need."""
        there, said = _settings(self.theirs[0]), []
        if there.get("always_mask") == plain(True):
            said.append("theirs gets a mask though nothing is padded (always_mask)")
        blocks = [int(there[key]) * n for key, n in self.peer.multiples.items() if key in there]
        needed = _padded(length, math.lcm(*blocks))
        given = _padded(length, int(there.get("pad_to", 1)))
        if given > _PADDING * needed:
            said.append(f"theirs is padded to {given}; its blocks fill {needed} (pad_to)")
        return tuple(said)


class Rounds(msgspec.Struct, frozen=True):
    """One pair at one length: costs by replicate."""

    ours: Costs
    theirs: Costs
    floor: Costs
    exact: Costs
    disturbed: int = 0
    """Rounds left out, as the machine was busy."""
    torn: int = 0
    """Rounds left out, as their processes ran at different times."""
    floored: bool = True
    """Whether the floor was measured at all."""


def pairs_of(entries: Sequence[Entry]) -> list[Pair]:
    """Return each configuration of a peer beside those of its counterpart, at a common length, that
    do the same work; or all of them where none does."""
    by_label = {label: tuple(own) for (label,), own in sorted_groups(entries, lambda e: (e.label,))}
    known, pairs = set(peers.names()), []
    for theirs in by_label.values():
        if theirs[0].mechanism not in known:
            continue
        peer = peers.read(theirs[0].mechanism)
        both = [
            Pair(ours, theirs, peer, *_matched(ours[0], theirs[0], peer))
            for ours in by_label.values()
            if ours[0].mechanism == peer.counterpart
            and {e.length for e in ours} & {e.length for e in theirs}
        ]
        pairs += [pair for pair in both if not pair.unlike] or both
    return sorted(pairs, key=lambda pair: (pair.ours[0].label, pair.theirs[0].label))


def _matched(ours: Entry, theirs: Entry, peer: Peer) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Settings in which both agree, and in which they should; of a peer that cannot be imported
    nothing is known."""
    here, there = _settings(ours), _settings(theirs)
    alike, unlike = [], []
    for own, other in peer.matching.items() if there else ():
        mine, other_one = here.get(own, plain(None)), there.get(other, plain(None))
        if mine == other_one:
            alike.append(f"{own} = {other} = {mine}")
        else:
            unlike.append(f"{own} {mine} here, {other} {other_one} there")
    for own, wanted in peer.requires.items():
        if (mine := here.get(own, plain(None))) != plain(wanted):
            unlike.append(f"{own} {mine} here, which does as theirs at {plain(wanted)} alone")
    return tuple(alike), tuple(unlike)


def _padded(length: int, multiple: int) -> int:
    return length + -length % multiple


def _settings(entry: Entry) -> dict[str, str]:
    return flat(json.loads(entry.config)) if entry.config else {}


def rounds_of(
    pair: Pair, length: int, entries: Sequence[Entry], metric: str, busy: Busy | None
) -> Rounds:
    """Return the costs of one metric, without the rounds in which ours, theirs or the floor was
    disturbed or ran apart from the others, and without those of exact attention that did.

    `busy` is None for sizes, which no busy machine changes.
    """

    def of(own: Iterable[Entry]) -> list[Entry]:
        return [e for e in own if e.metric == metric and e.length == length]

    sides = [of(pair.ours), of(pair.theirs), of(e for e in entries if e.mechanism == NO_MIXING)]
    exact = of(e for e in entries if e.mechanism == EXACT)
    ours, theirs, floor, fused = (dict(by_length(own).get(length, {})) for own in (*sides, exact))
    if busy is None:
        return Rounds(ours, theirs, floor, fused, floored=bool(floor))
    both, loud = ours.keys() & theirs.keys(), {(e.origin, e.record) for e in chain(*sides, exact)}
    loud &= set(busy)
    disturbed = both & {e.replicate or 0 for e in chain(*sides) if (e.origin, e.record) in loud}
    apart = (both & torn(*sides)) - disturbed
    useless = {e.replicate or 0 for e in exact if (e.origin, e.record) in loud}
    useless |= torn(*sides, exact)

    def kept(costs: Costs, gone: Collection[int]) -> Costs:
        return {r: cost for r, cost in costs.items() if r not in gone}

    gone = disturbed | apart
    return Rounds(
        ours=kept(ours, gone),
        theirs=kept(theirs, gone),
        floor=kept(floor, gone),
        exact=kept(fused, useless),
        disturbed=len(disturbed),
        torn=len(apart),
        floored=bool(floor),
    )


def why_not(pair: Pair, length: int, metric: str) -> str:
    """Return which of the two has no figure, and how it ended."""
    said = []
    for own in (pair.ours, pair.theirs):
        here = [e for e in own if e.length == length and e.metric == metric]
        if not any(e.value for e in here):
            said.append(f"{own[0].label}: {why_none(here)}")
    return "; ".join(said) or "not in the same rounds"
