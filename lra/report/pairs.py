"""Pairs of one of our mechanisms and a public implementation of it, measured round by round."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, NamedTuple

import msgspec
import pandas as pd

from lra.core import peers
from lra.core.catalogue import EXACT, NO_MIXING
from lra.core.peers import Peer
from lra.report.load.frame import typed
from lra.report.words import leaves, plain
from lra.verdict.peer_ratio import Costs

TOGETHER = timedelta(minutes=15)
"""Longest time between the starts of a round's processes; a machine changes its speed in an
hour."""
_PADDING = 1.05
"""Largest ratio of the length that theirs is padded to and the one that its blocks need."""


class Process(msgspec.Struct, frozen=True):
    """One figure of one process: a row of the frame."""

    mechanism: str
    variant: str
    label: str
    config: str
    metric: str
    length: int
    replicate: float
    value: float
    disturbed: bool
    started_at: str
    status: str
    failure: str
    reason: str

    @property
    def known(self) -> bool:
        """Whether there is a value."""
        return not math.isnan(self.value)


class Pair(msgspec.Struct, frozen=True):
    """A mechanism and a public implementation of it, both with one configuration."""

    ours: tuple[Process, ...]
    theirs: tuple[Process, ...]
    peer: Peer
    unlike: tuple[str, ...]
    """Settings that should be equal and are not, in words."""

    @property
    def lengths(self) -> list[int]:
        """Lengths that both were tried at."""
        return sorted({one.length for one in self.ours} & {one.length for one in self.theirs})

    def burdens(self, length: int) -> tuple[str, ...]:
        """Return the useless work that our adapter gives theirs, in words: a mask though nothing is
        padded, as in timings, and more padding than its blocks need."""
        there, said = _settings(self.theirs[0]), []
        if there.get("always_mask") is True:
            said.append("theirs gets a mask though nothing is padded (always_mask)")
        blocks = [_size(there, key) * n for key, n in self.peer.multiples.items()]
        needed = _padded(length, math.lcm(*blocks))
        given = _padded(length, _size(there, "pad_to"))
        if given > _PADDING * needed:
            said.append(f"theirs is padded to {given}; its blocks fill {needed} (pad_to)")
        return tuple(said)


class Rounds(NamedTuple):
    """Costs of one pair at one length, by replicate."""

    ours: Costs
    theirs: Costs
    floor: Costs
    exact: Costs
    disturbed: int = 0
    """Number of rounds left out, as the machine was busy."""
    torn: int = 0
    """Number of rounds left out, as their processes ran at different times."""
    floored: bool = True
    """Whether the floor was measured at all."""


def processes(figures: pd.DataFrame) -> list[Process]:
    """Return the figures of a frame, by id."""
    return typed(figures.sort_values(["variant", "metric", "length", "replicate"]), Process)


def pairs_of(figures: Sequence[Process]) -> list[Pair]:
    """Return each configuration of a peer with those of its counterpart that do the same work, at a
    common length; with all of them where none does."""
    by_variant: dict[str, list[Process]] = defaultdict(list)
    for one in figures:
        by_variant[one.variant].append(one)
    known, pairs = set(peers.names()), []
    for theirs in by_variant.values():
        if theirs[0].mechanism not in known:
            continue
        peer = peers.read(theirs[0].mechanism)
        both = [
            Pair(tuple(ours), tuple(theirs), peer, _unlike(ours[0], theirs[0], peer))
            for ours in by_variant.values()
            if ours[0].mechanism == peer.counterpart
        ]
        both = [pair for pair in both if pair.lengths]
        pairs += [pair for pair in both if not pair.unlike] or both
    return sorted(pairs, key=lambda pair: (pair.ours[0].variant, pair.theirs[0].variant))


def _unlike(ours: Process, theirs: Process, peer: Peer) -> tuple[str, ...]:
    """Settings in which both should agree and do not; none for a peer that cannot be imported."""
    here, there = _settings(ours), _settings(theirs)
    unlike = []
    for own, other in peer.matching.items() if there else ():
        mine, yours = here.get(own), there.get(other)
        if not _is_same(mine, yours):
            unlike.append(f"{own} {plain(mine)} here, {other} {plain(yours)} there")
    for own, wanted in peer.requires.items():
        if not _is_same(mine := here.get(own), wanted):
            unlike.append(
                f"{own} {plain(mine)} here, which does as theirs at {plain(wanted)} alone"
            )
    return tuple(unlike)


def _is_same(one: Any, other: Any) -> bool:
    """Whether two settings are equal: 1 is 1.0, and not `True`."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _size(settings: Mapping[str, Any], key: str) -> int:
    """A number of positions among settings; 1 where it is none."""
    value = settings.get(key)
    return value if type(value) is int and value > 0 else 1


def _padded(length: int, multiple: int) -> int:
    return length + -length % multiple


def _settings(one: Process) -> dict[str, Any]:
    return leaves(json.loads(one.config)) if one.config else {}


def rounds_of(
    pair: Pair, length: int, figures: Iterable[Process], metric: str, *, timed: bool
) -> Rounds:
    """Return the costs of one metric, without the rounds in which ours, theirs or the floor was
    disturbed or ran apart from the others, and without such costs of exact attention.

    Sizes are not `timed`: a busy machine does not change them.
    """
    own = [one for one in figures if one.metric == metric and one.length == length and one.known]
    variants = pair.ours[0].variant, pair.theirs[0].variant
    sides = [[one for one in own if one.variant == variant] for variant in variants]
    sides.append([one for one in own if one.mechanism == NO_MIXING])
    exact = [one for one in own if one.mechanism == EXACT]
    ours, theirs, floor, fused = (_by_replicate(side) for side in (*sides, exact))
    if not timed:
        return Rounds(ours, theirs, floor, fused, floored=bool(floor))
    both = ours.keys() & theirs.keys()
    disturbed = both & _loud(chain(*sides))
    apart = (both & _torn(chain(*sides))) - disturbed
    gone = disturbed | apart
    useless = _loud(exact) | _torn(chain(*sides, exact))
    return Rounds(
        ours=_without(ours, gone),
        theirs=_without(theirs, gone),
        floor=_without(floor, gone),
        exact=_without(fused, useless),
        disturbed=len(disturbed),
        torn=len(apart),
        floored=bool(floor),
    )


def _by_replicate(own: Iterable[Process]) -> dict[int, float]:
    return {int(one.replicate): one.value for one in own}


def _without(costs: Costs, gone: Collection[int]) -> Costs:
    return {replicate: cost for replicate, cost in costs.items() if replicate not in gone}


def _loud(own: Iterable[Process]) -> set[int]:
    return {int(one.replicate) for one in own if one.disturbed}


def _torn(own: Iterable[Process]) -> set[int]:
    """Rounds whose processes did not begin together: a rerun, or a second sweep into a store,
    measures one side alone."""
    began: dict[int, list[datetime]] = defaultdict(list)
    for one in own:
        began[int(one.replicate)].append(datetime.fromisoformat(one.started_at))
    return {round for round, found in began.items() if max(found) - min(found) > TOGETHER}
