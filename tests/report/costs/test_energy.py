"""Energy tables, gross and net of the idle board, and why there is none."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from lra.report.costs.tables import EfficiencyTables, efficiency_tables
from lra.report.select import join
from lra.report.table import Cell, Table

from lra.core.records import Metric, Record
from lra.report.assemble import assemble
from lra.report.words import TIMES
from report.sample import GPU, efficiency, with_metrics


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


def tables(*records: Record) -> EfficiencyTables:
    (one,) = efficiency_tables(join(list(records), []))
    return one


def cell(table: Table, row: str, column: str = "512") -> Cell:
    found = next(r for r in table.rows if r.label == row)
    return found.cells[table.columns.index(column)]


def told(*records: Record, section: str = "protocol") -> str:
    report, _ = assemble(join(list(records), []), "made up")
    return " ".join(next(s for s in report.sections if s.id == section).text)


def test_energy_is_told_by_length_with_its_ratio_and_net_of_idle() -> None:
    one = tables(
        powered("linear", 512, 2.0), powered("linear", 1024, 4.0), powered("sdpa", 512, 1.0)
    )
    gross, net = one.energy["forward"], one.net_energy["forward"]
    assert gross.title == "Energy of a forward pass, in J"
    assert cell(gross, "linear") == Cell("2.00", f"2.00 {TIMES}", 2.0, 0.0, 2.0)
    assert (cell(gross, "linear", "1024").note, cell(gross, "sdpa", "1024").text) == (
        "n/a",
        "not run",
    )
    assert cell(net, "linear").value == pytest.approx(1.5)
    assert cell(net, "linear").ratio == pytest.approx(3.0)
    assert any("the board alone" in note for note in gross.notes)


def test_small_energies_have_a_smaller_unit() -> None:
    assert tables(powered("sdpa", 512, 2e-3)).energy["forward"].title.endswith("in mJ")


def test_a_failed_cell_stands_in_the_energy_table_too() -> None:
    one = tables(powered("linear", 512, 2.0), efficiency("sdpa", 512, machine=GPU, status="oom"))
    assert cell(one.energy["forward"], "sdpa") == Cell("OOM")
    assert cell(one.net_energy["forward"], "sdpa") == Cell("OOM")


def test_what_is_not_above_idle_and_what_lacks_idle_power_has_no_net() -> None:
    lacking = with_metrics(efficiency("b", 512, machine=GPU), energy=2.0)
    one = tables(powered("a", 512, 0.4), lacking, powered("sdpa", 512, 1.0))
    net = one.net_energy["forward"]
    assert (cell(net, "a"), cell(net, "b")) == (Cell("not above idle"), Cell("not measured"))
    assert any("lacks idle power" in note for note in net.notes)
    assert tables(lacking).net_energy == {}


def test_null_energies_make_no_table_and_the_protocol_says_why() -> None:
    records = [unpowered(name, 512, "a CPU has no board") for name in ("linear", "sdpa")]
    assert tables(*records).energy == {}
    why = "No energy was measured on Example CPU 9000, 2 cores (cpu): a CPU has no board."
    assert why in told(*records)
    one = tables(unpowered("linear", 512, "others", machine=GPU), powered("sdpa", 512, 1.0))
    assert cell(one.energy["forward"], "linear") == Cell("not measured")
    assert "energy: not measured (others)." in one.energy["forward"].notes
    assert "No energy" not in told(powered("sdpa", 512, 1.0))


def test_records_that_say_nothing_of_energy_make_no_sentence() -> None:
    assert "energy" not in told(efficiency("linear", 512))


def test_a_cell_measured_again_and_its_reference_have_each_their_own_energy() -> None:
    again = [powered("sdpa", 512, 1.0), powered("linear", 512, 3.0), powered("linear", 1024, 3.0)]
    old = "2026-11-01T00:00:00Z"
    committed = [powered("sdpa", n, 2.0, idle=100.0, started=old) for n in (512, 1024)]
    assert again[0].id == committed[0].id
    (one,) = efficiency_tables(join(again, committed))
    gross, net = one.energy["forward"], one.net_energy["forward"]
    rows = {row.title: row.cells[0].value for row in gross.rows}
    assert rows == {"linear": 3.0, "sdpa": 1.0, "sdpa (reference)": 2.0}
    # Less 10 ms at 50 and at 100 W.
    rows = {row.title: row.cells[0].value for row in net.rows}
    assert rows == pytest.approx({"linear": 2.5, "sdpa": 0.5, "sdpa (reference)": 1.0})
