"""Priority of cells in a time budget.

No time spent is to be lost, and every figure is to be known once before any is known better:

1. begun work: trainings with a checkpoint and, in suites that measure rounds together, the rest of
   a round with a recent figure;
2. first seeds and replicates before second ones;
3. references: baselines of a task and ceilings of the machine, then trainings of `sdpa` (exact
   attention) and of the controls, `identity` (the floor) and `local`;
4. the shortest by earlier records, for the most results in the time; then cells without an
   estimate, in the order of the plan.

A second seed of a reference is not among these: it sharpens a comparison, which must exist first.
Timings are compared within rounds: all mechanisms at one place on the axes, minutes apart, with the
floor and exact attention among them. A round is one unit, counts as its mean cell, and keeps the
order of its cells. Where a process measures all cells of a mechanism, these are the unit. Rounds
and errors keep the plan's order but for rules 1 and 2: short inputs come first there, and one that
runs out of memory or time spares the longer ones. Cells that are only repeated, or too long for the
time, come last, in the order given.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from heapq import merge
from statistics import fmean

from lra.core.catalogue import CONTROLS, EXACT
from lra.core.cells import BaselineCell, CeilingCell, QualityCell
from lra.engine.jobs import Job
from lra.engine.order.due import round_of
from lra.engine.process.exit_status import ByLength

Unit = list[Job]
"""A unit that is not split: the timings of a round, or any other single cell."""


def by_priority(
    turn: Sequence[Job],
    *,
    missing: Set[str],
    begun: Set[str],
    expected: Mapping[str, float],
) -> list[Job]:
    """Return the jobs, highest priority first.

    `turn` is the order without these rules; `missing` has the ids of cells that have no record and
    can get one, `begun` those of cells that continue earlier work; `expected` has the expected
    seconds of cells, where known.
    """

    def urgency(unit: Unit) -> tuple[bool, int]:
        return begun.isdisjoint(_ids(unit)), _repetition(unit[0])

    def value(unit: Unit) -> tuple[bool, int, int, float]:
        known = [expected[id] for id in _ids(unit) if id in expected]
        return *urgency(unit), _rank(unit[0]), fmean(known) if known else math.inf

    units: dict[str, Unit] = {}
    for job in turn:
        units.setdefault(job.series or round_of(job), []).append(job)
    new = [unit for unit in units.values() if not missing.isdisjoint(_ids(unit))]
    again = [unit for unit in units.values() if missing.isdisjoint(_ids(unit))]
    by_length = sorted((unit for unit in new if _is_by_length(unit)), key=urgency)
    others = sorted((unit for unit in new if not _is_by_length(unit)), key=value)
    # Each of the two lists keeps its order; the one with the more valuable head comes next.
    return [job for unit in (*merge(others, by_length, key=value), *again) for job in unit]


def _ids(unit: Unit) -> Iterable[str]:
    return (job.cell.id for job in unit)


def _is_by_length(unit: Unit) -> bool:
    return isinstance(unit[0].cell, ByLength)


def _repetition(job: Job) -> int:
    """Number of the repetition, with other draws or in another process."""
    number: int = getattr(job.cell, "seed", getattr(job.cell, "replicate", 0))
    return number


def _rank(job: Job) -> int:
    """0 and 1 for references, 2 for other cells."""
    if isinstance(job.cell, BaselineCell | CeilingCell):
        return 0
    if isinstance(job.cell, QualityCell) and job.cell.mechanism.name in (EXACT, *CONTROLS):
        return 1
    return 2
