"""`lra show`: a picture of what mechanisms attend to, and a line about each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from lra.cli import flags
from lra.cli.echo import echo
from lra.cli.exit_codes import FAILED_CELLS

if TYPE_CHECKING:
    from lra.core.cells import ShowCell
    from lra.report.mechanisms.picture import Picture

FORMATS = (".svg", ".png")
PATIENCE = 120.0
"""Seconds that one picture may take."""


@click.command("show", short_help="Draw what mechanisms attend to.")
@flags.impl
@click.option("--length", type=int, metavar="N", help="Positions to draw; default: 64.")
@click.option(
    "--input",
    "source",
    metavar="FILE",
    help="The input, a .npy file of shape (positions, features); default: seeded normal numbers.",
)
@click.option(
    "--direction",
    type=flags.Choice(["bidirectional", "causal"]),
    help="Default: bidirectional where the mechanism can.",
)
@click.option(
    "--heads",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    metavar="N",
    help="Heads of the layer; the weights of each are drawn.",
)
@click.option(
    "--head-width",
    type=click.IntRange(min=1),
    default=16,
    show_default=True,
    metavar="N",
    help="Width of a query or key in one head.",
)
@click.option(
    "--scale",
    type=flags.Names("scale"),
    default="picture",
    show_default=True,
    metavar="NAME",
    help="Scale whose settings of mechanisms are used; 'picture' has windows and blocks small "
    "enough to see at 64 positions.",
)
@flags.settings()
@click.option(
    "--out",
    type=flags.Folder(Path),
    metavar="PATH",
    help="A folder, or a file ending in .svg or .png. Default: reports/<name of the store>/show.",
)
@flags.store
@flags.jobs
@flags.quiet
def command(
    impls: tuple[str, ...],
    length: int | None,
    source: str | None,
    direction: Literal["bidirectional", "causal"] | None,
    heads: int,
    head_width: int,
    scale: str,
    settings: tuple[str, ...],
    out: Path | None,
    store: Path,
    jobs: int | None,
    quiet: bool,
) -> int:
    """Draw which positions read which, and the weights that an untrained layer gives them.

    What has no attention weights gets its dependence drawn, measured by gradients. The record is
    kept; `python -m lra report` shows all of a store's pictures.

    \b
    python -m lra show --impl longformer,bigbird
    python -m lra show --impl performer --length 128 --direction causal --out performer.png
    """
    from lra.cli.cached import recorded
    from lra.cli.report import mark, report_folder, taken
    from lra.core.cells import ShowCell
    from lra.core.records import FAILED
    from lra.engine.machine.host import cache_folder
    from lra.engine.plan.show import ShowSpec, plan_show
    from lra.report.mechanisms.picture import Picture
    from lra.store import Store

    flags.require_impl(impls, "show", "longformer")
    spec = ShowSpec(
        mechanisms=impls,
        length=length,
        input=source,
        direction=direction,
        heads=heads,
        head_width=head_width,
        scale=scale,
        settings=flags.pairs(settings, "--set"),
        cache=str(cache_folder()),
    )
    planned = plan_show(spec)
    records = Store(store)
    folder = report_folder(records, out)
    # Whoever names one file means it.
    is_file = out is not None and out.suffix in FORMATS
    told = None if is_file else taken(records, folder, "show", is_asked_for=out is not None)
    target = _target(out or folder / "show", len(planned))
    plain = ShowSpec(mechanisms=impls, length=length, direction=direction, cache=spec.cache)
    found = recorded(planned, records, slots=jobs, quiet=quiet, timeout=PATIENCE)
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
    """Make the folder to write to; returns what was asked for, a folder or a file in one."""
    from lra.core.errors import LraError, UsageError, readable
    from lra.core.paths import kind_of

    is_file = out.suffix in FORMATS
    if is_file and number > 1:
        raise UsageError(f"--out '{out}' is one file for {number} pictures; name a folder")
    with readable(f"--out '{out}'"):
        is_folder = kind_of(out) == "folder"
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
    from lra.core.errors import LraError, is_full, reason
    from lra.core.paths import write
    from lra.report.pictures.pattern import pattern_png, pattern_svg

    path = target
    if target.suffix not in FORMATS:
        causal = "-causal" if shown.cell.direction == "causal" else ""
        asked = "" if is_plain else f"-{_file_suffix(shown.cell)}"
        path = target / f"{shown.label}-{shown.cell.length}{causal}{asked}.svg"
    drawn = (
        pattern_png(shown) if path.suffix == ".png" else pattern_svg(shown, headed=True).encode()
    )
    try:
        write(path, drawn)
    except OSError as error:
        remedy = "make room or choose" if is_full(error) else "choose"
        raise LraError(f"cannot write '{path}': {reason(error)}; {remedy} another --out") from error
    return path


def _file_suffix(cell: ShowCell) -> str:
    """Eight characters that tell settings, sizes and inputs apart, the same on every machine."""
    from lra.core.hashing import value_hash

    asked = (cell.mechanism.config, cell.width, cell.heads, cell.head_width, cell.input)
    return value_hash(asked)[:8]
