"""Which rows are shown: when a reference row yields to the run's."""

from __future__ import annotations

from collections.abc import Sequence

from lra.core.records import Record
from lra.report.load.select import join
from lra.report.rows import row_keys

from .sample import efficiency, error, mechanism, quality

OLD = "2026-11-01T00:00:00Z"


def _rows(metric: str, run: Sequence[Record], reference: Sequence[Record]) -> list[str]:
    figures = join(run, reference).figures
    return [key.row(()).title for key in row_keys(figures[figures["metric"] == metric])]


def test_a_run_without_a_figure_hides_no_reference_that_has_one() -> None:
    lengths = (512, 1024)
    reference = [efficiency("a", n, started=OLD) for n in lengths]
    whole = [efficiency("a", n) for n in lengths]
    late = [efficiency("a", n, status="timeout") for n in lengths]
    assert _rows("latency", whole, reference) == ["a"]
    assert _rows("latency", late, reference) == ["a", "a (reference)"]
    assert _rows("latency", [whole[0], late[1]], reference) == ["a", "a (reference)"]
    # Where neither has one there is nothing to see beside the run's own word.
    lost = [reference[0], efficiency("a", 1024, status="oom", started=OLD)]
    assert _rows("latency", [whole[0], late[1]], lost) == ["a"]


def test_fewer_seeds_hide_no_reference_with_more() -> None:
    reference = [error("a", 256, seed=seed, started=OLD) for seed in range(3)]
    run = [error("a", 256, seed=seed) for seed in range(3)]
    assert _rows("output_error", run, reference) == ["a"]
    assert _rows("output_error", run[:1], reference) == ["a", "a (reference)"]
    failed = [*run[:2], error("a", 256, seed=2, status="error")]
    assert _rows("output_error", failed, reference) == ["a", "a (reference)"]
    # As many, and be they others.
    assert _rows("output_error", [error("a", 256, seed=7)], reference[:1]) == ["a"]
    seeds = [quality("a", "text", seed=seed, started=OLD) for seed in range(3)]
    found = _rows("test_accuracy", [quality("a", "text")], seeds)
    assert found == ["a", "a (reference)"]


def test_another_budget_hides_no_reference() -> None:
    small, large = (mechanism("a", features=n) for n in (16, 64))
    found = _rows("output_error", [error(small, 256)], [error(large, 256, started=OLD)])
    assert found == ["a (features=16)", "a (features=64) (reference)"]
