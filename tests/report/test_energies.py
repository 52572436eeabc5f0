"""Energy, what of it is above the idle board, why there is none, and estimates made of it."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from lra.core.errors import UsageError
from lra.core.records import Metric, Record
from lra.report.analysis import Assumptions
from lra.report.model import Section, Table
from lra.report.sections import scaling
from lra.report.words import TIMES
from report.sample import GPU, efficiency, with_metrics
from report.sweeps import OLD, analysed, tables, value

BOTH = Assumptions(400.0, 0.3)


def powered(
    name: str, length: int, energy: float, *, each: float = 0.01, idle: float = 50.0, **fields: Any
) -> Record:
    """A call of 10 ms on a board that idles at 50 W: half a joule of each call is idle power."""
    made = efficiency(name, length, machine=GPU, **fields)
    return with_metrics(made, energy=energy, energy_seconds=each, idle_power=idle)


def unpowered(name: str, length: int, why: str, **fields: Any) -> Record:
    made = efficiency(name, length, **fields)
    null = Metric(value=None, unit="J", why_null=why)
    return msgspec.structs.replace(made, metrics={**made.metrics, "energy": null})


def section(*records: Record, assumed: Assumptions | None = None, **more: Any) -> Section:
    (found,) = scaling.sections(analysed(records, assumed=assumed, **more))
    return found


def energy(*records: Record, **more: Any) -> Table:
    return tables([section(*records, **more)])["energy-forward-1"]


def test_energy_has_its_multiple_and_what_is_above_idle() -> None:
    table = energy(
        powered("linear", 512, 2.0), powered("linear", 1024, 4.0), powered("sdpa", 512, 1.0)
    )
    assert table.title == "Energy of a forward pass, in J"
    found = value(table, "linear", "512")
    assert (found.text, found.note, found.number) == ("2.00", f"2.0{TIMES}; net 1.50", 2.0)
    assert value(table, "linear", "1024").note == "net 3.50"
    assert value(table, "sdpa", "1024").text == "not run"
    assert energy(powered("sdpa", 512, 2e-3)).title.endswith("in mJ")


def test_net_energy_is_of_each_origin_with_its_own_idle_power() -> None:
    again = [powered("sdpa", 512, 1.0), powered("linear", 512, 3.0), powered("linear", 1024, 3.0)]
    committed = [powered("sdpa", n, 2.0, idle=100.0, started=OLD) for n in (512, 1024)]
    assert again[0].id == committed[0].id
    table = energy(*again, reference=committed)
    notes = {row.title: row.values[0].note for row in table.rows}
    # Less 10 ms at 50 and at 100 W.
    assert notes == {
        "linear": f"3.0{TIMES}; net 2.50",
        "sdpa": "net 0.500",
        "sdpa (reference)": "net 1.00",
    }


def test_a_failed_call_and_one_without_an_energy_stand_there_too() -> None:
    lost = efficiency("sdpa", 512, machine=GPU, status="oom")
    silent = efficiency("b", 512, machine=GPU)
    table = energy(powered("linear", 512, 2.0), lost, silent)
    assert [row.title for row in table.rows] == ["linear"]
    assert any("b (not measured)" in note and "sdpa (OOM)" in note for note in table.notes)
    assert any("not in the record" in note for note in table.notes)


def test_what_is_not_above_idle_and_what_lacks_idle_power_has_no_net() -> None:
    lacking = with_metrics(efficiency("b", 512, machine=GPU), energy=2.0)
    table = energy(powered("a", 512, 0.4), lacking, powered("sdpa", 512, 1.0))
    assert value(table, "a", "512").note == f"0.40{TIMES}"
    assert value(table, "b", "512").note == f"2.0{TIMES}"
    assert any("not above the idle board" in note and "lacks idle" in note for note in table.notes)


def test_null_energies_make_no_table_and_the_section_says_why() -> None:
    found = section(*(unpowered(name, 512, "a CPU has no board") for name in ("linear", "sdpa")))
    assert not any(table.id.startswith("energy") for table in found.tables)
    why = "No energy was measured on Example CPU 9000, 2 cores: a CPU has no board."
    assert why in found.text
    assert not any("energy" in text for text in section(efficiency("linear", 512)).text)
    some = section(unpowered("linear", 512, "others", machine=GPU), powered("sdpa", 512, 1.0))
    assert not any("energy" in text for text in some.text)
    assert any("others" in note for note in tables([some])["energy-forward-1"].notes)


def estimates(assumed: Assumptions | None, *records: Record) -> list[Table]:
    found = section(*records, assumed=assumed).tables
    return [table for table in found if table.title.startswith("Estimate")]


def test_a_million_calls_of_3_6_joules_take_a_kilowatt_hour() -> None:
    (table,) = estimates(BOTH, powered("linear", 512, 3.6), powered("sdpa", 512, 36.0))
    linear, whole = (row.values[0] for row in table.rows)
    assert (linear.text, linear.note) == ("400", "0.30")
    assert (whole.text, whole.note, whole.number) == ("4000", "3.0", pytest.approx(4000.0))
    assert table.title == "Estimate: CO2e of a million forward passes, in g"
    assert "400 g of CO2e per kWh and a price of 0.3 per kWh" in table.caption


def test_each_assumption_alone_and_none() -> None:
    records = (powered("linear", 512, 3.6), powered("sdpa", 512, 3.6))
    (grams,) = estimates(Assumptions(grams=400.0), *records)
    assert (grams.rows[0].values[0].text, grams.rows[0].values[0].note) == ("400", "")
    (price,) = estimates(Assumptions(price=0.3), *records)
    assert price.title == "Estimate: cost of a million forward passes"
    assert (price.rows[0].values[0].text, price.rows[0].values[0].note) == ("0.30", "")
    assert estimates(None, *records) == [] == estimates(Assumptions(), *records)


def test_without_measured_energy_there_is_no_estimate_and_the_section_says_so() -> None:
    assert (
        "No estimate of CO2e or cost on Example CPU 9000"
        in section(efficiency("linear", 512), assumed=BOTH).text[-1]
    )
    for assumed, record in ((None, efficiency("linear", 512)), (BOTH, powered("linear", 512, 3.6))):
        assert not any("estimate" in text for text in section(record, assumed=assumed).text)


@pytest.mark.parametrize("grams", [0.0, -400.0, 4e5, math.nan, math.inf])
def test_an_intensity_that_makes_no_sense_is_refused(grams: float) -> None:
    with pytest.raises(UsageError, match=r"--grid-intensity .* makes no sense; give grams"):
        Assumptions(grams=grams)


@pytest.mark.parametrize("price", [0.0, -0.3, math.nan, math.inf])
def test_a_price_that_makes_no_sense_is_refused(price: float) -> None:
    with pytest.raises(UsageError, match=r"--price .* makes no sense; give the price"):
        Assumptions(price=price)
