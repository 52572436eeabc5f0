"""`lra check`: the gate. What differs from the baseline, and what is slower than a revision."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lra.cli import flags
from lra.cli.checking import Check
from lra.cli.echo import echo, echo_json
from lra.cli.exit_codes import INCONCLUSIVE, REGRESSION
from lra.core.errors import UsageError, is_full, reason
from lra.core.escape import visible_lines
from lra.core.paths import write

if TYPE_CHECKING:
    from lra.changes.check_report import Checked
    from lra.core.cells import Device
    from lra.verdict.baseline import Judged

_OF_A_RUN = ("impls", "since", "deterministic", "quick", "device", "store", "baselines")


@click.command("check", short_help="The gate: what got worse than the baseline and a revision.")
@flags.impl
@click.option(
    "--since",
    metavar="REVISION",
    help="Check only mechanisms that changes since REVISION affect (through imports), and time "
    "them against it. Default: all, timed against the last commit.",
)
@click.option("--deterministic", is_flag=True, help="Only what has no noise; no timing.")
@click.option("--quick", is_flag=True, help="A few mechanisms and pairs, in five minutes.")
@flags.device
@flags.check_store
@flags.baselines
@click.option(
    "--out",
    type=flags.Folder(Path),
    default=Path("reports/check"),
    show_default=True,
    help="Folder that summary.md and junit.xml are written to, also when the check fails or stops.",
)
@click.option(
    "--history",
    type=flags.Folder(Path),
    metavar="FOLDER",
    help="Run nothing; look for steps in a folder with one store per night.",
)
@click.option("--quiet", is_flag=True, help="Print only what was found.")
@flags.as_json
@click.pass_context
def command(
    ctx: click.Context,
    impls: tuple[str, ...],
    since: str | None,
    deterministic: bool,
    quick: bool,
    device: Device | None,
    store: Path,
    baselines: Path,
    out: Path,
    history: Path | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Compare mechanisms with their baseline, and their times against an earlier revision.

    Laws, bytes, operations and the losses of a short training have no noise and are compared first;
    then accuracies over three seeds; then times, in pairs of processes of the two builds. What is
    slower is timed again. Exit code 1 for a regression, 3 where something cannot be told.

    \b
    python -m lra check --deterministic
    python -m lra check --since main
    python -m lra check --quick --impl linear
    """
    from lra.changes.check_report import Checked
    from lra.engine.gate.baselines import Baselines
    from lra.engine.machine.host import default_device, machine

    if history is not None:
        if meant := _meant(ctx, _OF_A_RUN):
            raise UsageError(f"--history runs nothing; leave out {' and '.join(meant)}")
        return _over_nights(history, out, as_json=as_json)
    judged: list[Judged] = []
    notes: list[str] = []
    with _summarised(out, judged, notes):
        if since == "":
            raise UsageError("--since is empty; name a commit, branch or tag, or leave it out")
        device = device or default_device()
        check = Check(
            baseline=Baselines(baselines, machine(device).name),
            device=device,
            store=store,
            quick=quick,
            quiet=quiet,
            judged=judged,
            notes=notes,
        )
        check.run(impls, since, timed=not deterministic, quality=not (deterministic or quick))
    checked = Checked(tuple(judged), tuple(notes))
    _write(checked, out)
    return _print_and_exit_code(checked, out, as_json=as_json)


@contextmanager
def _summarised(
    out: Path, judged: Sequence[Judged] = (), notes: Sequence[str] = ()
) -> Iterator[None]:
    """Write a summary of what was found so far where the context is left by an error, a signal
    included; that is when somebody looks."""
    from lra.changes.check_report import Checked
    from lra.engine.process.signals import terminable

    # If the process is killed, this placeholder is the summary; it also proves --out is writable.
    _write(Checked((), stopped="it did not come to its end"), out)
    try:
        with terminable():
            yield
    except BaseException as error:
        _write(Checked(tuple(judged), tuple(notes), _words(error)), out)
        raise


def _meant(ctx: click.Context, names: Sequence[str]) -> list[str]:
    """Those of some flags that were given."""
    default = click.core.ParameterSource.DEFAULT
    spelled = {one.name: one.opts[0] for one in ctx.command.params}
    return [spelled[name] for name in names if ctx.get_parameter_source(name) is not default]


def _over_nights(folder: Path, out: Path, *, as_json: bool) -> int:
    from lra.changes.history_report import checked, read, section
    from lra.report.table import markdown

    with _summarised(out):
        history = read(folder)
    found = checked(history)
    _write(found, out, "\n\n".join(markdown(table) for table in section(history).tables))
    return _print_and_exit_code(found, out, as_json=as_json)


def _words(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _write(checked: Checked, out: Path, tables: str = "") -> None:
    """Write the summary, with more tables below it, and the JUnit file."""
    from lra.changes.check_report import junit, summary

    try:
        out.mkdir(parents=True, exist_ok=True)
        page = f"{summary(checked)}\n{tables}".rstrip() + "\n"
        write(out / "summary.md", visible_lines(page).encode())
        write(out / "junit.xml", visible_lines(junit(checked)).encode())
    except OSError as error:
        remedy = "make room or choose" if is_full(error) else "choose"
        raise UsageError(
            f"--out '{out}' cannot be written: {reason(error)}; {remedy} another"
        ) from error


def _print_and_exit_code(checked: Checked, out: Path, *, as_json: bool) -> int:
    """Print what was found and return the exit code."""
    from lra.changes.check_report import SHOWN, line, sentences

    if as_json:
        echo_json({"sentences": sentences(checked), "figures": checked.judged}, indented=True)
    else:
        for sentence in sentences(checked):
            echo(sentence)
        for outcome in SHOWN:
            for one in checked.of(outcome):
                echo(f"  {outcome}: {line(one)}")
        echo(f"summary: {out / 'summary.md'}")
    if checked.of("regression"):
        return REGRESSION
    return 0 if checked.passed else INCONCLUSIVE
