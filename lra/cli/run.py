"""`lra run`: the main job. Plan, run what is missing, render, and say what was found."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from lra.cli import flags

if TYPE_CHECKING:
    from collections.abc import Collection

    from lra.core.records import Record
    from lra.engine.jobs import Job
    from lra.engine.plan import RunSpec
    from lra.store import Store

FAILED_CELLS = 4


@click.command("run", short_help="Train, time and report: the main job.")
@flags.impl
@flags.task
@click.option(
    "--suite",
    type=flags.Names("suite"),
    default="mini",
    show_default=True,
    metavar="NAME",
    help="Selection of cells: a name or a TOML file.",
)
@flags.scale
@click.option(
    "--rules",
    type=click.Choice(["fixed", "lra2021"]),
    help="Rules of the tasks; lra2021 repeats the original's choices.",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    metavar="N",
    help="Runs of each training: initialisation, order and draws, never data.",
)
@flags.device
@flags.settings("; training.steps=200, model.layers=1")
@flags.data
@flags.store
@click.option(
    "--rerun",
    type=click.Choice(["missing", "failed", "disturbed", "all"]),
    default="missing",
    show_default=True,
    help="Which cells to run; a record makes a cell not missing. disturbed: timings taken while "
    "the machine was busy.",
)
@click.option(
    "--baselines",
    is_flag=True,
    help="Train exact attention and no mixing too, instead of showing reference rows.",
)
@click.option(
    "--budget", metavar="TIME", help="Stop cleanly after e.g. 90s, 9m, 2h; a rerun continues."
)
@click.option("--timeout", metavar="TIME", help="Longest time for one cell.")
@flags.jobs
@click.option("--dry-run", is_flag=True, help="Print the cells and stop.")
@click.option("--offline", is_flag=True, help="Never ask a data hub.")
@click.option("--quiet", is_flag=True, help="Print only results and what went wrong.")
@flags.as_json
def command(
    impls: tuple[str, ...],
    tasks: tuple[str, ...],
    suite: str,
    scale: str | None,
    rules: Literal["fixed", "lra2021"] | None,
    seeds: int | None,
    device: Literal["cpu", "cuda"] | None,
    settings: tuple[str, ...],
    sources: tuple[str, ...],
    store: Path,
    rerun: Literal["missing", "failed", "disturbed", "all"],
    baselines: bool,
    budget: str | None,
    timeout: str | None,
    jobs: int | None,
    dry_run: bool,
    offline: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Train and test mechanisms on the suite's tasks, measure time and memory, write a report.

    \b
    python -m lra run --impl performer
    python -m lra run --impl performer,linear --task text --data text=imdb/
    """
    from lra.core.errors import UsageError
    from lra.core.scales import load_suite
    from lra.engine.host import cache_folder, default_device
    from lra.engine.plan import RunSpec, check_sources

    if not impls:
        raise UsageError(
            "run needs a mechanism; e.g. --impl performer (see: python -m lra list impls)"
        )
    data = flags.pairs(sources, "--data")
    check_sources(data)
    if offline:
        flags.go_offline()
    spec = RunSpec(
        suite=load_suite(suite),
        mechanisms=impls,
        tasks=tasks or tuple(data),
        scale=scale,
        rules=rules,
        seeds=seeds,
        settings=flags.pairs(settings, "--set"),
        sources=data,
        device=device or default_device(),
        baselines=baselines,
        cache=str(cache_folder()),
    )
    return _run(
        spec,
        store=store,
        rerun=rerun,
        budget=flags.seconds(budget, "--budget"),
        timeout=flags.seconds(timeout, "--timeout"),
        slots=jobs,
        dry_run=dry_run,
        quiet=quiet,
        as_json=as_json,
    )


def _run(
    spec: RunSpec,
    *,
    store: Path,
    rerun: Literal["missing", "failed", "disturbed", "all"],
    budget: float | None,
    timeout: float | None,
    slots: int | None,
    dry_run: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    from lra.cli.progress import watcher
    from lra.core.records import FAILED
    from lra.engine.budget import Budget
    from lra.engine.plan import plan
    from lra.engine.pool import Pool
    from lra.engine.server import ForkServer
    from lra.report.disturbed import disturbed
    from lra.report.words import count
    from lra.store import Store

    clock = Budget(budget) if budget else None
    with ForkServer() as server:
        jobs = plan(spec)
        place = Store(store)
        busy = disturbed(place.records()) if rerun == "disturbed" else set()
        if dry_run:
            for job in jobs:
                done = "due" if _due(job, place, rerun, busy) else "done"
                click.echo(f"{job.cell.id}  {done:<4}  {job.label}")
            return 0
        with place.writing():
            missing = [job for job in jobs if _due(job, place, rerun, busy)]
            if not quiet:
                click.echo(_headline(spec, jobs, missing), err=True)
            with closing(watcher(len(missing), quiet=quiet)) as watch:
                pool = Pool(
                    place,
                    server,
                    slots=slots or _slots(jobs),
                    timeout=timeout,
                    budget=clock,
                    watcher=watch,
                )
                for _ in pool.run(missing):
                    pass
    found = [record for job in jobs if (record := place.load(job.cell.id)) is not None]
    _show(found, place, left=len(pool.left), as_json=as_json)
    left = {job.cell.id for job in pool.left}
    unread = sum(job.cell.id not in left and place.load(job.cell.id) is None for job in jobs)
    if unread:
        click.echo(f"{count(unread, 'cell')} ended without a record that can be read", err=True)
    failed = [record for record in found if record.status in FAILED]
    if failed and not as_json:
        click.echo(f"{count(len(failed), 'cell')} failed; --rerun failed runs them again", err=True)
    return FAILED_CELLS if failed or unread else 0


def _due(job: Job, store: Store, rerun: str, busy: Collection[str]) -> bool:
    from lra.core.records import FAILED

    record = store.load(job.cell.id)
    if record is None or rerun == "all":
        return True
    if rerun == "disturbed":
        return record.id in busy
    pruned = record.failure is not None and record.failure.type == "Pruned"
    return rerun == "failed" and (record.status in FAILED or pruned)


def _slots(jobs: list[Job]) -> int:
    """As many workers as the cores allow with the threads of the one that computes with most."""
    from lra.core.cells import EfficiencyCell

    side_by_side = [job.cell for job in jobs if not isinstance(job.cell, EfficiencyCell)]
    return min((c.machine.cores // c.threads for c in side_by_side), default=1) or 1


def _headline(spec: RunSpec, jobs: list[Job], missing: list[Job]) -> str:
    from lra.engine.host import machine
    from lra.report.words import count

    kind = machine(spec.device)
    done = len(jobs) - len(missing)
    return (
        f"device {spec.device}: {kind.processor}, {kind.cores} cores; suite {spec.suite.name}; "
        f"{count(len(missing), 'cell')} to run" + (f", {done} already in the store" if done else "")
    )


def _show(found: list[Record], store: Store, *, left: int, as_json: bool) -> None:
    """Render the report of the whole store, and print what a person wants to read of this run."""
    import msgspec

    from lra.cli.report import echo_findings, reference, render_store
    from lra.report.render import findings
    from lra.report.words import count

    rendered = render_store(store)
    if as_json:
        click.echo(msgspec.json.encode(found, order="sorted"))
        return
    if found or not left:
        echo_findings(findings(found, reference(), store.records()))
    if left:
        click.echo(f"{count(left, 'cell')} left; run the same command again to continue")
    click.echo(f"records: {store.path}")
    click.echo(f"report:  {rendered.page}")
