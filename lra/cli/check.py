"""`lra check`, the gate: differences from the baseline, and slowdowns against a revision."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lra.cli import flags, options
from lra.cli.echo import echo, echo_json, on_stderr
from lra.cli.exit_codes import INCONCLUSIVE, REGRESSION
from lra.core.errors import UsageError, is_full, system_reason
from lra.core.escape import escape_lines
from lra.core.paths import write
from lra.engine.plan.spec import CheckSpec, OutputSpec

if TYPE_CHECKING:
    from lra.changes.check_report import Checked


@click.command("check", short_help="The gate: what got worse than the baseline and a revision.")
@options.takes(CheckSpec)
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
@options.takes(OutputSpec, "quiet", "as_json")
def command(spec: CheckSpec, output: OutputSpec, out: Path, history: Path | None) -> int:
    """Compare mechanisms with their baseline, and their times against an earlier revision.

    Laws, bytes, operations and the losses of a short training have no noise and are compared first;
    then accuracies over three seeds; then times, in pairs of processes of the two builds. A slower
    cell is timed again. Exit code 1 for a regression, 3 where something cannot be told.

    \b
    python -m lra check --deterministic
    python -m lra check --since main
    python -m lra check --quick --impl linear
    """
    from msgspec.structs import replace

    from lra.cli.progress import watcher
    from lra.engine.gate.check import Check
    from lra.engine.gate.revision import HOME
    from lra.identity.edits import unchecked_edits

    if history is not None:
        if given := options.given(CheckSpec):
            raise UsageError(f"--history runs nothing; leave out {' and '.join(given)}")
        return _check_history(history, out, as_json=output.as_json)
    check = Check(
        replace(spec, edits=unchecked_edits(HOME)),
        watch=lambda due: watcher(due, quiet=output.quiet),
        log=on_stderr(quiet=output.quiet),
    )
    with _summary_on_error(out, check.found):
        check.run()
    _write(check.found(), out)
    return _print_and_exit_code(check.found(), out, as_json=output.as_json)


@contextmanager
def _summary_on_error(out: Path, found: Callable[[str], Checked]) -> Iterator[None]:
    """Write a summary of the findings so far where the context is left by an error, a signal
    included: somebody will look then."""
    from lra.engine.process.signals import raise_terminated

    # If the process is killed, this placeholder is the summary; it also proves --out is writable.
    _write(found("it did not come to its end"), out)
    try:
        with raise_terminated():
            yield
    except BaseException as error:
        _write(found(" ".join(str(error).split()) or type(error).__name__), out)
        raise


def _check_history(folder: Path, out: Path, *, as_json: bool) -> int:
    from lra.changes.check_report import Checked
    from lra.changes.history import read
    from lra.changes.history_report import checked, steps_table
    from lra.report.write.markdown import rows_markdown

    with _summary_on_error(out, lambda stopped: Checked((), stopped=stopped)):
        history = read(folder)
    found = checked(history)
    table = steps_table(history)
    _write(found, out, rows_markdown(table) if table.rows else "")
    return _print_and_exit_code(found, out, as_json=as_json)


def _write(checked: Checked, out: Path, tables: str = "") -> None:
    """Write the summary, with more tables below it, and the JUnit file."""
    from lra.changes.check_report import junit, summary

    try:
        out.mkdir(parents=True, exist_ok=True)
        page = f"{summary(checked)}\n{tables}".rstrip() + "\n"
        write(out / "summary.md", escape_lines(page).encode())
        write(out / "junit.xml", escape_lines(junit(checked)).encode())
    except OSError as error:
        remedy = "make room or choose" if is_full(error) else "choose"
        raise UsageError(
            f"--out '{out}' cannot be written: {system_reason(error)}; {remedy} another"
        ) from error


def _print_and_exit_code(checked: Checked, out: Path, *, as_json: bool) -> int:
    """Print the findings and return the exit code."""
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
