"""Which seeds of a training go through the same steps in one worker."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from msgspec.structs import replace

from lra.core.cells import QualityCell
from lra.engine.jobs import Job


def stacked(jobs: Sequence[Job]) -> list[Job]:
    """Return the jobs in their order, with those of one training and several seeds bound together.

    The first of them trains all; the others start when it has ended, and test what it left in their
    checkpoints. Where it could not train them, they do so themselves.
    """
    groups: dict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        if isinstance(job.cell, QualityCell):
            groups[replace(job.cell, seed=0).id].append(job)
    bound: dict[str, Job] = {}
    for first, *others in groups.values():
        beside = tuple(job.cell.seed for job in others if isinstance(job.cell, QualityCell))
        bound[first.cell.id] = replace(first, beside=beside)
        bound |= {job.cell.id: replace(job, after=first.cell.id) for job in others}
    return [bound.get(job.cell.id, job) for job in jobs]
