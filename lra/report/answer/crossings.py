"""From which length mechanisms cost less than exact attention, in a sentence."""

from __future__ import annotations

import math

from lra.report.costs.crossover import about, crossings
from lra.report.costs.derived import Column
from lra.report.costs.tables import EfficiencyTables, call_words
from lra.report.entries import Busy
from lra.report.rows import EXACT
from lra.report.words import listing

_MODES = ("train", "forward")


def crossing_sentences(tables: EfficiencyTables, name: str, busy: Busy) -> list[str]:
    """Return a sentence for each mode of tables whose calls have as many positions at every length;
    there are none of other tables, whose short inputs may leave a device idle.

    `name` tells these tables from those of other settings.
    """
    if tables.tokens is None:
        return []
    columns = [one for one in tables.derived if one.timed and one.mode in _MODES]
    columns.sort(key=lambda one: _MODES.index(one.mode))
    return [words for one in columns if (words := _sentence(one, tables, name, busy))]


def _sentence(column: Column, tables: EfficiencyTables, name: str, busy: Busy) -> str:
    found = {label: one for (_, label), (one, _) in crossings(column, tables.entries, busy).items()}
    if not found:
        return ""
    shortest = min(one.lengths[0] for one in found.values())
    longest = max(one.lengths[-1] for one in found.values())
    at = {label: one.at for label, one in sorted(found.items(), key=lambda item: item[1].at)}
    always = [label for label, length in at.items() if length == 0]
    never = [label for label, length in at.items() if math.isinf(length)]
    later = [f"{label} ({about(n)})" for label, n in at.items() if label not in (*always, *never)]
    told = {
        f"at every length from {shortest:,} to {longest:,}": always,
        "from about so many positions on": later,
        f"at no length up to {longest:,}": never,
    }
    first = tables.entries[0]
    where = f"On {first.machine}, in {first.dtype} and with {tables.tokens:,} positions a call"
    layer = f"{tables.level} ({name})" if name else tables.level
    parts = [f"{words}: {listing(names)}" for words, names in told.items() if names]
    return (
        f"{where}, a {call_words(column.mode)} of the {layer} takes less time than fused exact "
        f"attention ({EXACT}) {'; '.join(parts)}."
    )
