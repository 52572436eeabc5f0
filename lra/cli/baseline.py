"""`lra baseline`: the figures that `lra check` compares with, per class of machine."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lra.cli import options
from lra.cli.echo import echo, on_stderr
from lra.cli.exit_codes import FAILED_CELLS, INCONCLUSIVE
from lra.engine.plan.spec import CheckSpec, OutputSpec

if TYPE_CHECKING:
    from lra.verdict.baseline import Figures


@click.group("baseline", short_help="Figures that the gate holds mechanisms against.")
def command() -> None:
    """Show or update the baselines that `lra check` holds mechanisms against.

    They lie under results/baselines, a folder for each class of machine, and are committed and
    reviewed like code.
    """


@command.command("show", short_help="Baselines of this machine, and why.")
@options.takes(CheckSpec, "mechanisms", "device", "baselines")
def show(spec: CheckSpec) -> int:
    """Print why and when this machine's baseline was taken, and its figures."""
    from tabulate import tabulate

    from lra.core.catalogue import expand
    from lra.core.escape import escape_controls
    from lra.engine.gate.baselines import Baselines
    from lra.engine.gate.check import no_baseline
    from lra.engine.machine.host import machine
    from lra.report.words import count, listing

    baseline = Baselines(spec.baselines, machine(spec.device).name)
    if not baseline.exists():
        echo(f"{no_baseline(baseline.machine)}; {_where_looked(spec.baselines)}")
        return INCONCLUSIVE
    known = baseline.names()
    asked = [target.name for target in expand("mechanism", spec.mechanisms)]
    asked = asked or known
    echo(f"class {baseline.machine}: {count(len(known), 'mechanism')}")
    for one in baseline.journal():
        words = escape_controls(f"{', '.join(one.mechanisms)}: {one.reason}")
        echo(f"{one.date}  {one.commit[:12]}  {words}")
    if unknown := [name for name in asked if name not in known]:
        echo(f"no baseline of {listing(unknown)}")
    rows = [
        (name, cell, figure, value)
        for name in asked
        for cell, own in baseline.figures(name).items()
        for figure, value in _describe(own)
    ]
    echo()
    echo(tabulate(rows, headers=("mechanism", "cell", "figure", ""), tablefmt="plain"))
    noise = [(name, f"{100 * one.spread:.1f} %", f"{100 * one.allowed:.1f} %", one.pairs)
             for name, one in sorted(baseline.noise().items())]  # fmt: skip
    if noise:
        echo()
        headers = ("time", "spread of a pair", "slowdown allowed", "pairs")
        echo(tabulate(noise, headers=headers, tablefmt="plain"))
    return 0


@command.command("update", short_help="Take a new baseline on this machine, and say why.")
@click.option("--reason", required=True, metavar="TEXT", help="Reason, for the reviewer.")
@options.takes(CheckSpec, "mechanisms", "deterministic", "device", "store", "baselines")
@options.takes(OutputSpec, "quiet")
def update(spec: CheckSpec, output: OutputSpec, reason: str) -> int:
    """Measure what a check would and put it in the place of this machine's baseline.

    How well times repeat is measured too: pairs of processes of this very build. Where a mechanism
    breaks a law, a cell fails or leaves no record, nothing is written.
    """
    from msgspec.structs import replace

    from lra.cli.progress import watcher
    from lra.engine.gate import update
    from lra.engine.gate.revision import HOME
    from lra.identity.edits import unchecked_edits

    baseline, why_not = update.update(
        replace(spec, edits=unchecked_edits(HOME)),
        reason,
        watch=lambda due: watcher(due, quiet=output.quiet),
        log=on_stderr(quiet=output.quiet),
    )
    if why_not:
        echo(f"{why_not}; the baseline is as it was", err=True)
        return FAILED_CELLS
    echo(f"baseline: {baseline.path}; commit it with the change it is for")
    return 0


def _where_looked(baselines: Path) -> str:
    """The folder of baselines, which is in a clone; the current folder may be elsewhere."""
    from lra.core.escape import escape_controls

    place = f"looked in '{escape_controls(str(baselines.resolve()))}'"
    if baselines.is_dir():
        return place
    return f"{place}, which is no folder: go to the project's clone or give --baselines"


def _describe(own: Figures) -> list[tuple[str, str]]:
    """A cell's figures in words, its laws and losses in one line each."""
    found = [(name, f"{value:,.0f}") for name, value in sorted(own.counts.items())]
    if own.losses:
        found.append(("losses", f"{own.losses[0]:.4f} ... {own.losses[-1]:.4f} nat"))
    if own.accuracies:
        shares = (f"{100 * share:.1f}" for _, share in sorted(own.accuracies.items()))
        found.append(("accuracies", f"{', '.join(shares)} %"))
    if own.laws:
        tally = Counter(own.laws.values())
        found.append(("laws", ", ".join(f"{n} {verdict}" for verdict, n in tally.items())))
    return found or [("ending", own.status)]
