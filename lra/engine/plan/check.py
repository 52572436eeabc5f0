"""The planner of `lra check`: laws, counts and losses, and trainings for accuracy. Never torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lra.core.cells import BaselineCell, Device
from lra.core.scales import load_suite
from lra.engine.jobs import Job
from lra.engine.plan.spec import RunSpec, VerifySpec
from lra.engine.plan.suite import plan_suite
from lra.engine.plan.verify import plan_verify

COUNTS, QUALITY = "check", "check_quality"
"""Suites of counts and losses, and of trainings for accuracy."""


def plan_check(
    mechanisms: Sequence[str],
    device: Device,
    cache: str,
    *,
    quality: bool,
    edits: Mapping[str, str],
) -> list[Job]:
    """Return the jobs without noise in their figures, then with `quality` the trainings with noise.
    `edits` are the unchecked ones.

    Raises `UsageError` for a mechanism that does not exist.
    """
    names = tuple(mechanisms)
    laws = plan_verify(VerifySpec(mechanisms=names, device=device, cache=cache))
    found = laws + [
        job
        for suite in (COUNTS, *([QUALITY] if quality else []))
        for job in plan_suite(
            RunSpec(
                suite=load_suite(suite),
                mechanisms=names,
                device=device,
                cache=cache,
                edits=dict(edits),
            )
        )
        # A simple baseline is no figure of a mechanism.
        if not isinstance(job.cell, BaselineCell)
    ]
    # Timings wait until nothing runs beside them, so they come last.
    return sorted(found, key=lambda job: job.alone)
