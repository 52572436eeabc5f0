"""`lra data check`: name every defect of a real source or a prepared set, and count its rows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING

import click

from lra.cli import options
from lra.cli.echo import echo
from lra.cli.exit_codes import DEFECTS
from lra.engine.plan.spec import RunSpec

if TYPE_CHECKING:
    from lra.core.errors import DataError
    from lra.core.protocol import Rules, SplitName
    from lra.core.scales import Scale
    from tasks.contract import OnDefect
    from tasks.sources.checking import Tally
    from tasks.sources.facts import Facts
    from tasks.sources.preparing import Watch

LISTED = 100
"""Number of a set's defects that are printed, at most."""


@click.command("check", short_help="Name every defect of a real source or a prepared set.")
@click.argument("task", required=False, metavar="[TASK]")
@click.option(
    "--from",
    "source",
    required=True,
    metavar="PATH|hub",
    help="A file, a folder, hub or hub:NAME; a prepared set; without TASK a prepared set or the "
    "folder of the Long Range Arena release.",
)
@options.option(RunSpec, "scale", default="compact", help=options.DATA_SCALE)
@options.option(RunSpec, "rules")
def command(task: str | None, source: str, scale: str, rules: Rules | None) -> int:
    """Read a real source to its end and print what is wrong with it, a line each; then its counts.

    \b
    python -m lra data check text --from reviews/
    python -m lra data check --from lra_release

    In a prepared set, also one that a run keeps in the cache, the files are compared with what was
    written. Exit code 0 where nothing is wrong, 1 where something is, 2 where a set could not be
    read.
    """
    from lra.cli.release import for_each_set
    from lra.core.scales import load_scale
    from tasks.sources.facts import prepared_set

    settings = load_scale(scale)
    if task is None and (facts := prepared_set(source)) is not None:
        return _check_prepared(facts, source)
    if task:
        return _check(task, settings, rules, source)
    return for_each_set(source, lambda name, folder: _check(name, settings, rules, str(folder)))


def _check(name: str, scale: Scale, rules: Rules | None, source: str) -> int:
    """Check one set, print its defects, and return the exit code."""
    from lra.cli.data_progress import name_task_errors
    from lra.core import catalogue
    from lra.engine.plan.data import task_of
    from tasks.sources.checking import check_source
    from tasks.sources.data_hash import refuse_unread
    from tasks.sources.facts import prepared_set, refuse_unfit
    from tasks.sources.files import HUB, existing, resolved

    target = catalogue.find("task", name)
    task = task_of(target, scale, rules)
    source = resolved(source, target.name, task.hub)
    if not source.startswith(HUB):
        existing(source)
    if (facts := prepared_set(source)) is not None:
        origin = facts.origin
        asked = task.rules if origin is None else rules or origin.rules
        level = None if origin is None else origin.level
        refuse_unfit(facts, source, target.name, asked, facts.length, level)
        return _check_prepared(facts, source)
    refuse_unread(source, target.name)
    with name_task_errors(target):
        return _print_defects(
            target.name, lambda tell, watch: check_source(task, source, tell, watch)
        )


def _check_prepared(facts: Facts, source: str) -> int:
    from tasks.sources.checking import check_whole
    from tasks.sources.files import expanded

    folder = expanded(source)
    return _print_defects(facts.task, lambda tell, watch: check_whole(facts, folder, tell))


def _print_defects(name: str, check: Callable[[OnDefect, Watch], dict[SplitName, Tally]]) -> int:
    """Print the defects that a check found, then the counts; return the exit code."""
    from lra.cli.data_progress import show_progress
    from lra.core.escape import escape_controls

    printed: set[str] = set()
    with closing(show_progress(name)) as watch:

        def on_defect(defect: DataError) -> None:
            # A file that several splits are read from has the same defect in each.
            line = escape_controls(str(defect))
            if line not in printed and len(printed) < LISTED:
                watch.say(line)
            printed.add(line)

        found = check(on_defect, watch)
    _summary(name, found, len(printed))
    return DEFECTS if printed else 0


def _summary(task: str, found: dict[SplitName, Tally], defects: int) -> None:
    from lra.report.words import count

    if defects > LISTED:
        echo(f"... and {count(defects - LISTED, 'defect')} more")
    rows = sum(tally.rows for tally in found.values())
    wrong = count(defects, "defect") if defects else "no defect"
    echo(f"{task}: {count(rows, 'sound row')}, {wrong}")
    for split, tally in found.items():
        echo(f"  {split:<10} {describe_split(tally)}")


def describe_split(tally: Tally) -> str:
    """Return the counts of a split as a person reads them."""
    left_out = ""
    if tally.left_out:
        left_out = f", {tally.left_out} left out: what answers them lies beyond the length"
    if not tally.rows:
        return f"no examples{left_out}"
    span = f"{tally.longest} tokens"
    if tally.shortest < tally.longest:
        mean = tally.tokens / tally.sequences
        span = f"{tally.shortest} to {span} (mean {mean:.0f})"
    shares = " ".join(f"{share:.1%}" for share in tally.labels / tally.rows)
    answers = f"labels {shares}" if shares else f"{tally.asked / tally.rows:.4g} asked of each"
    too = f", {tally.repeated} equal to an earlier one" if tally.repeated else ""
    too += "".join(f", {count} also in {split}" for split, count in tally.elsewhere.items())
    if tally.printed:
        too += f", {tally.printed} written as b'...'"
    return f"{tally.rows} examples, {span}, {answers}{too}{left_out}"
