"""Jobs that profile the trainings of a [[quality]] block: the machine's ceilings, then one training
step of each mechanism on each task."""

from __future__ import annotations

from collections.abc import Iterator

from lra.core.cells import ProfileCell
from lra.core.scales import QualityBlock
from lra.core.versions import declared
from lra.engine.jobs import Job
from lra.engine.plan.planner import Planner
from lra.engine.plan.quality import first_trainings

_AFTER = ("/oracle", "/decode")
"""Parts of a mechanism that a training uses after its end."""


def profile_jobs(run: Planner, block: QualityBlock) -> Iterator[Job]:
    """Yield the jobs of a block, one for all seeds, rates and orders of tokens: they cost the same.

    A ceiling comes before the first step with its dtype and number of threads.
    """
    for target, task, training in first_trainings(run, block):
        yield run.ceiling(training.training.precision, block.threads)
        used = {
            name: version
            for name, version in training.versions.items()
            if name != "look" and not name.endswith(_AFTER)
        }
        cell = ProfileCell(
            scale=training.scale,
            machine=run.machine,
            torch=run.torch,
            threads=block.threads,
            versions={**used, **declared(["profile"]), **run.versions_of(target, "cost")},
            mechanism=training.mechanism,
            data=training.data,
            model=training.model,
            training=training.training,
            device=run.spec.device,
        )
        yield run.job(cell, mechanism=target, task=task)
