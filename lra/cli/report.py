"""`lra report`: render a store's records again; needs nothing but the records."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lra.cli import flags, options
from lra.cli.echo import echo
from lra.core.errors import (
    LraError,
    UsageError,
    ensure_readable,
    is_full,
    system_reason,
    truncate,
)
from lra.core.hashing import DIGITS, value_hash
from lra.core.paths import path_kind, real_path, write
from lra.engine.plan.spec import OutputSpec

if TYPE_CHECKING:
    from lra.changes.compare import Changes
    from lra.report.assumptions import Assumptions
    from lra.report.render import Findings, Rendered
    from lra.store import Store


MARK = ".store"
"""The file that names the store of the report beside it."""


class ReportTakenError(UsageError):
    """The report of another store is in the folder."""


@click.command("report", short_help="Render tables and plots from records.")
@options.option(OutputSpec, "store")
@click.option(
    "--out",
    type=flags.Folder(Path),
    metavar="FOLDER",
    help="Default: reports/<name of the store>; one that has another store's is refused.",
)
@click.option(
    "--grid-intensity",
    type=float,
    metavar="GRAMS",
    help="CO2e per kWh of your electricity: adds an estimate to measured energy.",
)
@click.option(
    "--price",
    type=float,
    metavar="AMOUNT",
    help="Price of a kWh, any currency: adds an estimate of cost.",
)
@click.option(
    "--compare",
    "before",
    type=flags.Folder(Path),
    metavar="STORE",
    help="Another store: what changed since comes first, and as compare.md.",
)
def command(
    store: Path,
    out: Path | None,
    grid_intensity: float | None,
    price: float | None,
    before: Path | None,
) -> None:
    """Write index.html, report.md, report.csv, report.tex and the plots of a store's records."""
    from lra.changes.comparison_report import sentences
    from lra.cli.compare import stores
    from lra.report.assumptions import Assumptions
    from lra.store import Store

    assumed = Assumptions(grid_intensity, price)
    records = Store(store).existing()
    changes = stores(before, store) if before else None
    rendered = render_store(records, out, assumed, changes)
    if changes is not None:
        echo("\n".join([*sentences(changes), ""]))
    echo_findings(rendered.findings)
    echo(f"report: {rendered.page}")


def render_store(
    store: Store,
    out: Path | None = None,
    assumed: Assumptions | None = None,
    changes: Changes | None = None,
) -> Rendered:
    """Render a store beside the reference records into `out` (default: reports/<its name>).

    Raises `ReportTakenError` where the default folder has the report of another store of that name;
    a folder that was asked for is overwritten, with a warning.
    """
    from lra.changes.comparison_report import comparison_markdown, comparison_section
    from lra.report.render import render
    from lra.store.reference import reference_records

    folder = report_folder(store, out)
    told = taken(store, folder, "report", is_asked_for=out is not None)
    with _without_collection():
        rendered = render(
            store.records(),
            reference_records(),
            folder,
            title=real_path(store.path).name,
            assumed=assumed,
            first=comparison_section(changes) if changes else None,
            files={"compare.md": comparison_markdown(changes)} if changes else {},
        )
    mark(store, folder)
    if told:
        echo(told, err=True)
    return rendered


def report_folder(store: Store, out: Path | None) -> Path:
    """Return the folder of a store's report and pictures: the one asked for, or one of the store's
    own name."""
    return out or Path("reports") / real_path(store.path).name


def taken(store: Store, folder: Path, verb: str, *, is_asked_for: bool) -> str | None:
    """Return a warning where a folder has the report of another store, else None.

    Raises `ReportTakenError` for a folder that nobody asked for.
    """
    other = _other_store(folder / MARK, store)
    if other is None:
        return None
    if not is_asked_for:
        raise ReportTakenError(
            f"'{folder}' has the report of another store, {other}; give that of "
            f"'{store.path}' a folder of its own: "
            f"python -m lra {verb} --store {store.path} --out FOLDER"
        )
    words = f"'{folder}' had the report of another store, {other}, and has that of"
    return truncate(f"lra: warning: {words} '{store.path}' now")


def mark(store: Store, folder: Path) -> None:
    """Write into a folder whose report it holds; raises `LraError` where that cannot be written."""
    file = folder / MARK
    try:
        write(file, _relative_place(folder, store).encode())
    except OSError as error:
        remedy = "make room" if is_full(error) else "remove it"
        raise LraError(
            f"cannot write '{file}': {system_reason(error)}; {remedy} or choose another --out"
        ) from error


@contextmanager
def _without_collection() -> Iterator[None]:
    """Switch garbage collection off: it would walk all records each time, in all a fifth of the
    time of many."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _relative_place(folder: Path, store: Store) -> str:
    """The path of a store relative to its report, without the folders above both; a hash where that
    path would lead into somebody's home."""
    lies, home = real_path(store.path), real_path(Path.home())
    common = Path(os.path.commonpath((lies, real_path(folder))))
    if common in home.parents and lies.is_relative_to(home):
        return value_hash(str(lies))
    return os.path.relpath(lies, real_path(folder))


def _other_store(file: Path, store: Store) -> str | None:
    """The store that a mark names, where it is another one."""
    with ensure_readable(f"'{file}'"):
        if path_kind(file) != "file":
            return None
        marked = file.read_text(encoding="utf-8", errors="replace").strip()
    if marked in (_relative_place(file.parent, store), value_hash(str(real_path(store.path)))):
        return None
    if not marked.isprintable() or re.fullmatch(rf"[0-9a-f]{{{DIGITS}}}", marked):
        # Earlier versions wrote a hash for every store.
        return "which it does not name"
    return f"'{os.path.relpath(real_path(file.parent / marked))}'"


def echo_findings(findings: Findings) -> None:
    """Print the report's table and sentences."""
    if findings.table:
        echo(f"{findings.table}\n")
    for line in findings.headline:
        echo(line)
