"""`lra run`: the main job. Train, time and report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from lra.cli import flags
from lra.core.protocol import REPEATS

if TYPE_CHECKING:
    from lra.core.cells import Device
    from lra.core.scales import Suite


@click.command("run", short_help="Train, time and report: the main job.")
@flags.impl
@flags.task
@flags.suite("mini")
@flags.scale
@flags.rules
@click.option(
    "--track",
    type=flags.Choice(["matched", "tuned"]),
    default="matched",
    show_default=True,
    help="tuned: try the scale's learning rates, keep what validates best.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, REPEATS),
    metavar="N",
    help="Trainings of each mechanism on each task, each with its own initialisation, batch order "
    "and random draws; the data stays the same. Default: the suite's.",
)
@flags.device
@flags.devices
@flags.settings("; training.steps=200, model.layers=1")
@flags.data
@flags.store
@click.option(
    "--baselines",
    is_flag=True,
    help="Train exact attention and no mixing too, instead of showing reference rows.",
)
@click.option(
    "--profile",
    is_flag=True,
    help="Say where a training step's time goes, on each task, instead of training.",
)
@click.option("--offline", is_flag=True, help="Never ask a data hub.")
@flags.jobs
@flags.cluster
@flags.carried_out()
def command(
    impls: tuple[str, ...],
    tasks: tuple[str, ...],
    suite: str,
    scale: str | None,
    rules: Literal["fixed", "lra2021"] | None,
    track: Literal["matched", "tuned"],
    seeds: int | None,
    device: Device | None,
    devices: int,
    settings: tuple[str, ...],
    sources: tuple[str, ...],
    store: Path,
    rerun: Literal["missing", "failed", "disturbed", "all"],
    baselines: bool,
    profile: bool,
    budget: str | None,
    timeout: str | None,
    jobs: int | None,
    cluster: str | None,
    dry_run: bool,
    offline: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Train and test mechanisms on the suite's tasks, measure time and memory, write a report.

    \b
    python -m lra run --impl performer
    python -m lra run --impl performer,linear --task text --data text=imdb/
    python -m lra run --impl performer --task listops --profile
    """
    from lra.cli.execute import execute
    from lra.core.scales import load_suite
    from lra.engine.machine.host import cache_folder, default_device
    from lra.engine.machine.offline import go_offline
    from lra.engine.plan.data import check_sources
    from lra.engine.plan.planner import RunSpec

    flags.require_impl(impls, "run", "performer")
    data = flags.pairs(sources, "--data")
    check_sources(data)
    whole = load_suite(suite)
    given = {
        "--task": tasks,
        "--data": data,
        "--scale": scale,
        "--rules": rules,
        "--track": track == "tuned",
        "--seeds": seeds,
        "--devices": devices > 1,
        "--baselines": baselines,
        "--profile": profile,
        "--cluster": cluster is not None,
    }
    _refuse_contradictions(whole, [flag for flag, value in given.items() if value])
    if offline:
        go_offline()
    spec = RunSpec(
        suite=whole,
        mechanisms=impls,
        tasks=tasks or tuple(data),
        scale=scale,
        rules=rules,
        track=track,
        seeds=seeds,
        settings=flags.pairs(settings, "--set"),
        sources=data,
        device=device or default_device(),
        profile=profile,
        devices=devices,
        baselines=baselines,
        cache=str(cache_folder()),
    )
    return execute(
        spec,
        store=store,
        rerun=rerun,
        budget=flags.seconds(budget, "--budget"),
        timeout=flags.seconds(timeout, "--timeout"),
        jobs_asked=jobs,
        cluster=cluster,
        device=device,
        dry_run=dry_run,
        quiet=quiet,
        as_json=as_json,
    )


def _refuse_contradictions(suite: Suite, given: Sequence[str]) -> None:
    """Raise `UsageError` for a flag that does not go with the suite, or with another one."""
    from lra.core.errors import UsageError

    for flag in given:
        if flag != "--cluster" and not suite.quality:
            raise UsageError(f"suite '{suite.name}' trains nothing; leave {flag} out")
    for flag in ("--track", "--seeds", "--devices"):
        if flag in given and "--profile" in given:
            raise UsageError(f"--profile looks at one seed's step on one device; leave {flag} out")
    if {"--devices", "--cluster"} <= set(given):
        raise UsageError(
            "--devices is for this machine; a cluster's worker has one GPU: leave one of "
            "--devices and --cluster out"
        )
