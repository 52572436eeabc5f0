"""`lra show`: pictures of mechanisms' attention patterns, and a line about each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lra.cli import flags, options
from lra.cli.echo import echo
from lra.cli.exit_codes import FAILED_CELLS
from lra.engine.plan.spec import OutputSpec, ShowSpec

if TYPE_CHECKING:
    from lra.core.cells import ShowCell
    from lra.report.plots.picture import Picture

FORMATS = (".svg", ".png")
PATIENCE = 120.0
"""Seconds that one picture may take."""


@click.command("show", short_help="Draw what mechanisms attend to.")
@options.takes(ShowSpec)
@click.option(
    "--out",
    "target",
    type=flags.Folder(Path),
    metavar="PATH",
    help="A folder, or a file ending in .svg or .png. Default: reports/<name of the store>/show.",
)
@click.option(
    "--card",
    is_flag=True,
    help="Write the page of each mechanism instead, of the store's and the reference's records.",
)
@options.takes(OutputSpec, without=("as_json",))
def command(spec: ShowSpec, out: OutputSpec, target: Path | None, card: bool) -> int:
    """Draw which positions read which, and the weights that an untrained layer gives them.

    A mechanism without attention weights gets its dependence drawn, measured by gradients. The
    record is kept; `python -m lra report` shows all of a store's pictures.

    \b
    python -m lra show --impl longformer,bigbird
    python -m lra show --impl performer --length 128 --direction causal --out performer.png
    python -m lra show --impl performer --card
    """
    from lra.cli.cached import cached_records
    from lra.cli.report import mark, report_folder, taken
    from lra.core.cells import ShowCell
    from lra.core.records import FAILED
    from lra.engine.plan.show import plan_show
    from lra.report.plots.picture import Picture
    from lra.store import Store

    options.require_mechanism(spec.mechanisms, "show", "longformer")
    if card:
        from lra.cli.card import write_cards
        from lra.core.errors import UsageError

        for flag in options.given(ShowSpec, OutputSpec):
            if flag not in ("--impl", "--store"):
                raise UsageError(f"--card is made of records alone; leave {flag} out")
        return write_cards(spec.mechanisms, out.store, target)
    planned = plan_show(spec)
    records = Store(out.store)
    folder = report_folder(records, target)
    # A file, unlike a folder, is named to be overwritten.
    is_file = target is not None and target.suffix in FORMATS
    told = None if is_file else taken(records, folder, "show", is_asked_for=target is not None)
    target = _target(target or folder / "show", len(planned))
    plain = ShowSpec(mechanisms=spec.mechanisms, length=spec.length, direction=spec.direction)
    found = cached_records(planned, records, slots=out.jobs, quiet=out.quiet, timeout=PATIENCE)
    for _, record in found:
        assert isinstance(record.cell, ShowCell)
        name = record.cell.mechanism.name
        if record.pattern is None:
            why = f": {record.failure.message}" if record.failure else ""
            echo(f"{name}: {record.status}{why}")
            continue
        shown = Picture(name, record.cell, record.pattern)
        echo(f"{name}: {shown.pairs}; {shown.values}")
        echo(f"  {_write(shown, target, is_plain=spec == plain)}")
    if not is_file:
        mark(records, folder)
    if told:
        echo(told, err=True)
    failed = any(record.status in FAILED for _, record in found)
    return FAILED_CELLS if failed or len(found) < len(planned) else 0


def _target(out: Path, number: int) -> Path:
    """Make the folder to write to; returns the path asked for, a folder or a file in one."""
    from lra.core.errors import LraError, UsageError, ensure_readable
    from lra.core.paths import path_kind

    is_file = out.suffix in FORMATS
    if is_file and number > 1:
        raise UsageError(f"--out '{out}' is one file for {number} pictures; name a folder")
    with ensure_readable(f"--out '{out}'"):
        is_folder = path_kind(out) == "folder"
    if not is_file and out.suffix and not is_folder:
        raise UsageError(f"--out '{out}': pictures are {' or '.join(FORMATS)}; or name a folder")
    try:
        (out.parent if is_file else out).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LraError(
            f"cannot write to '{out}': {error.strerror}; choose another --out"
        ) from error
    return out


def _write(shown: Picture, target: Path, *, is_plain: bool) -> Path:
    """Write the picture to a file, or under a name of its own in a folder; returns the file."""
    from lra.core.errors import LraError, is_full, system_reason
    from lra.core.paths import write
    from lra.report.plots.pattern import pattern_png, pattern_svg
    from lra.report.plots.style import Looks

    path = target
    if target.suffix not in FORMATS:
        causal = "-causal" if shown.cell.direction == "causal" else ""
        asked = "" if is_plain else f"-{_file_suffix(shown.cell)}"
        path = target / f"{shown.label}-{shown.cell.length}{causal}{asked}.svg"
    drawn = (
        pattern_png(shown, Looks())
        if path.suffix == ".png"
        else pattern_svg(shown, Looks(), headed=True).encode()
    )
    try:
        write(path, drawn)
    except OSError as error:
        remedy = "make room or choose" if is_full(error) else "choose"
        raise LraError(
            f"cannot write '{path}': {system_reason(error)}; {remedy} another --out"
        ) from error
    return path


def _file_suffix(cell: ShowCell) -> str:
    """Eight characters that tell settings, sizes and inputs apart, the same on every machine."""
    from lra.core.hashing import value_hash

    asked = (cell.mechanism.config, cell.width, cell.heads, cell.head_width, cell.input)
    return value_hash(asked)[:8]
