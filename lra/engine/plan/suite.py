"""The planner: from a suite and a person's flags to cells. Never imports torch."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from msgspec.structs import replace

from lra.core import catalogue
from lra.core.errors import UsageError
from lra.core.scales import ErrorBlock
from lra.engine.jobs import Job
from lra.engine.plan.efficiency import efficiency_jobs
from lra.engine.plan.error import error_cells, softmax_approximations
from lra.engine.plan.planner import Planner
from lra.engine.plan.profile import profile_jobs
from lra.engine.plan.quality import quality_jobs
from lra.engine.plan.spec import RunSpec


def plan_suite(spec: RunSpec) -> list[Job]:
    """Return the jobs of a run, each cell once: baselines, then quality, then efficiency by length,
    then errors; or the profiles of its trainings alone.

    A mechanism that cannot be imported gets its jobs too, whose records give the reason. Raises
    `UsageError` for any name, key or value that does not exist.
    """
    if spec.profile:
        spec = replace(spec, suite=replace(spec.suite, efficiency=(), error=()))
    run, blocks = Planner(spec), spec.suite
    if not blocks.quality:
        catalogue.expand("mechanism", spec.mechanisms)
    trained = profile_jobs if spec.profile else quality_jobs
    timed = [block for block in blocks.efficiency if block.device in (None, spec.device)]
    found: dict[str, Job] = {}
    for job in (
        *(job for block in blocks.quality for job in trained(run, block)),
        *(job for number, block in enumerate(timed) for job in efficiency_jobs(run, block, number)),
        *(job for block in blocks.error for job in _error_jobs(run, block)),
    ):
        found.setdefault(job.cell.id, job)
    run.settings.refuse_unused()
    if not found:
        raise UsageError(f"suite '{blocks.name}' {_why_empty(run)}")
    return list(found.values())


def _why_empty(run: Planner) -> str:
    """Reason why a suite gives no cell, and the remedy."""
    blocks = run.spec.suite
    if blocks.error:
        names = ", ".join(target.name for target in run.mechanisms)
        return (
            "compares with softmax attention, and none of these claims to come near it: "
            f"{names or 'no mechanism'}; name what does, e.g. performer"
        )
    if blocks.efficiency:
        others = " or ".join(sorted({str(block.device) for block in blocks.efficiency}))
        return (
            f"has no block for {run.spec.device}, only for {others}; say --device {others}, or "
            "give it a block"
        )
    if run.spec.profile:
        return "trains none of these mechanisms; name one that it is for"
    return "has no cells; give it a block"


def _error_jobs(run: Planner, block: ErrorBlock) -> Iterator[Job]:
    targets = softmax_approximations(run.mechanisms, run.describer)
    for target, cell in error_cells(
        block,
        targets,
        run.mechanism_for,
        hash_of=partial(run.hash_of, use="error"),
        machine=run.machine,
        torch=run.torch,
        device=run.spec.device,
    ):
        yield run.job(cell, mechanism=target)
