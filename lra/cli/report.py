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
from lra.core.errors import LraError, UsageError, system_reason
from lra.engine.plan.spec import OutputSpec

if TYPE_CHECKING:
    from lra.changes.compare import Changes
    from lra.report.assumptions import Assumptions
    from lra.report.render import Findings, Rendered
    from lra.store import Store


MARK = ".store"
"""The file that says of which store the report beside it is."""


class ReportTakenError(UsageError):
    """A folder has the report of another store."""


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
    help="Of a kWh, any currency: adds an estimate of cost.",
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

    Raises `ReportTakenError` where the default has the report of another store of that name.
    """
    from lra.changes.comparison_report import comparison_markdown, comparison_section
    from lra.report.render import render
    from lra.store.reference import reference_records

    name = store.path.resolve().name
    folder = out or Path("reports") / name
    mark = folder / MARK
    other = _other_store(mark, store)
    if other and out is None:
        raise ReportTakenError(
            f"'{folder}' has the report of another store, {other}; give that of "
            f"'{store.path}' a folder of its own: "
            f"python -m lra report --store {store.path} --out FOLDER"
        )
    with _without_collection():
        rendered = render(
            store.records(),
            reference_records(),
            folder,
            title=name,
            assumed=assumed,
            first=comparison_section(changes) if changes else None,
            files={"compare.md": comparison_markdown(changes)} if changes else {},
        )
    if out is None or mark.is_file():
        try:
            mark.write_text(_relative_place(folder, store), encoding="utf-8")
        except OSError as error:
            raise LraError(
                f"cannot write '{mark}': {system_reason(error)}; remove it or choose another --out"
            ) from error
    if other:
        words = f"'{folder}' had the report of another store, {other}, and has that of"
        echo(f"lra: warning: {words} '{store.path}' now", err=True)
    return rendered


@contextmanager
def _without_collection() -> Iterator[None]:
    """No garbage collection: each would walk all records, in all a fifth of the time of many."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _relative_place(folder: Path, store: Store) -> str:
    """The path of a store relative to its report, without the folders above both."""
    return os.path.relpath(store.path.resolve(), folder.resolve())


def _other_store(mark: Path, store: Store) -> str | None:
    """The store whose report lies beside a mark, where that is another one."""
    from lra.core.paths import path_kind

    if path_kind(mark) != "file":
        return None
    from lra.core.hashing import DIGITS, value_hash

    marked = mark.read_text(encoding="utf-8", errors="replace").strip()
    if re.fullmatch(rf"[0-9a-f]{{{DIGITS}}}", marked):
        # As earlier versions left it, by the hash of where it lies.
        return None if marked == value_hash(str(store.path.resolve())) else "by an earlier version"
    if marked == _relative_place(mark.parent, store):
        return None
    return f"'{os.path.relpath((mark.parent / marked).resolve())}'"


def echo_findings(findings: Findings) -> None:
    """Print the table and the sentences that a person wants to read."""
    if findings.table:
        echo(f"{findings.table}\n")
    for line in findings.headline:
        echo(line)
