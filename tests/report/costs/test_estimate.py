"""Estimates of CO2e and cost: from measured energy alone, and never among what was measured."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from lra.report.costs.estimate import Assumptions
from lra.report.select import join
from lra.report.table import Section, Table

from lra.core.errors import UsageError
from lra.core.records import Record
from lra.report import render
from lra.report.assemble import assemble
from report.sample import GPU, efficiency

from .test_energy import powered

BOTH = Assumptions(400.0, 0.3)


def sections(assumed: Assumptions | None, *records: Record) -> dict[str, Section]:
    report, _ = assemble(join(list(records), []), "made up", assumed)
    return {section.id: section for section in report.sections}


def estimates(assumed: Assumptions | None, *records: Record) -> list[Table]:
    found = sections(assumed, *records)["energy"].tables
    return [table for table in found if table.title.startswith("Estimate")]


def test_a_million_calls_of_3_6_joules_take_a_kilowatt_hour() -> None:
    (table,) = estimates(BOTH, powered("linear", 512, 3.6), powered("sdpa", 512, 36.0))
    (linear, exact) = (row.cells[0] for row in table.rows)
    assert (linear.text, linear.note) == ("400", "0.30")
    assert (exact.text, exact.note, exact.value) == ("4000", "3.0", pytest.approx(4000.0))
    assert table.title == "Estimate: CO2e of a million forward passes, in g"
    assert "not measured" in table.caption
    assert "400 g of CO2e per kWh and a price of 0.3 per kWh" in table.caption
    assert table.caption.endswith("The second figure is the cost.")


def test_each_assumption_alone_and_none() -> None:
    records = (powered("linear", 512, 3.6), powered("sdpa", 512, 3.6))
    (grams,) = estimates(Assumptions(grams=400.0), *records)
    assert (grams.rows[0].cells[0].text, grams.rows[0].cells[0].note) == ("400", "")
    assert "second figure" not in grams.caption
    (price,) = estimates(Assumptions(price=0.3), *records)
    assert price.title == "Estimate: cost of a million forward passes"
    assert (price.rows[0].cells[0].text, price.rows[0].cells[0].note) == ("0.30", "")
    assert estimates(None, *records) == [] == estimates(Assumptions(), *records)


def test_what_has_no_energy_has_its_word_and_a_cpu_has_no_estimate() -> None:
    failed = efficiency("sdpa", 512, machine=GPU, status="oom")
    (table,) = estimates(BOTH, powered("linear", 512, 3.6), failed)
    assert [row.cells[0].text for row in table.rows] == ["400", "OOM"]
    told = " ".join(sections(BOTH, efficiency("linear", 512))["protocol"].text)
    assert "No estimate of CO2e or cost on Example CPU 9000, 2 cores (cpu): the energy" in told
    assert "estimate" not in " ".join(sections(None, efficiency("linear", 512))["protocol"].text)
    assert "No estimate" not in " ".join(
        sections(BOTH, powered("linear", 512, 3.6))["protocol"].text
    )


def test_no_measured_value_changes(tmp_path: Path) -> None:
    records = [powered("linear", 512, 3.6), powered("sdpa", 512, 3.6)]
    plain = render(records, [], tmp_path / "plain", title="t").page.parent
    stated = render(records, [], tmp_path / "stated", title="t", assumed=BOTH).page.parent
    assert (plain / "report.csv").read_bytes() == (stated / "report.csv").read_bytes()
    assert "CO2e" not in (plain / "report.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("grams", [0.0, -400.0, 4e5, math.nan, math.inf])
def test_an_intensity_that_makes_no_sense_is_refused(grams: float) -> None:
    with pytest.raises(UsageError, match=r"--grid-intensity .* makes no sense; give grams"):
        Assumptions(grams=grams)


@pytest.mark.parametrize("price", [0.0, -0.3, math.nan, math.inf])
def test_a_price_that_makes_no_sense_is_refused(price: float) -> None:
    with pytest.raises(UsageError, match=r"--price .* makes no sense; give the price"):
        Assumptions(price=price)
