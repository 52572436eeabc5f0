"""`lra baseline`: what `lra check` holds mechanisms against, per class of machine."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lra.cli import flags
from lra.cli.echo import echo
from lra.cli.exit_codes import FAILED_CELLS, INCONCLUSIVE

if TYPE_CHECKING:
    from lra.core.cells import Device
    from lra.engine.gate.baselines import Baselines, Noise
    from lra.verdict.baseline import Figures

CALIBRATED = ("sdpa", "linear", "bigbird")
"""Whose times tell how well a machine repeats: one product, many small ones, gathers."""


@click.group("baseline", short_help="What the gate holds mechanisms against.")
def command() -> None:
    """Show or update the baselines that `lra check` holds mechanisms against.

    They lie under results/baselines, a folder for each class of machine, and are committed and
    reviewed like code.
    """


@command.command("show", short_help="What there is for this machine, and why.")
@flags.impl
@flags.device
@flags.baselines
def show(impls: tuple[str, ...], device: Device | None, baselines: Path) -> int:
    """Print why and when this machine's baseline was taken, and its figures."""
    from tabulate import tabulate

    from lra.cli.checking import no_baseline
    from lra.core.catalogue import expand
    from lra.core.escape import escape_controls
    from lra.report.words import count, listing

    baseline = _of_this_machine(baselines, device)
    if not baseline.exists():
        echo(f"{no_baseline(baseline.machine)}; {_where_looked(baselines)}")
        return INCONCLUSIVE
    known = baseline.names()
    asked = [target.name for target in expand("mechanism", impls)] if impls else known
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
@click.option("--reason", required=True, metavar="TEXT", help="For whoever reviews it.")
@flags.impl
@click.option(
    "--deterministic", is_flag=True, help="Only what has no noise: no accuracies, no times."
)
@flags.device
@flags.check_store
@flags.baselines
@click.option("--quiet", is_flag=True, help="Print only what went wrong.")
def update(
    reason: str,
    impls: tuple[str, ...],
    deterministic: bool,
    device: Device | None,
    store: Path,
    baselines: Path,
    quiet: bool,
) -> int:
    """Measure what a check would and put it in the place of this machine's baseline.

    How well times repeat is measured too: pairs of processes of this very build. Where a mechanism
    breaks a law, a cell fails or leaves no record, nothing is written.
    """
    from lra.cli.checking import measure
    from lra.core.catalogue import expand
    from lra.core.errors import UsageError
    from lra.core.records import FAILED
    from lra.engine.gate.baselines import Reason
    from lra.engine.gate.figures import figures
    from lra.engine.gate.revision import HOME
    from lra.engine.machine.host import default_device
    from lra.engine.machine.provenance import checkout
    from lra.report.words import count

    if not reason.strip():
        raise UsageError("--reason is empty; say why the baseline changes, for its reviewer")
    device = device or default_device()
    baseline = _of_this_machine(baselines, device)
    targets = expand("mechanism", impls or ("all",))
    records, unread = measure(targets, device, store, quality=not deterministic, quiet=quiet)
    bad = [
        record
        for record in records
        if record.status in FAILED or any(f.verdict == "failed" for f in record.findings)
    ]
    if bad:
        names = sorted({record.cell.mechanism.name for record in bad})  # type: ignore[union-attr]
        echo(
            f"{count(len(bad), 'cell')} failed or broke a law ({', '.join(names)}); the baseline "
            "is as it was",
            err=True,
        )
        return FAILED_CELLS
    if unread:
        echo("the baseline is as it was; run it again", err=True)
        return FAILED_CELLS
    commit, _ = checkout(HOME)
    taken = tuple(target.name for target in targets)
    why = Reason(f"{datetime.now(UTC):%Y-%m-%d}", commit or "", taken, reason.strip())
    baseline.write(figures(records), why)
    if not deterministic:
        # Slowest, so last: if interrupted, the figures are already saved.
        baseline.write_noise(_calibrate(device, quiet=quiet))
    echo(f"baseline: {baseline.path}; commit it with the change it is for")
    return 0


def _where_looked(baselines: Path) -> str:
    """Where baselines were looked for: the folder is in a clone, and the current one may be not."""
    from lra.core.escape import escape_controls

    place = f"looked in '{escape_controls(str(baselines.resolve()))}'"
    if baselines.is_dir():
        return place
    return f"{place}, which is no folder: go to the project's clone or give --baselines"


def _of_this_machine(folder: Path, device: Device | None) -> Baselines:
    from lra.engine.gate.baselines import Baselines
    from lra.engine.machine.host import default_device, machine

    return Baselines(folder, machine(device or default_device()).name)


def _calibrate(device: Device, *, quiet: bool) -> dict[str, Noise]:
    """Time one build against itself, in pairs, and return by cell how its times repeat."""
    from lra.changes.words import line_name
    from lra.cli.echo import on_stderr
    from lra.cli.times import Times
    from lra.engine.gate.baselines import Noise
    from lra.engine.gate.revision import HERE
    from lra.verdict.slowdown import calibrated_margin, log_deviation

    changes = Times((HERE, HERE), device, None, {}, on_stderr(quiet=quiet)).changes(CALIBRATED)
    return {
        line_name(line): Noise(
            round(spread, 4), round(calibrated_margin(line.change), 4), line.change.pairs
        )
        for line in changes.lines
        if line.quantity.name == "time" and (spread := log_deviation(line.change)) is not None
    }


def _describe(own: Figures) -> list[tuple[str, str]]:
    """A cell's figures in words, its laws and losses in one line each."""
    from collections import Counter

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
