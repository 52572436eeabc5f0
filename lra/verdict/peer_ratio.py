"""Ratio of our implementation's cost to a public one's, above the floor that both share.

The floor is the cost of a layer without mixing: projections, which both have to pay. Four costs are
measured in one round of processes, ours, theirs, the floor's and exact attention's, and compared
only within the round, as in `lra.verdict.ratio`.

The goal, for time: where theirs is at least `SHARE` of exact attention above the floor, ours above
it is at most `BAR` of theirs above it, or as much where theirs has less to compute; nearer to the
floor ours is at most theirs. For memory: ours is at most theirs, or within `ROOM` of the floor's. A
ratio within `CLOSE` of its bar is undecided, and so is one whose interval holds the bar, and a time
of a single round.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import fmean, median, stdev
from typing import Literal

import msgspec

from lra.verdict.ratio import SURE, Ratio, ratio, ratio_of_logarithms
from lra.verdict.student import quantile

BAR = 0.8
"""Largest share of theirs above the floor that ours above it may take, far above the floor."""
SHARE = 0.1
"""Share of exact attention's time by which theirs lies above the floor where it counts as far above
it."""
ROOM = 0.1
"""Share of the floor's memory within which ours meets the goal, whatever theirs is."""
CLOSE = 0.15
"""Distance of a ratio from its bar within which it is undecided, but for memory within `ROOM`."""

Outcome = Literal["meets", "misses", "undecided"]
Costs = Mapping[int, float]
"""Costs by replicate."""


class RatioAboveFloor(msgspec.Struct, frozen=True):
    """One cost over another, with the floor taken off both."""

    value: float
    """Geometric mean over the rounds; where some cost is at the floor, the ratio of the medians: 0
    with the median of ours at the floor, and infinite with only that of theirs."""
    ratio: Ratio | None
    """Ratio with its interval; None where some cost is at the floor: it has no logarithm."""
    ours_at_floor: int
    """Number of rounds in which ours cost no more than the floor."""
    theirs_at_floor: int
    rounds: int


class Verdict(msgspec.Struct, frozen=True):
    """Outcome by a goal, and the goal."""

    word: Outcome
    bar: str
    """Goal in words."""


def ratio_above_floor(ours: Costs, theirs: Costs, floor: Costs) -> RatioAboveFloor | None:
    """Return ours over theirs with the floor taken off both; None where no round has all three."""
    rounds = sorted(ours.keys() & theirs.keys() & floor.keys())
    if not rounds:
        return None
    own = [ours[r] - floor[r] for r in rounds]
    other = [theirs[r] - floor[r] for r in rounds]
    low = sum(cost <= 0 for cost in own), sum(cost <= 0 for cost in other)
    if not any(low):
        found = ratio_of_logarithms([math.log(a / b) for a, b in zip(own, other, strict=True)])
        return RatioAboveFloor(found.value, found, 0, 0, len(rounds))
    upper, lower = max(0.0, median(own)), max(0.0, median(other))
    value = upper / lower if lower else math.inf if upper else 0.0
    return RatioAboveFloor(value, None, *low, len(rounds))


def is_far_above_floor(theirs: Costs, floor: Costs, exact: Costs) -> bool | None:
    """Return whether theirs is far above the floor; None where no round has its cost, the floor's
    and exact attention's."""
    rounds = [r for r in theirs.keys() & floor.keys() & exact.keys() if exact[r] > 0]
    if not rounds:
        return None
    return median((theirs[r] - floor[r]) / exact[r] for r in rounds) >= SHARE


def time_verdict(
    ours: Costs, theirs: Costs, floor: Costs, exact: Costs, *, bar: float = BAR
) -> Verdict | None:
    """Return whether ours is as fast as it should be; None where no round has ours and theirs.

    Without the floor or exact attention in the same rounds the bar is not known: undecided.
    """
    whole = ratio(ours, theirs)
    if whole is None:
        return None
    far, found = is_far_above_floor(theirs, floor, exact), ratio_above_floor(ours, theirs, floor)
    if far is None or found is None:
        return Verdict("undecided", "floor or exact attention not measured in the same rounds")
    if not far:
        return Verdict(_at_most(1.0, whole), "at most theirs, which is near the floor")
    words = f"at most {bar:g} of theirs above the floor"
    if found.ratio is not None:
        return Verdict(_at_most(bar, found.ratio), words)
    rounds = sorted(ours.keys() & theirs.keys() & floor.keys())
    own, other = ([cost[r] - floor[r] for r in rounds] for cost in (ours, theirs))
    return Verdict(_less_than(bar, own, other), words)


def memory_verdict(ours: Costs, theirs: Costs, floor: Costs) -> Verdict | None:
    """Return whether ours needs as little as it should; None where no round has ours and theirs.

    A slow machine makes nothing larger: a single round is enough.
    """
    beside, over = ratio(ours, theirs), ratio(ours, floor)
    if beside is None:
        return None
    bar = f"at most theirs, or within {100 * ROOM:g} % of the floor"
    most = 1 + ROOM
    if beside.value <= 1 - CLOSE or (over is not None and over.value <= most):
        return Verdict("meets", bar)
    if beside.value >= 1 + CLOSE and over is not None and over.value >= most + CLOSE:
        return Verdict("misses", bar)
    return Verdict("undecided", bar)


def _at_most(bar: float, found: Ratio) -> Outcome:
    """Return the outcome for a bar on the ratio. Without an interval, as for one round, it is
    undecided."""
    if found.low is None or found.high is None:
        return "undecided"
    if found.value < bar - CLOSE and found.high <= bar:
        return "meets"
    return "misses" if found.value > bar + CLOSE and found.low > bar else "undecided"


def _less_than(bar: float, own: list[float], other: list[float]) -> Outcome:
    """Return the outcome where some costs have no logarithm: by Student's interval of own less bar
    times other."""
    if len(own) < 2:
        return "undecided"
    if max(own) <= 0 < min(other):
        return "meets"
    found = [a - bar * b for a, b in zip(own, other, strict=True)]
    margin = quantile(SURE, len(found) - 1) * stdev(found) / math.sqrt(len(found))
    if fmean(own) < (bar - CLOSE) * fmean(other) and fmean(found) + margin <= 0:
        return "meets"
    far = fmean(own) > (bar + CLOSE) * fmean(other)
    return "misses" if far and fmean(found) - margin > 0 else "undecided"
