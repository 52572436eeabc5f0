"""What a report of some records says first."""

from __future__ import annotations

from lra.report.answer.sentences import answer, caveats
from lra.report.costs.tables import efficiency_tables
from lra.report.error.tables import error_tables
from lra.report.quality.standing import standing
from lra.report.quality.tables import quality_tables
from lra.report.select import join

from lra.core.records import Record
from report.sample import efficiency


def answered(records: list[Record], reference: list[Record] | None = None) -> tuple[str, ...]:
    selection = join(records, reference or [])
    tables = quality_tables(selection)
    costs, errors = efficiency_tables(selection), error_tables(selection)
    standings = [standing(one, selection) for one in tables]
    told = answer(selection, tables, costs, errors, standings)
    return (*told, *caveats(selection, tables))


def timed(name: str, seconds: float, memory: float, length: int = 2048) -> Record:
    return efficiency(name, length, "train", seconds, memory)
