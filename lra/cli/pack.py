"""`lra pack`: a store's records in a few small files in place of one file each."""

from __future__ import annotations

from pathlib import Path

import click

from lra.cli import flags
from lra.cli.echo import echo


@click.command("pack", short_help="Put a store's records into a few small files.")
@click.argument("store", metavar="STORE", type=flags.Folder(Path))
def command(store: Path) -> None:
    """Pack the records of STORE: a compressed file for each kind, a line of JSON a record.

    Whatever reads a store reads packs. Records that are made later get files of their own, and
    count where a pack has an older one of the same cell; pack again to put them in.
    """
    from lra.core.errors import UsageError
    from lra.report.words import count, quantity
    from lra.store import Store, pack

    found = Store(store).existing()
    # Holding a folder for writing leaves a file in it.
    if not found.loose() and not found.packed().files:
        raise UsageError(f"no records in '{store}'; name a folder of records")
    with found.locked() as held:
        done = pack(held)
    echo(
        f"{count(done.records, 'record')} packed; {count(done.files, 'pack')}: "
        f"{quantity(done.before, 'B')} before, {quantity(done.after, 'B')} now"
    )
