"""Carrying out a plan: run what is missing, render, and say what was found."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
from msgspec.structs import replace

from lra.cli.exit_codes import FAILED_CELLS

if TYPE_CHECKING:
    from collections.abc import Collection

    from lra.core.records import Record
    from lra.engine.jobs import Job
    from lra.engine.plan import RunSpec
    from lra.store import Store


def carry_out(
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
    prune: bool = True,
) -> int:
    """Run the cells of a plan that are due and return the exit code.

    `prune` skips what is longer than a cell that ran out of memory or time.
    """
    from lra.cli.labels import labelled
    from lra.cli.progress import watcher
    from lra.core.records import FAILED
    from lra.engine.budget import Budget
    from lra.engine.endings import at_their_limit
    from lra.engine.plan import plan
    from lra.engine.pool import Pool, side_by_side
    from lra.engine.server import ForkServer
    from lra.report.disturbed import disturbed
    from lra.report.words import count
    from lra.store import Store

    clock = Budget(budget) if budget else None
    with ForkServer() as server:
        jobs = labelled(plan(spec))
        place = Store(store)
        # Once, in one line, and not for each cell.
        place.present()
        busy = disturbed(place.records()) if rerun == "disturbed" else set()
        limits = at_their_limit(place.records(), timeout) if prune else []

        def find() -> list[Job]:
            due = [job for job in jobs if _due(job, place, rerun, busy, limits)]
            return _whole_rounds(jobs, due, place) if spec.suite.together else due

        missing = find()
        slots = slots or side_by_side(jobs)
        if dry_run:
            _foretell(jobs, missing, place, slots=slots, as_json=as_json)
            return 0
        with place.writing():
            # Another run may have done some of it meanwhile.
            missing = _from_the_oldest(find(), place, together=spec.suite.together)
            if not quiet:
                click.echo(_headline(spec, jobs, missing), err=True)
            expected = {} if quiet else _expected(missing, place)
            with closing(watcher(missing, quiet=quiet, expected=expected)) as watch:
                pool = Pool(
                    place,
                    server,
                    slots=slots,
                    timeout=timeout,
                    budget=clock,
                    watcher=watch,
                    prune=prune,
                )
                for _ in pool.run(missing):
                    pass
    found = [record for job in jobs if (record := place.load(job.cell.id)) is not None]
    _show(found, place, left=pool.left, as_json=as_json)
    left = {job.cell.id for job in pool.left}
    unread = sum(job.cell.id not in left and place.load(job.cell.id) is None for job in jobs)
    if unread:
        click.echo(f"{count(unread, 'cell')} ended without a record that can be read", err=True)
    failed = [record for record in found if record.status in FAILED]
    if failed and not as_json:
        click.echo(f"{count(len(failed), 'cell')} failed; --rerun failed runs them again", err=True)
    return FAILED_CELLS if failed or unread else 0


def _from_the_oldest(due: list[Job], store: Store, *, together: bool) -> list[Job]:
    """Jobs in their order, from the first without a record on, or else from the oldest record's;
    with `together` from the beginning of its round.

    So the same command again goes on where a rerun was stopped; what that had done comes last.
    """
    records = [store.load(job.cell.id) for job in due]
    began = ["" if record is None else record.started_at for record in records]
    first = began.index(min(began)) if began else 0
    if due and together:
        rounds = [_round(job) for job in due]
        first = rounds.index(rounds[first])
    return due[first:] + due[:first]


def _foretell(
    jobs: list[Job], missing: list[Job], store: Store, *, slots: int, as_json: bool
) -> None:
    """Print the cells, which of them are due, and how long these may take."""
    import msgspec

    from lra.report.words import count, duration

    due = {job.cell.id for job in missing}
    expected = _expected(missing, store)
    cells = [
        {
            "id": job.cell.id,
            "state": "due" if job.cell.id in due else "done",
            "label": job.label,
            "seconds": expected.get(job.cell.id),
        }
        for job in jobs
    ]
    if as_json:
        click.echo(msgspec.json.encode(cells))
    else:
        for cell in cells:
            click.echo(f"{cell['id']}  {cell['state']:<4}  {cell['label']}")
    alone = {job.cell.id for job in missing if job.alone}
    words = f"{count(len(missing), 'cell')} due"
    if expected:
        whole = sum(s if id in alone else s / slots for id, s in expected.items())
        words += f", about {duration(whole)} by earlier records"
    if len(expected) < len(missing):
        words += f"; {len(missing) - len(expected)} of them unlike any earlier record"
    click.echo(words, err=True)


def _expected(missing: list[Job], store: Store) -> dict[str, float]:
    """About how many seconds cells take, by earlier records, where there are any like them."""
    from lra.cli.report import reference
    from lra.engine.estimate import Estimate

    estimate = Estimate([*store.records(), *reference()])
    told = {job.cell.id: estimate.seconds(job.cell) for job in missing}
    return {id: seconds for id, seconds in told.items() if seconds is not None}


def _due(
    job: Job, store: Store, rerun: str, busy: Collection[str], limits: Collection[Record]
) -> bool:
    """Whether a cell is to be run; `limits` are the records that leave longer inputs out."""
    from lra.core.records import FAILED
    from lra.engine.endings import pruned

    record = store.load(job.cell.id)
    if record is None or rerun == "all":
        return True
    if rerun == "disturbed":
        return record.id in busy
    if record.failure is not None and record.failure.type == "Pruned":
        return rerun == "failed" or pruned(job.cell, limits) is None
    return rerun == "failed" and record.status in FAILED


def _whole_rounds(jobs: list[Job], due: list[Job], store: Store) -> list[Job]:
    """Jobs that are due, with those of their rounds whose records are too old to be read beside
    theirs."""
    from datetime import UTC, datetime

    from lra.report.rows import TOGETHER

    def is_old(job: Job) -> bool:
        record = store.load(job.cell.id)
        return record is not None and datetime.fromisoformat(record.started_at) < since

    since = datetime.now(UTC) - TOGETHER
    ids, rounds = {job.cell.id for job in due}, {_round(job) for job in due}
    return [j for j in jobs if j.cell.id in ids or (_round(j) in rounds and is_old(j))]


def _round(job: Job) -> str:
    """What the timings of one round share, as a hash; any other cell is a round of its own."""
    from lra.core.cells import EfficiencyCell
    from lra.core.protocol import Mechanism

    if not isinstance(job.cell, EfficiencyCell):
        return job.cell.id
    return replace(job.cell, mechanism=Mechanism(name="", hash=""), declared_hash="").id


def _headline(spec: RunSpec, jobs: list[Job], missing: list[Job]) -> str:
    from lra.core.scales import load_scale
    from lra.engine.host import machine
    from lra.report.words import count

    # A block's own scale stands in the suite; one that was asked for stands nowhere else.
    scale = f", trainings at scale {load_scale(spec.scale).name}" if spec.scale else ""
    kind = machine(spec.device)
    done = len(jobs) - len(missing)
    return (
        f"device {spec.device}: {kind.processor}, {kind.cores} cores; "
        f"suite {spec.suite.name}{scale}; "
        f"{count(len(missing), 'cell')} to run" + (f", {done} already in the store" if done else "")
    )


def _show(found: list[Record], store: Store, *, left: list[Job], as_json: bool) -> None:
    """Render the report of the whole store, and print what a person wants to read of this run.

    As JSON: the records, then a cell with the status `left` for each that is left.
    """
    import msgspec

    from lra.cli.report import echo_findings, reference, render_store
    from lra.report.render import findings
    from lra.report.words import count

    rendered = render_store(store)
    if as_json:
        rest = [{"id": job.cell.id, "cell": job.cell, "status": "left"} for job in left]
        click.echo(msgspec.json.encode([*found, *rest], order="sorted"))
    elif found or not left:
        echo_findings(findings(found, reference(), store.records()))
    if left:
        words = f"{count(len(left), 'cell')} left; run the same command again to continue"
        click.echo(words, err=as_json)
    if as_json:
        return
    click.echo(f"records: {store.path}")
    click.echo(f"report:  {rendered.page}")
