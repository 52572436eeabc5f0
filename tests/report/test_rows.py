"""Which rows are shown: when a reference row yields to the run's."""

from __future__ import annotations

from collections.abc import Sequence

from lra.core.records import Record
from lra.report.costs.tables import efficiency_tables
from lra.report.error.tables import error_tables
from lra.report.quality.tables import quality_tables
from lra.report.select import join
from lra.report.table import Table

from .sample import efficiency, error, mechanism, quality

OLD = "2026-11-01T00:00:00Z"


def _titles(table: Table) -> list[str]:
    return [row.title for row in table.rows if row.mechanism]


def _timed(run: Sequence[Record], reference: Sequence[Record]) -> list[str]:
    (tables,) = efficiency_tables(join(run, reference))
    return _titles(tables.latency["forward"])


def _erred(run: Sequence[Record], reference: Sequence[Record]) -> list[str]:
    (tables,) = error_tables(join(run, reference))
    return _titles(tables.tables[1.0])


def test_a_run_without_a_figure_hides_no_reference_that_has_one() -> None:
    lengths = (512, 1024)
    reference = [efficiency("a", n, started=OLD) for n in lengths]
    whole = [efficiency("a", n) for n in lengths]
    late = [efficiency("a", n, status="timeout") for n in lengths]
    assert _timed(whole, reference) == ["a"]
    assert _timed(late, reference) == ["a", "a (reference)"]
    assert _timed([whole[0], late[1]], reference) == ["a", "a (reference)"]
    # Where neither has one there is nothing to see beside the run's own word.
    lost = [reference[0], efficiency("a", 1024, status="oom", started=OLD)]
    assert _timed([whole[0], late[1]], lost) == ["a"]


def test_fewer_seeds_hide_no_reference_with_more() -> None:
    reference = [error("a", 256, seed=seed, started=OLD) for seed in range(3)]
    run = [error("a", 256, seed=seed) for seed in range(3)]
    assert _erred(run, reference) == ["a"]
    assert _erred(run[:1], reference) == ["a", "a (reference)"]
    failed = [*run[:2], error("a", 256, seed=2, status="error")]
    assert _erred(failed, reference) == ["a", "a (reference)"]
    # As many, and be they others.
    assert _erred([error("a", 256, seed=7)], reference[:1]) == ["a"]
    seeds = [quality("a", "text", seed=seed, started=OLD) for seed in range(3)]
    (table,) = quality_tables(join([quality("a", "text")], seeds))
    assert _titles(table.table)[:2] == ["a", "a (reference)"]


def test_another_budget_hides_no_reference() -> None:
    small, large = (mechanism("a", features=n) for n in (16, 64))
    found = _erred([error(small, 256)], [error(large, 256, started=OLD)])
    assert found == ["a (features=16)", "a (features=64) (reference)"]
