"""What a report of some records says first."""

from __future__ import annotations

from lra.core.records import Record
from lra.report.answer.sentences import answer, caveats
from lra.report.costs.tables import efficiency_tables
from lra.report.quality.tables import quality_tables
from lra.report.select import join
from report.sample import efficiency


def answered(records: list[Record], reference: list[Record] | None = None) -> tuple[str, ...]:
    selection = join(records, reference or [])
    tables = quality_tables(selection)
    told = answer(selection, tables, efficiency_tables(selection))
    return (*told, *caveats(selection, tables))


def timed(name: str, seconds: float, memory: float, length: int = 2048) -> Record:
    return efficiency(name, length, "train", seconds, memory)
