"""The figure of the Long Range Arena, as numbers."""

from __future__ import annotations

import msgspec
import pytest
from lra.report.costs.tables import efficiency_tables
from lra.report.mechanisms.settings import stand_ins
from lra.report.pictures.style import looks
from lra.report.pictures.tradeoff import tradeoff_figure
from lra.report.quality.tables import quality_tables
from lra.report.select import join
from lra.report.tradeoff.points import Tradeoff, tradeoff

from lra.core.records import Metric, Record
from report.sample import THERE, edited, efficiency, mechanism, quality


def _timed(name: str, seconds: float, memory: float, **more: object) -> Record:
    return efficiency(name, 1024, "train", seconds, memory, **more)


def _busy(record: Record) -> Record:
    """The same, with a control that says that the machine was busy."""
    slow = {**record.metrics, "control_after": Metric(value=9e-3, unit="s")}
    return msgspec.structs.replace(record, metrics=slow)


def _caption(run: list[Record], reference: list[Record] | None = None) -> str:
    selection = join(run, reference or [])
    quality_table, costs = quality_tables(selection)[0], efficiency_tables(selection)
    known = looks((e.mechanism, e.label) for e in selection.entries if e.mechanism)
    figure = tradeoff_figure(quality_table, costs, stand_ins(selection.entries, "mini"), known)
    assert figure is not None
    return figure.caption


def _place(run: list[Record], reference: list[Record] | None = None) -> Tradeoff | None:
    selection = join(run, reference or [])
    instead = stand_ins(selection.entries, "mini")
    return tradeoff(quality_tables(selection)[0], efficiency_tables(selection), instead)


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
    assert [(c.accuracy, c.seconds, c.memory, c.moved) for c in found.circles] == [
        (0.7, 0.02, 50e6, False),
        (0.9, 0.04, 100e6, False),
    ]
    assert found.exact_seconds == 0.04


def test_the_caption_names_the_lengths_of_training_and_of_timing() -> None:
    trained = [quality(name, task) for name in ("a", "sdpa") for task in ("text", "image")]
    told = _caption([*trained, _timed("a", 0.01, 1e6), _timed("sdpa", 0.02, 1e6)])
    assert " Trained on 144 to 160 tokens, timed at length 1024." in told


def test_a_run_that_is_slowed_down_does_not_make_reference_rows_fast() -> None:
    """There `full` takes twice the time of exact attention, which takes five times as long here."""
    run = [quality("sdpa", "text", 0.9), _busy(_timed("sdpa", 0.2, 100e6))]
    reference = [
        quality("full", "text", 0.6),
        _timed("full", 0.08, 300e6),
        _timed("sdpa", 0.04, 100e6, replicate=1),
    ]
    found = _place(run, reference)
    assert found is not None
    full = next(c for c in found.circles if c.row.label == "full")
    assert full.moved and not full.elsewhere and not full.disturbed
    assert (full.seconds, full.memory) == pytest.approx((0.4, 300e6))
    told = _caption(run, reference)
    assert "Faint: accuracy of a reference row." in told
    assert "placed by its ratios of time and memory to sdpa there. Timed, wholly" in told
    assert (
        "sdpa was timed on a busy machine: the scale above, and how those of another run lie to "
        "the others, are not to be trusted." in told
    )


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
    assert linear.moved and linear.elsewhere
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
    missing = {one.row.label: one.why for one in found.missing}
    assert missing["linear"] == "not timed"


def test_a_reference_accuracy_takes_the_runs_timing_but_not_that_of_an_edited_source() -> None:
    other = edited("performer")
    run = [
        quality(other, "text", 0.8),
        efficiency(other, 1024, "train", 0.02, 50e6),
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
        return _caption([quality(n, "text") for n in ("a", "b", "sdpa")] + list(timed))

    quiet = [_timed(name, 0.01, 1e6) for name in ("a", "b", "sdpa")]
    assert "busy" not in caption(*quiet) and "Faint" not in caption(*quiet)
    told = caption(_busy(quiet[0]), *quiet[1:])
    assert (
        " Timed, wholly or in part, on a busy machine (! in the table), so the speed is not to be "
        "trusted: a. Not placed" in told
    )
    told = caption(*quiet[:2], _busy(quiet[2]))
    assert (
        " so the speed is not to be trusted: sdpa. sdpa was timed on a busy machine: the scale "
        "above is not to be trusted. Not placed" in told
    )


def test_of_what_was_timed_elsewhere_the_caption_says_that_the_ratio_is_doubtful() -> None:
    reference = [
        quality("linear", "text", 0.6, machine=THERE),
        _timed("linear", 0.001, 2e6, machine=THERE),
        _timed("sdpa", 0.002, 10e6, machine=THERE),
    ]
    exact, own = quality("sdpa", "text", 0.9), _timed("sdpa", 0.04, 100e6)
    assert "busy" not in _caption([exact, own], reference)
    told = _caption([exact, _busy(own)], reference)
    assert "(! in the table), so the speed is not to be trusted: sdpa. sdpa was timed" in told
    assert "Placed by a ratio" not in told
    quality_there, linear, exact_there = reference
    told = _caption([exact, own], [quality_there, _busy(linear), exact_there])
    assert (
        "Placed by a ratio of times of which one, its own or one of sdpa, was taken on a busy "
        "machine, so the speed is not to be trusted: linear (reference). Not placed" in told
    )
    assert "wholly or in part" not in told and "scale above" not in told


def test_a_ratio_is_disturbed_where_it_was_taken() -> None:
    exact = _busy(_timed("sdpa", 0.04, 100e6))
    there = [
        quality("linear", "text", 0.6, machine=THERE),
        _timed("linear", 0.001, 2e6, machine=THERE),
        _timed("sdpa", 0.002, 10e6, machine=THERE),
    ]
    found = _place([quality("sdpa", "text", 0.9), exact], there)
    assert found is not None
    assert [circle.disturbed for circle in found.circles] == [True, False]
    there[2] = _busy(there[2])
    found = _place([quality("sdpa", "text", 0.9), exact], there)
    assert found is not None
    assert [circle.disturbed for circle in found.circles] == [True, True]


def test_one_mechanism_alone_is_no_figure() -> None:
    assert _place([quality("a", "text"), _timed("a", 0.1, 1e6)]) is None


def _missing(run: list[Record], reference: list[Record]) -> dict[str, str]:
    found = _place(run, reference)
    assert found is not None
    return {one.row.label: one.why for one in found.missing if one.why != "no accuracy"}


def test_what_ran_out_of_memory_here_is_not_placed_by_what_it_took_elsewhere() -> None:
    run = [quality(name, "text") for name in ("a", "full", "sdpa")]
    run += [_timed("a", 0.02, 50e6), _timed("sdpa", 0.04, 100e6)]
    there = [_timed("full", 0.03, 3e9, machine=THERE), _timed("sdpa", 0.02, 1e9, machine=THERE)]
    assert _missing(run, there) == {}
    failed = [*run, efficiency("full", 1024, "train", status="oom")]
    assert _missing(failed, there) == {"full": "OOM"}
    assert _missing(failed, [_timed("full", 0.03, 3e9, replicate=1)]) == {"full": "OOM"}


def test_settings_that_were_not_timed_here_take_no_other_settings_times_from_elsewhere() -> None:
    """Two others were timed at as many lengths, and neither stands for them."""
    few, some, many = (mechanism("performer", features=n) for n in (32, 64, 128))
    run = [quality(few, "text"), quality("a", "text"), quality("sdpa", "text")]
    run += [_timed("a", 0.02, 50e6), _timed("sdpa", 0.04, 100e6)]
    there = [
        efficiency(mechanism("performer", features=256), 1024, "train", 0.01, 1e6, machine=THERE),
        _timed("sdpa", 0.02, 1e9, machine=THERE),
    ]
    assert _missing(run, there) == {}
    run += [efficiency(one, 1024, "train", 0.01, 1e6) for one in (some, many)]
    assert _missing(run, there) == {"performer (features=32)": "timed with other settings"}


@pytest.mark.parametrize("other", [{"batch": 2}, {"heads": 8}])
def test_no_other_call_stands_for_one_that_was_not_timed(other: dict[str, object]) -> None:
    run = [quality(name, "text") for name in ("a", "linear", "sdpa")]
    run += [_timed("a", 0.02, 50e6), _timed("sdpa", 0.04, 100e6)]
    # What the run timed of that call makes the reference's rows fit it.
    run += [_timed("a", 0.02, 50e6, **other)]
    there = [_timed(name, 0.01, 1e6, machine=THERE, **other) for name in ("linear", "sdpa")]
    assert _missing(run, there) == {"linear": "not timed"}
