"""Declared operations beside counted ones, and the dots of the share of the limit."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from lra.report.costs.tables import EfficiencyTables, efficiency_tables
from lra.report.pictures.limit import limit_figure
from lra.report.pictures.style import looks
from lra.report.select import join
from lra.report.table import Cell, Figure

from lra.core.records import Metric, Record
from lra.report.assemble import assemble
from lra.report.words import TIMES
from report.sample import ceiling, efficiency, with_metrics


def tables(*records: Record) -> EfficiencyTables:
    (one,) = efficiency_tables(join(list(records), []))
    return one


def said(name: str, length: int, declared: float, counted: float, **fields: Any) -> Record:
    made = efficiency(name, length, **fields)
    return with_metrics(made, operations=counted, declared_operations=declared)


def silent(name: str, length: int) -> Record:
    made = with_metrics(efficiency(name, length), operations=1e6)
    null = Metric(value=None, unit="count", why_null="declares no operations")
    metrics = {**made.metrics, "declared_operations": null}
    return msgspec.structs.replace(made, metrics=metrics)


def test_where_all_agree_there_is_a_sentence_and_no_table() -> None:
    one = tables(said("linear", 512, 1e6, 1e6), said("sdpa", 512, 2e6, 2.001e6))
    assert one.declared is None
    (sentence,) = one.agreement
    assert sentence == (
        "For all 2 mechanisms compared, the operations counted in a forward pass equal what the "
        "layer declares by formula (within 0.1 %), at every length."
    )


def test_what_differs_has_a_row_with_the_multiple() -> None:
    one = tables(
        said("linear", 512, 1e6, 1e6),
        said("linear", 1024, 1.25e6, 1e6),
        said("sdpa", 512, 2e6, 2e6),
        said("sdpa", 1024, 2e6, 2e6),
    )
    assert one.declared is not None
    (row,) = one.declared.rows
    assert (row.label, row.cells) == (
        "linear",
        (Cell(f"1.000 {TIMES}", value=1.0), Cell(f"1.250 {TIMES}", value=1.25)),
    )
    assert one.agreement[0].startswith("For 1 of 2 mechanisms compared, the operations")


def test_what_is_not_counted_or_not_declared_is_named_and_not_compared() -> None:
    one = tables(said("linear", 512, 1e6, 1e6), said("lstm", 512, 1e6, 0.0), silent("mine", 512))
    assert one.declared is None
    (sentence,) = one.agreement
    assert sentence == (
        "For the one mechanism compared, the operations counted in a forward pass equal what the "
        "layer declares by formula (within 0.1 %), at every length; none are counted of lstm, as "
        "torch sees no product in a library's kernel; none are declared of mine."
    )


def test_records_that_declare_nothing_and_other_modes_say_nothing() -> None:
    old = with_metrics(efficiency("linear", 512), operations=1e6)
    assert (tables(old).declared, tables(old).agreement) == (None, ())
    trained = said("linear", 512, 1e6, 9e6, mode="train")
    assert (tables(trained).declared, tables(trained).agreement) == (None, ())


def test_both_stand_in_the_section_of_the_limit() -> None:
    records = [ceiling(), said("linear", 512, 2e6, 1e6), said("sdpa", 512, 1e6, 1e6)]
    report, _ = assemble(join(records, []), "made up")
    (section,) = [section for section in report.sections if section.id == "limit"]
    assert [table.id for table in section.tables] == ["limit-forward-1", "declared-1"]
    assert section.text and [figure.id for figure in section.figures] == ["limit-1"]


def _dots(*records: Record) -> Figure | None:
    selection = join(list(records), [])
    (one,) = efficiency_tables(selection)
    return limit_figure(one, looks((e.mechanism, e.label) for e in selection.entries))


def test_dots_are_of_the_longest_length_best_first() -> None:
    def shared(name: str, length: int, share: float, mode: str = "forward") -> Record:
        # At 1e11 operations a second a call of 10 ms could do 1e9.
        return with_metrics(efficiency(name, length, mode), operations=1e9 * share)

    figure = _dots(
        ceiling(),
        *(shared("linear", n, 0.2) for n in (512, 1024)),
        *(shared("sdpa", n, share) for n, share in ((512, 0.1), (1024, 0.6))),
        shared("short", 512, 0.9),
        shared("linear", 1024, 0.3, "train"),
    )
    assert figure is not None
    assert figure.title == "Share of the machine's limit at length 1024"
    written = re.findall(r"<text[^>]*>([^<]*)</text>", figure.svg)
    assert [t for t in written if t in ("linear", "sdpa", "short")] == ["sdpa", "linear"]
    assert {"forward pass", "training step"} <= set(written)
    assert "Highest: forward pass: sdpa 60 % and training step: linear 30 %." in figure.alt


@pytest.mark.parametrize("records", [(), (ceiling(),)])
def test_without_ceilings_or_counts_there_are_no_dots(records: tuple[Record, ...]) -> None:
    assert _dots(*records, efficiency("linear", 512)) is None


def test_a_cell_measured_again_is_compared_with_its_own_count() -> None:
    """It has the id of the committed one."""
    run = [said("linear", 512, 1e6, 1e6), said("sdpa", 1024, 2e6, 2e6)]
    old = [said("linear", n, 3e6, 2e6, started="2026-11-01T00:00:00Z") for n in (512, 1024)]
    assert run[0].id == old[0].id
    (one,) = efficiency_tables(join(run, old))
    assert one.declared is not None
    found = {row.title: row.cells[0].value for row in one.declared.rows}
    assert found == pytest.approx({"linear": 1.0, "linear (reference)": 1.5})
