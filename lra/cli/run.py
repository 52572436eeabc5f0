"""`lra run`: the main job. Train, time and report."""

from __future__ import annotations

from collections.abc import Sequence

import click

from lra.cli import options
from lra.core.errors import UsageError
from lra.core.scales import Suite
from lra.engine.plan.spec import ExecutionSpec, RunSpec

_OF_TRAININGS = ("--track", "--seeds", "--devices")


@click.command("run", short_help="Train, time and report: the main job.")
@options.takes(RunSpec, without=("device",))
@options.takes(ExecutionSpec, without=("prune",))
def command(spec: RunSpec, how: ExecutionSpec) -> int:
    """Train and test mechanisms on the suite's tasks, measure time and memory, write a report.

    \b
    python -m lra run --impl performer
    python -m lra run --impl performer,linear --task text --data text=imdb/
    python -m lra run --impl performer --task listops --profile
    """
    from msgspec.structs import replace

    from lra.cli.execute import execute
    from lra.engine.machine.offline import go_offline
    from lra.engine.plan.data import check_sources
    from lra.engine.plan.network import refuse_contradictions

    options.require_mechanism(spec.mechanisms, "run", "performer")
    check_sources(spec.sources)
    refuse_contradictions(spec.body, spec.preset, spec.slots)
    _refuse_contradictions(spec.suite, options.given(RunSpec, ExecutionSpec))
    if how.offline:
        go_offline()
    return execute(replace(spec, tasks=spec.tasks or tuple(spec.sources)), how)


def _refuse_contradictions(suite: Suite, given: Sequence[str]) -> None:
    """Raise `UsageError` for a flag that does not go with the suite, or with another one."""
    training = (
        *("--task", "--data", "--scale", "--rules", "--baselines", "--profile"),
        *("--body", "--preset", "--slot"),
    )
    for flag in (*training, *_OF_TRAININGS):
        if flag in given and not suite.quality:
            raise UsageError(f"suite '{suite.name}' trains nothing; leave {flag} out")
    for flag in _OF_TRAININGS:
        if flag in given and "--profile" in given:
            raise UsageError(f"--profile looks at one seed's step on one device; leave {flag} out")
    if {"--devices", "--cluster"} <= set(given):
        raise UsageError(
            "--devices is for this machine; a cluster's worker has one GPU: leave one of "
            "--devices and --cluster out"
        )
