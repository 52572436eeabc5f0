"""`lra show --card`: the page of a mechanism, from records alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lra.cli.echo import echo
from lra.core.errors import LraError, UsageError, system_reason
from lra.core.escape import escape_lines
from lra.core.paths import write


def write_cards(impls: Sequence[str], store: Path, out: Path | None) -> int:
    """Write the pages of mechanisms beside their pictures, or into a folder that was asked for,
    print their facts and places, and return the exit code.

    Raises `UsageError` for a mechanism without a record in the store and in the reference, and for
    a public package.
    """
    from lra.cli.report import mark, report_folder, taken
    from lra.core import catalogue
    from lra.core.peers import PREFIX
    from lra.report.assemble import analyse
    from lra.report.cards import cards
    from lra.report.load.select import join
    from lra.report.write.html import card_html
    from lra.store import Store
    from lra.store.reference import reference_records

    targets = catalogue.expand("mechanism", impls, cycles=True)
    for target in targets:
        if target.name.startswith(PREFIX):
            raise UsageError(f"{target.name} is a public package, which has no page; leave it out")
    records = Store(store)
    folder = report_folder(records, out)
    told = taken(records, folder, "show", is_asked_for=out is not None)
    own = records.records() if store.is_dir() else ()
    # The reference's records are wanted too, whatever cells the store shares with them.
    analysis = analyse(join([*reference_records(), *own], []))
    known = {card.mechanism: card for card in cards(analysis, [one.name for one in targets])}
    if missing := [target for target in targets if target.name not in known]:
        raise UsageError(
            f"there is no record of {missing[0].name}; run python -m lra run --impl "
            f"{missing[0].reference} first"
        )
    place = out or folder / "show"
    for target in targets:
        card = known[target.name]
        page = card_html(card, analysis.looks, home="")
        try:
            place.mkdir(parents=True, exist_ok=True)
            write(place / card.file, escape_lines(page).encode())
        except OSError as error:
            raise LraError(
                f"cannot write '{place}': {system_reason(error)}; choose another --out"
            ) from error
        facts = "; ".join(f"{fact}: {words}" for fact, words in card.facts)
        echo(f"{card.name}: {facts}" if facts else card.name)
        echo(f"  {place / card.file}")
    mark(records, folder)
    if told:
        echo(told, err=True)
    return 0
