"""`lra show --card`: the page of a mechanism, from records alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lra.cli.echo import echo
from lra.core.errors import LraError, UsageError, system_reason


def write_cards(impls: Sequence[str], store: Path, out: Path | None) -> int:
    """Write the pages of mechanisms into a folder, print their facts and places, and return the
    exit code.

    Raises `UsageError` for a mechanism without a record in the store and in the reference.
    """
    from lra.core import catalogue
    from lra.report.assemble import analyse
    from lra.report.cards import cards
    from lra.report.load.select import join
    from lra.report.write.html import card_html
    from lra.store import Store
    from lra.store.reference import reference_records

    own = Store(store).records() if store.is_dir() else ()
    # The reference's records are wanted too, whatever cells the store shares with them.
    analysis = analyse(join([*reference_records(), *own], []))
    names = [target.name for target in catalogue.expand("mechanism", impls)]
    known = {card.mechanism: card for card in cards(analysis, names)}
    if missing := [name for name in names if name not in known]:
        raise UsageError(
            f"there is no record of {missing[0]}; run python -m lra run --impl {missing[0]} first"
        )
    folder = out or Path("reports") / store.resolve().name / "mechanisms"
    for name in names:
        card = known[name]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            page = card_html(card, analysis.looks, home="")
            (folder / card.file).write_text(page, encoding="utf-8")
        except OSError as error:
            raise LraError(
                f"cannot write '{folder}': {system_reason(error)}; choose another --out"
            ) from error
        echo(f"{card.name}: {'; '.join(f'{fact}: {words}' for fact, words in card.facts)}")
        echo(f"  {folder / card.file}")
    return 0
