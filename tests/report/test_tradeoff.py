"""The figure of the Long Range Arena, as numbers."""

from __future__ import annotations

import msgspec
import pytest

from lra.core.records import Metric, Record
from lra.report.efficiency import efficiency_tables
from lra.report.plots_tradeoff import tradeoff_figure
from lra.report.quality import quality_tables
from lra.report.select import join
from lra.report.style import looks
from lra.report.tradeoff import Tradeoff, tradeoff

from .sample import THERE, efficiency, mechanism, quality


def _timed(name: str, seconds: float, memory: float, **more: object) -> Record:
    return efficiency(name, 1024, "train", seconds, memory, **more)


def _place(run: list[Record], reference: list[Record] | None = None) -> Tradeoff | None:
    selection = join(run, reference or [])
    return tradeoff(quality_tables(selection)[0], efficiency_tables(selection))


def test_the_runs_own_figures_place_it() -> None:
    found = _place(
        [
            quality("performer", "text", 0.7),
            quality("sdpa", "text", 0.9),
            _timed("performer", 0.02, 50e6),
            _timed("sdpa", 0.04, 100e6),
        ]
    )
    assert found is not None
    assert found.length == "1024"
    assert [(c.accuracy, c.seconds, c.memory, c.elsewhere) for c in found.circles] == [
        (0.7, 0.02, 50e6, False),
        (0.9, 0.04, 100e6, False),
    ]
    assert found.exact_seconds == 0.04


def test_another_machine_places_only_by_ratio() -> None:
    """There linear takes half the time and a fifth of the memory of exact attention."""
    run = [quality("sdpa", "text", 0.9), _timed("sdpa", 0.04, 100e6)]
    reference = [
        quality("linear", "text", 0.6, machine=THERE),
        _timed("linear", 0.001, 2e6, machine=THERE),
        _timed("sdpa", 0.002, 10e6, machine=THERE),
    ]
    found = _place(run, reference)
    assert found is not None
    linear = next(c for c in found.circles if c.row.label == "linear")
    assert linear.elsewhere
    assert (linear.seconds, linear.memory) == pytest.approx((0.02, 20e6))


def test_without_exact_attention_here_another_machine_places_nothing() -> None:
    run = [quality(n, "text") for n in ("a", "b")] + [_timed(n, 0.01, 1e6) for n in ("a", "b")]
    reference = [
        quality("linear", "text", machine=THERE),
        _timed("linear", 0.001, 2e6, machine=THERE),
        _timed("sdpa", 0.002, 10e6, machine=THERE),
    ]
    found = _place(run, reference)
    assert found is not None
    assert [circle.row.label for circle in found.circles] == ["a", "b"]
    assert "linear" in found.missing


def test_a_reference_accuracy_takes_the_runs_timing_but_not_that_of_an_edited_source() -> None:
    edited = mechanism("performer", "edited")
    run = [
        quality(edited, "text", 0.8),
        efficiency(edited, 1024, "train", 0.02, 50e6),
        _timed("sdpa", 0.04, 100e6),
    ]
    found = _place(run, [quality("performer", "text", 0.7), quality("sdpa", "text", 0.9)])
    assert found is not None
    assert [circle.row.title for circle in found.circles] == ["performer", "sdpa (reference)"]


def test_the_length_is_the_longest_that_most_reached() -> None:
    run = [quality(name, "text") for name in ("a", "b", "sdpa")]
    run += [efficiency(n, 512, "train") for n in ("a", "b", "sdpa")]
    run += [efficiency("a", 2048, "train"), efficiency("b", 2048, "train", status="oom")]
    run += [efficiency("sdpa", 2048, "train", status="oom")]
    found = _place(run)
    assert found is not None
    assert found.length == "512"


def test_the_caption_names_what_a_busy_machine_placed() -> None:
    def caption(*timed: Record) -> str:
        selection = join([quality(n, "text") for n in ("a", "b", "sdpa")] + list(timed), [])
        quality_table, costs = quality_tables(selection)[0], efficiency_tables(selection)
        known = looks((e.mechanism, e.label) for e in selection.entries if e.mechanism)
        figure = tradeoff_figure(quality_table, costs, {}, known)
        assert figure is not None
        return figure.caption

    quiet = [_timed(name, 0.01, 1e6) for name in ("a", "b", "sdpa")]
    assert "busy" not in caption(*quiet)
    control = Metric(value=9e-3, unit="s")
    slow = {**quiet[0].metrics, "control_after": control}
    busy = msgspec.structs.replace(quiet[0], metrics=slow)
    told = caption(busy, *quiet[1:])
    assert "Timed on a busy machine (! in the table), so the speed is not to be trusted: a." in told


def test_a_ratio_to_a_disturbed_time_is_disturbed() -> None:
    control = Metric(value=9e-3, unit="s")
    exact = _timed("sdpa", 0.04, 100e6)
    exact = msgspec.structs.replace(exact, metrics={**exact.metrics, "control_after": control})
    there = [
        quality("linear", "text", 0.6, machine=THERE),
        _timed("linear", 0.001, 2e6, machine=THERE),
        _timed("sdpa", 0.002, 10e6, machine=THERE),
    ]
    found = _place([quality("sdpa", "text", 0.9), exact], there)
    assert found is not None
    assert [circle.disturbed for circle in found.circles] == [True, True]


def test_one_mechanism_alone_is_no_figure() -> None:
    assert _place([quality("a", "text"), _timed("a", 0.1, 1e6)]) is None
