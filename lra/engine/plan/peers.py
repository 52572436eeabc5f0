"""Pairs of ours and theirs that a suite measures: those with a side that somebody asked for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from lra.core import catalogue, peers
from lra.core.catalogue import Target
from lra.core.errors import UsageError
from lra.core.scales import Pair, Suite

Subject = tuple[Target, Mapping[str, Any]]
"""A mechanism, and the settings that a suite chooses for it."""


def peer_pairs(suite: Suite, asked: Collection[Target]) -> list[Subject]:
    """Return both sides of each pair of a suite with a side that is asked for, in the suite's
    order.

    Raises `UsageError` for a pair that does not belong together, and where no pair is asked for.
    """
    names = {target.name for target in asked}
    sides = [(pair, _sides(pair, suite.name)) for pair in suite.pairs]
    wanted = [(pair, both) for pair, both in sides if names & {side.name for side in both}]
    if not wanted:
        raise UsageError(
            f"suite '{suite.name}' has no pair of {', '.join(sorted(names)) or 'no mechanism'}; it "
            f"pairs {', '.join(sorted({pair.ours for pair in suite.pairs}))}"
        )
    return [
        subject
        for pair, (ours, theirs) in wanted
        for subject in ((ours, pair.settings), (theirs, pair.their_settings))
    ]


def _sides(pair: Pair, suite: str) -> Sequence[Target]:
    ours, theirs = (catalogue.find("mechanism", name) for name in (pair.ours, pair.theirs))
    counterpart = peers.read(theirs.name).counterpart if theirs.is_peer else ""
    if counterpart != ours.name:
        beside = f"peer whose counterpart is {ours.name}"
        raise UsageError(
            f"suite '{suite}', pair of {ours.name} and {theirs.name}: the latter is no {beside}; "
            f"name one, or give it the key in its file"
        )
    return ours, theirs
