"""Lines about a budget: how far it reaches, and the cells that it is too short for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lra.engine.jobs import Job

_NAMED = 3
"""Cells that a line names, at most."""


def budget_reach(
    budget: float,
    room: float,
    jobs: Sequence[Job],
    expected: Mapping[str, float],
    *,
    slots: int,
    together: bool,
) -> str:
    """Return in words how many of the jobs, in their order, fit a budget.

    `room` is the time that it leaves to them, in seconds; `expected` is how many seconds they take,
    where known.
    """
    from lra.engine.order.admission import count_ended_within
    from lra.report.words import duration

    if 2 * len(expected) <= len(jobs):
        return f"how far a budget of {duration(budget)} reaches is not known"
    ended = count_ended_within(jobs, expected, room, slots=slots, together=together)
    return f"a budget of {duration(budget)} is enough for about {ended} of them, in this order"


def warn_too_short(
    budget: float, room: float, jobs: Iterable[Job], expected: Mapping[str, float]
) -> str | None:
    """Return a warning of jobs that no budget of this size can do; None without any."""
    from lra.engine.order.admission import too_long
    from lra.engine.order.budget import GRACE_MOST
    from lra.report.words import duration, listing_of

    jobs = list(jobs)
    if jobs and not room:
        return "the budget was over before the first cell could start; give --budget more"
    never = too_long(jobs, expected, room)
    if not never:
        return None
    named = [
        f"{job.label} (about {duration(never[job.cell.id])})"
        for job in jobs
        if job.cell.id in never
    ]
    which = "cell" if len(named) == 1 else "cells"
    does = "does" if len(named) == 1 else "do"
    enough = max(never.values()) + (budget - room) + GRACE_MOST
    return (
        f"{len(named)} {which} cannot be resumed once stopped and {does} not fit a budget of "
        f"{duration(budget)}: {listing_of(named, _NAMED)}; give --budget {math.ceil(enough / 60)}m"
    )
