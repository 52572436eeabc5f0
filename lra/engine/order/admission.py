"""Admission of cells to the remaining time.

A training goes on from its checkpoint and may start at any time. Any other cell is lost when time
is up, and starts only where it fits by earlier records. A round that is measured together starts
only where all of it fits; one too long for the whole time goes cell by cell.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from lra.core.cells import EfficiencyCell, QualityCell
from lra.engine.jobs import Job
from lra.engine.order.due import round_of


class Admission:
    """Remaining time of a run, in seconds by `left`, and the cells that may start in it.

    `expected` has the expected seconds of cells, where known; with `together` rounds are not split
    up.
    """

    def __init__(
        self,
        left: Callable[[], float],
        jobs: Iterable[Job],
        expected: Mapping[str, float],
        *,
        together: bool = False,
    ) -> None:
        self._left, self._expected = left, expected
        self._first: dict[str, str] = {}
        """First cell of each round; the others go on with a round that has begun."""
        totals: dict[str, float] = defaultdict(float)
        for job in jobs if together else ():
            totals[round_of(job)] += least_seconds(job, expected)
        room = left()
        self._rounds = {name: total for name, total in totals.items() if total < room}
        """Seconds of the rounds that are measured together and fit into the whole time."""

    def admits(self, job: Job) -> bool:
        """Return whether a cell may start now; may be asked again until it does."""
        cell, name, own = job.cell.id, round_of(job), least_seconds(job, self._expected)
        opens = self._first.setdefault(name, cell) == cell
        if self._left() > (self._rounds.get(name, own) if opens else own):
            return True
        if opens:
            del self._first[name]
        return False


def least_seconds(job: Job, expected: Mapping[str, float]) -> float:
    """Return the seconds below which a cell is not worth starting."""
    cell = job.cell
    if isinstance(cell, QualityCell):
        return 0.0
    # Time and memory are separate passes.
    passes = 2 * cell.seconds if isinstance(cell, EfficiencyCell) else 0.0
    return max(passes, expected.get(cell.id, 0.0))


def too_long(jobs: Iterable[Job], expected: Mapping[str, float], room: float) -> dict[str, float]:
    """Return the cells too long for `room` seconds, with the seconds that they need."""
    least = {job.cell.id: least_seconds(job, expected) for job in jobs}
    return {id: seconds for id, seconds in least.items() if seconds >= room}


def count_ended_within(
    jobs: Sequence[Job],
    expected: Mapping[str, float],
    room: float,
    *,
    slots: int,
    together: bool = False,
) -> int:
    """Return the number of jobs that end within `room` seconds, in their order, as far as is known.

    Jobs without an estimate take no time and are not counted.
    """
    spent, ended = 0.0, 0
    stretch = Admission(lambda: room - spent, jobs, expected, together=together)
    for job in jobs:
        if job.cell.id in expected and stretch.admits(job):
            seconds = expected[job.cell.id]
            spent += seconds if job.alone else seconds / slots
            ended += spent <= room
    return ended
