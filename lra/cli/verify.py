"""`lra verify`: the laws that mechanisms claim, tried one by one."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from lra.cli import options
from lra.cli.echo import echo, echo_json
from lra.cli.exit_codes import BROKEN_CLAIMS, FAILED_CELLS, INCONCLUSIVE
from lra.engine.plan.spec import OutputSpec, VerifySpec

if TYPE_CHECKING:
    from lra.core.cells import VerifyCell
    from lra.core.findings import Finding
    from lra.core.records import Record
    from lra.engine.jobs import Job

MANY = 3
"""Number of laws from which on those with the same outcome share a row."""


@click.command("verify", short_help="Prove what mechanisms claim.")
@options.takes(VerifySpec)
@options.takes(OutputSpec)
def command(spec: VerifySpec, out: OutputSpec) -> int:
    """Try what mechanisms claim, law by law, and print one line for each.

    \b
    Exit codes:
    0  all that is claimed holds
    1  something that is claimed does not hold
    2  nothing can be tried, and one line says why
    3  one of several is a peer that is not installed, or a mask means something else than was read
    4  one of several cannot be imported, or a check ended early, and a row says so
    Where two fit, 4 comes before 1, and 1 before 3.

    \b
    python -m lra verify --impl performer
    python -m lra verify --impl mine.py:Mine --check causality
    """
    from lra.cli.cached import cached_records
    from lra.core.errors import UsageError
    from lra.engine.plan.verify import plan_verify
    from lra.engine.process.temporary import temporary_folder
    from lra.store import Store

    options.require_mechanism(spec.mechanisms, "verify", "performer")
    if spec.case is not None and not spec.laws:
        raise UsageError("--case needs the law to try it with; e.g. --check causality")
    planned = plan_verify(spec)
    with temporary_folder() as folder:
        # A check of named laws is looked at and forgotten; one of all laws is a record.
        store = Store(folder if spec.laws else out.store)
        # A refused case is one line, and no failed cell.
        silent = spec.case is not None
        found = cached_records(planned, store, slots=out.jobs, quiet=out.quiet, silent=silent)
    records = [record for _, record in found]
    refused = [one.failure.message for one in records if _is_refused(one) and one.failure]
    done = [(job, record) for job, record in found if not _is_refused(record)]
    if out.as_json and done:
        echo_json([record for _, record in done])
    elif done:
        for job, record in done:
            _print(job, record, spec.settings, full=spec.full, quiet=out.quiet)
    if refused:
        raise UsageError(refused[0])
    return FAILED_CELLS if len(found) < len(planned) else exit_code(records)


def exit_code(records: Sequence[Record]) -> int:
    """Return the exit code for these checks, as the command's help has it."""
    from lra.core.records import FAILED

    findings = [finding for record in records for finding in record.findings]
    late = any(one.ending == "timeout" and one.verdict == "skipped" for one in findings)
    if late or any(record.status in FAILED for record in records):
        return FAILED_CELLS
    if any(finding.verdict == "failed" for finding in findings):
        return BROKEN_CLAIMS
    unclear = any(finding.advice for finding in findings)
    return INCONCLUSIVE if unclear or any(record.status != "ok" for record in records) else 0


def _is_refused(record: Record) -> bool:
    """Whether a worker refused the user's input, such as a case that no law takes."""
    from lra.core.errors import UsageError

    return record.failure is not None and record.failure.type == UsageError.__name__


def _print(job: Job, record: Record, settings: dict[str, str], *, full: bool, quiet: bool) -> None:
    from collections import Counter

    from tabulate import tabulate

    from lra.cli.tried import describe_extent

    cell = _cell(job)
    name = cell.mechanism.name
    if record.status != "ok":
        assert record.failure is not None
        echo(f"{name}: {record.status}: {record.failure.message}\n")
        return
    tally = Counter(finding.verdict for finding in record.findings)
    verdicts = sorted(tally, key=lambda verdict: verdict != "failed")
    counts = ", ".join(f"{tally[verdict]} {verdict}" for verdict in verdicts)
    echo(f"{name}: {counts}  [{record.seconds:.1f} s]")
    if not quiet:
        for words in (*_assumptions(record), *describe_extent(record.findings)):
            echo(f"  {words}")
    # Laws that were asked for by name have a row each.
    following = {} if cell.laws else _by_cause(record.findings)
    telling = [f for f in record.findings if f.law not in following.get(f.follows, ())]
    shown = [f for f in telling if not quiet or f.verdict == "failed"]
    groups = [[f] for f in shown] if cell.laws else _fold_alike(shown)
    groups.sort(key=lambda group: group[0].verdict != "failed")
    rows = [
        (
            first.verdict.upper() if first.verdict == "failed" else first.verdict,
            f"{first.law} and {len(others)} more" if others else first.law,
            sum(finding.cases for finding in (first, *others)) or "",
            _describe(first),
        )
        for first, *others in groups
    ]
    if rows:
        echo(tabulate(rows, headers=("", "law", "cases", ""), tablefmt="plain"))
    for first, *others in groups:
        if others:
            echo(f"  like {first.law}: {', '.join(finding.law for finding in others)}")
    for cause, laws in following.items():
        echo(f"  {cause} fails on the same inputs as {', '.join(laws)}")
    for first, *_ in groups:
        if first.verdict == "failed":
            echo(f"  reproduce: {_reproduce(job, first, settings, full=full)}")
    for advice in dict.fromkeys(f.advice for f in record.findings if f.advice):
        echo(f"  its mask means something else; here and wherever it is named, pass {advice}")
    if any(f.law == "cross" and f.verdict == "failed" for f in shown) and _may_deny_cross(job):
        echo("  if it only attends to its own sequence, pass --set cross=false")
    if shown or not quiet:
        echo()


def _cell(job: Job) -> VerifyCell:
    from lra.core.cells import VerifyCell

    assert isinstance(job.cell, VerifyCell)
    return job.cell


def _describe(finding: Finding) -> str:
    """The finding's detail, else the law in words; where it is not claimed, both, or that it was
    not tried."""
    if finding.verdict != "not claimed":
        return finding.detail or finding.says
    return f"{finding.says}: {finding.detail or 'not tried'}"


def _fold_alike(findings: list[Finding]) -> list[list[Finding]]:
    """Fold findings with the same outcome into one, at the place of the first, where they are many.

    An unclaimed law that holds keeps its own row, to be noticed.
    """
    alike: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        alike.setdefault((finding.verdict, finding.detail), []).append(finding)
    groups = []
    for finding in findings:
        same = alike[finding.verdict, finding.detail]
        if not finding.detail or finding.verdict == "unclaimed" or len(same) < MANY:
            groups.append([finding])
        elif finding is same[0]:
            groups.append(same)
    return groups


def _by_cause(findings: Sequence[Finding]) -> dict[str, list[str]]:
    """Return the laws whose failures say nothing new, by the law whose failure explains them."""
    found: dict[str, list[str]] = {}
    for finding in findings:
        if finding.follows:
            found.setdefault(finding.follows, []).append(finding.law)
    return found


def _assumptions(record: Record) -> list[str]:
    """Lines on somebody else's class: its package, its adapter's assumptions, and the laws not
    tried."""
    package = record.method.get("package")
    words: list[str] = record.method.get("assumed", [])
    untried: list[str] = record.method.get("untried", [])
    return [*([package] if package else []), *words, *untried]


def _may_deny_cross(job: Job) -> bool:
    """Whether it is somebody else's class, taken to attend to another sequence."""
    return _cell(job).mechanism.config.get("cross") is True


def _reproduce(job: Job, finding: Finding, settings: dict[str, str], *, full: bool) -> str:
    """The command that shows one failure again."""
    from lra.engine.machine.host import default_device

    words = ["python", "-m", "lra", "verify", "--impl", job.mechanism, "--check", finding.law]
    words += [] if finding.case is None else ["--case", str(finding.case)]
    words += ["--full"] if full else []
    cell = _cell(job)
    for key, value in settings.items():
        head, dot, _ = key.partition(".")
        if (head == cell.mechanism.name) if dot else (key in cell.mechanism.config):
            words += ["--set", f"{key}={value}"]
    if cell.device != default_device():
        words += ["--device", cell.device]
    return shlex.join(words)
