"""Execution of a plan: run the missing cells, render, and print the results."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING

import msgspec

from lra.cli.echo import echo, echo_json
from lra.cli.exit_codes import FAILED_CELLS

if TYPE_CHECKING:
    from lra.cli.executors import Executor
    from lra.core.records import Record
    from lra.engine.jobs import Job
    from lra.engine.order.budget import Budget
    from lra.engine.order.due import Due
    from lra.engine.order.estimate import Estimate
    from lra.engine.plan.spec import ExecutionSpec, RunSpec
    from lra.store import Store


class _Plan(msgspec.Struct, frozen=True):
    """A plan as an executor runs it."""

    spec: RunSpec
    jobs: list[Job]
    due: Due
    slots: int
    """Cells that run side by side."""
    room: float
    """Seconds that a budget leaves to cells."""


def execute(spec: RunSpec, how: ExecutionSpec) -> int:
    """Run the cells of a plan that are due, render the store's report, and return the exit code.

    With a budget they run in the order of `lra.engine.order.priority`.
    """
    from lra.cli.executors import open_executor
    from lra.engine.gate.revision import HOME
    from lra.engine.order.budget import Budget
    from lra.engine.process.signals import raise_terminated
    from lra.identity.edits import unchecked_edits
    from lra.store import Store

    spec = msgspec.structs.replace(spec, edits=unchecked_edits(HOME))
    if how.device is not None:
        spec = msgspec.structs.replace(spec, device=how.device)
    if not how.quiet:
        _warn_of_edits(spec.edits)
    clock = Budget(math.inf if how.budget is None else how.budget)
    with raise_terminated(), open_executor(spec, how, left=lambda: clock.left) as executor:
        store = Store(how.store)
        plan = _plan(executor, executor.spec(spec), how, store, clock)
        if how.dry_run:
            _print_plan(plan, how)
            return 0
        left = _run(executor, plan, clock, how)
    found = [record for job in plan.jobs if (record := store.load(job.cell.id)) is not None]
    _print_results(found, store, left=left, as_json=how.as_json)
    if how.budget is not None:
        _warn_too_short(how.budget, plan.room, left, _expected(left, store, _estimate(store)))
    return _exit_code(found, left, plan.jobs, as_json=how.as_json)


def _plan(
    executor: Executor, spec: RunSpec, how: ExecutionSpec, store: Store, clock: Budget
) -> _Plan:
    """Plan the jobs; raises `LraError` for a store that cannot be looked into, or is newer."""
    from lra.engine.order.due import Due
    from lra.engine.plan.labels import with_labels
    from lra.engine.plan.suite import plan_suite
    from lra.report.load.disturbed import disturbed
    from lra.store.reference import reference_records

    jobs = with_labels(plan_suite(spec))
    # Warn once, in one line, and not for each cell.
    store.exists()
    store.refuse_newer(job.cell.id for job in jobs)
    busy = disturbed(store.records(), reference_records()) if how.rerun == "disturbed" else set()
    due = Due(
        store,
        rerun=how.rerun,
        busy=busy,
        timeout=how.timeout,
        prune=how.prune,
        together=spec.suite.together,
    )
    return _Plan(spec=spec, jobs=jobs, due=due, slots=executor.slots(jobs), room=clock.left)


def _print_plan(plan: _Plan, how: ExecutionSpec) -> None:
    """Print the plan's cells in their order, and how far a budget reaches."""
    from lra.cli.budget_lines import budget_reach

    due, slots, room = plan.due, plan.slots, plan.room
    missing, listed = due.ordered(due.select(plan.jobs)), plan.jobs
    estimate = _estimate(due.store)
    expected = _expected(missing, due.store, estimate)
    if how.budget is not None:
        missing = _by_priority(due, plan.jobs, missing, expected, room)
        listed = list({job.cell.id: job for job in (*missing, *plan.jobs)}.values())
    profiled = sum(estimate.is_by_profile(job.cell) for job in missing)
    _print_forecast(listed, missing, expected, profiled=profiled, slots=slots, as_json=how.as_json)
    if how.budget is not None and missing:
        words = budget_reach(
            how.budget, room, missing, expected, slots=slots, together=due.together
        )
        echo(words, err=True)
        _warn_too_short(how.budget, room, missing, expected)


def _run(executor: Executor, plan: _Plan, clock: Budget, how: ExecutionSpec) -> list[Job]:
    """Run the jobs that are due, in the order of their priority where there is a budget; return the
    jobs that are left."""
    from lra.cli.progress import watcher
    from lra.cli.real_sets import prepare_real_sets
    from lra.engine.order.admission import Admission
    from lra.engine.order.lost_time import LostTime

    spec, due, store = plan.spec, plan.due, plan.due.store
    with store.locked():
        missing = due.ordered(due.select(plan.jobs))
        prepare_real_sets(missing, quiet=how.quiet)
        known = not how.quiet or how.budget is not None
        expected = _expected(missing, store, _estimate(store)) if known else {}
        if how.budget is not None:
            missing = _by_priority(due, plan.jobs, missing, expected, plan.room)
        admission = Admission(lambda: clock.left, missing, expected, together=due.together)
        if not how.quiet:
            echo(_headline(spec, plan.jobs, missing), err=True)
        watching = watcher(missing, quiet=how.quiet, expected=expected, slots=plan.slots)
        with closing(watching) as watch:
            runner = executor.runner(
                store,
                plan.slots,
                timeout=due.timeout,
                budget=clock,
                admits=admission.admits,
                watcher=LostTime(store, watch),
                prune=due.prune,
            )
            for _ in runner.run(missing):
                pass
    return runner.left


def _exit_code(found: list[Record], left: list[Job], jobs: list[Job], *, as_json: bool) -> int:
    """Return how the command ends, and say why where cells failed or their records are gone."""
    from lra.cli.cached import warn_unread
    from lra.core.records import FAILED
    from lra.report.words import count

    ids = {job.cell.id for job in jobs} - {job.cell.id for job in left}
    unread = len(ids - {record.id for record in found})
    warn_unread(unread)
    failed = [record for record in found if record.status in FAILED]
    if failed and not as_json:
        echo(f"{count(len(failed), 'cell')} failed; --rerun failed runs them again", err=True)
    return FAILED_CELLS if failed or unread else 0


def _by_priority(
    due: Due, jobs: list[Job], turn: list[Job], expected: Mapping[str, float], room: float
) -> list[Job]:
    """Due jobs in the order in which they run within `room` seconds."""
    from lra.engine.order.admission import too_long
    from lra.engine.order.priority import by_priority

    unrecorded = {job.cell.id for job in turn if due.store.load(job.cell.id) is None}
    return by_priority(
        turn,
        missing=unrecorded - too_long(turn, expected, room).keys(),
        begun=due.resumable(jobs, turn),
        expected=expected,
    )


def _warn_of_edits(edits: Mapping[str, str]) -> None:
    """Warn that records of edited code are kept apart from those of committed code."""
    if edits:
        more = f" and {len(edits) - 1} more files" if len(edits) > 1 else ""
        echo(
            f"{next(iter(edits))}{more} edited and not checked: cells that may depend on it are "
            "measured apart from other records; to have these stand where nothing moved: "
            "python -m lra identity check",
            err=True,
        )


def _warn_too_short(
    budget: float, room: float, jobs: list[Job], expected: Mapping[str, float]
) -> None:
    from lra.cli.budget_lines import warn_too_short

    words = warn_too_short(budget, room, jobs, expected)
    if words is not None:
        echo(words, err=True)


def _print_forecast(
    jobs: list[Job],
    missing: list[Job],
    expected: Mapping[str, float],
    *,
    profiled: int,
    slots: int,
    as_json: bool,
) -> None:
    """Print the cells, which of them are due, and their expected time; `profiled` is the number of
    trainings whose estimate comes from the profile of a step alone."""
    from lra.report.words import about, count

    due = {job.cell.id for job in missing}
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
        echo_json(cells)
    else:
        for cell in cells:
            echo(f"{cell['id']}  {cell['state']:<4}  {cell['label']}")
    alone = {job.cell.id for job in missing if job.alone}
    words = f"{count(len(missing), 'cell')} due"
    unknown = len(missing) - len(expected)
    takes = about(sum(s if id in alone else s / slots for id, s in expected.items()))
    takes += " by earlier records"
    takes += f" ({count(profiled, 'training')} by measured steps per second)" * bool(profiled)
    # The time of a few cells must not be read as the time of all.
    telling = len(expected) > unknown
    if telling:
        words += f", {takes}"
    if unknown:
        of_these = _take(unknown, "of these ") if expected else _they(unknown)
        words += f"; no earlier record tells how long {of_these}"
        if telling:
            words += " (not counted)"
        elif expected:
            words += f"; the other {_take(len(expected))} {takes}"
    echo(words, err=True)


def _they(cells: int) -> str:
    return "it takes" if cells == 1 else "they take"


def _take(cells: int, of: str = "") -> str:
    return f"{cells} {of}{'takes' if cells == 1 else 'take'}"


def _estimate(store: Store) -> Estimate:
    from lra.engine.order.estimate import Estimate
    from lra.store.reference import reference_records

    return Estimate((*store.records(), *reference_records()))


def _expected(missing: list[Job], store: Store, estimate: Estimate) -> dict[str, float]:
    """Expected seconds by cell, where there are records like it; for a cell that was stopped, no
    fewer than it needs."""
    from lra.engine.order.lost_time import seconds_needed

    estimates = {
        job.cell.id: (estimate.seconds(job.cell), seconds_needed(store, job)) for job in missing
    }
    known = {id: [one for one in both if one is not None] for id, both in estimates.items()}
    return {id: max(seconds) for id, seconds in known.items() if seconds}


def _headline(spec: RunSpec, jobs: list[Job], missing: list[Job]) -> str:
    from lra.core.scales import load_scale
    from lra.report.words import count

    # A block's own scale stands in the suite; one that was asked for stands nowhere else.
    scale = f", trainings at scale {load_scale(spec.scale).name}" if spec.scale else ""
    kind = spec.machine(spec.device)
    done = len(jobs) - len(missing)
    return (
        f"device {spec.device}: {kind.processor}, {kind.cores} cores; "
        f"suite {spec.suite.name}{scale}; "
        f"{count(len(missing), 'cell')} to run" + (f", {done} already in the store" if done else "")
    )


def _print_results(found: list[Record], store: Store, *, left: list[Job], as_json: bool) -> None:
    """Render the report of the whole store, and print this run's results.

    As JSON: the records, then a cell with the status `left` for each that is left.
    """
    from lra.cli.report import ReportTakenError, echo_findings, render_store
    from lra.core.errors import truncate
    from lra.report.render import findings
    from lra.report.words import count
    from lra.store.reference import reference_records

    page = None
    try:
        page = render_store(store).page
    except ReportTakenError as error:
        # The cells are done, whether they can be rendered or not.
        echo(truncate(f"lra: warning: {error}"), err=True)
    if as_json:
        rest = [{"id": job.cell.id, "cell": job.cell, "status": "left"} for job in left]
        echo_json([*found, *rest])
    elif found or not left:
        echo_findings(findings(found, reference_records(), store.records()))
    if left:
        words = f"{count(len(left), 'cell')} left; run the same command again to continue"
        echo(words, err=as_json)
    if as_json:
        return
    echo(f"records: {store.path}")
    if page is not None:
        echo(f"report:  {page}")
