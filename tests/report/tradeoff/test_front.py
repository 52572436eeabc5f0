"""The front of accuracy against time: who is on it, length by length."""

from __future__ import annotations

import re

import msgspec
from lra.report.costs.tables import efficiency_tables
from lra.report.mechanisms.settings import stand_ins
from lra.report.pictures.front import front_figure
from lra.report.pictures.style import looks
from lra.report.pictures.tradeoff import tradeoff_figure
from lra.report.quality.tables import quality_tables
from lra.report.select import join
from lra.report.table import Figure, Table
from lra.report.tradeoff.front import ON_FRONT, Front, disturbed, front_table, fronts

from lra.core.cells import EfficiencyCell, QualityCell
from lra.core.records import Metric, Record
from lra.report.words import TIMES, listing
from report.mechanisms.checks import softmax
from report.sample import efficiency, mechanism, quality

ACCURACY = {"sdpa": 0.9, "linear": 0.7, "slow": 0.6, "identity": 0.4}
SECONDS = {"sdpa": 0.04, "linear": 0.02, "slow": 0.03, "identity": 0.01}


def _records(*lengths: int) -> list[Record]:
    trained = [quality(name, "text", share) for name, share in ACCURACY.items()]
    return trained + [
        efficiency(name, length, "train", seconds, 50e6)
        for length in lengths
        for name, seconds in SECONDS.items()
    ]


def _found(records: list[Record]) -> tuple[tuple[Front, ...], Table, Figure]:
    selection = join(records, [])
    table, costs = quality_tables(selection)[0], efficiency_tables(selection)
    found = fronts(table, costs, stand_ins(selection.entries, "mini"))
    known = looks((e.mechanism, e.label) for e in selection.entries if e.mechanism)
    figure = front_figure(table, found, known)
    assert figure is not None
    return found, front_table(table, found), figure


def _tuned(record: Record) -> Record:
    assert isinstance(record.cell, QualityCell)
    cell = msgspec.structs.replace(record.cell, track="tuned")
    return msgspec.structs.replace(record, id=cell.id, cell=cell)


def _names(front: Front) -> list[str]:
    return [circle.row.label for circle in front.members]


def test_the_front_is_what_no_other_beats_in_both_and_never_the_floor() -> None:
    found, table, figure = _found(_records(512, 1024))
    assert [_names(front) for front in found] == [["linear", "sdpa"]] * 2
    cells = {row.label: row.cells for row in table.rows}
    assert [cell.strong for cell in cells["linear"]] == [False, True, True]
    assert [cell.strong for cell in cells["slow"]] == [False, False, False]
    assert cells["linear"][1].text == f"0.500 {TIMES}"
    told = f"linear (0.500 {TIMES} sdpa) and sdpa (1.00 {TIMES} sdpa)"
    assert f"at length 512 {told}; at length 1024 {told}." in figure.alt


def test_table_and_caption_say_the_same_of_the_front_and_what_accuracy_is_of() -> None:
    _, table, figure = _found(_records(512))
    assert table.notes[0].startswith(f"Bold: on the front of its length: {ON_FRONT}. ")
    assert f"The line joins the front: {ON_FRONT}; " in figure.caption
    assert "Trained on 160 tokens, timed at the length of each panel." in figure.caption
    assert table.caption.endswith(" Accuracy is of training on 160 tokens.")


def test_no_mixing_is_said_to_be_left_out_where_it_has_a_place() -> None:
    told = "No mixing (identity) is left out of the front: it would always be the fastest."
    assert told in _found(_records(512))[1].notes
    without = [r for r in _records(512) if r.cell.mechanism.name != "identity"]  # type: ignore[union-attr]
    assert not any("identity" in note for note in _found(without)[1].notes)


def test_what_computes_the_same_function_as_exact_attention_is_named() -> None:
    same = [quality("full", "text", 0.91), efficiency("full", 512, "train", 0.05, 50e6)]
    told = "full and sdpa compute the same function; differences of accuracy between them are "
    notes = _found([*_records(512), *same, softmax("full")])[1].notes
    assert f"{told}chance." in notes
    tuned = [_tuned(r) if isinstance(r.cell, QualityCell) else r for r in [*_records(512), *same]]
    notes = _found([*tuned, softmax("full")])[1].notes
    assert "full and sdpa compute the same function." in notes
    for records in ([*_records(512), *same], [*_records(512), same[0], softmax("full")]):
        assert not any("same function" in note for note in _found(records)[1].notes)


def test_accuracies_beside_times_of_other_settings_are_marked() -> None:
    few, many = (mechanism("performer", features=n) for n in (32, 256))
    wide = mechanism("window", left=8)
    records = [
        *_records(512),
        quality(few, "text", 0.8),
        efficiency(many, 512, "train", 0.03, 50e6),
        quality(wide, "text", 0.8),
        efficiency(wide, 512, "train", 0.03, 50e6),
    ]
    table = _found(records)[1]
    assert {row.label: row.cells[0].note for row in table.rows if row.cells[0].note} == {
        "performer": "timed otherwise"
    }
    told = "performer was trained at scale mini with features=32, and timed with features=256."
    assert told in table.notes
    # Without a time there is nothing to mark.
    untimed = [quality(few, "text", 0.8), efficiency(many, 512, "forward", 0.03, 50e6)]
    table = _found([*_records(512), *untimed])[1]
    assert not any(row.cells[0].note for row in table.rows)
    assert told not in table.notes


def test_names_stay_off_the_line_which_goes_on_to_the_right() -> None:
    """There, where nothing else is, they would stand first of all."""
    _, _, figure = _found(_records(512))
    for name in ("linear", "sdpa"):
        (anchor,) = re.findall(rf"text-anchor: (\w+)[^>]*>{name}<", figure.svg)
        assert anchor != "start"


def test_of_two_alike_both_are_on_it() -> None:
    records = [
        *_records(512),
        quality("twin", "text", 0.7),
        efficiency("twin", 512, "train", 0.02, 5e7),
    ]
    (front,), _, _ = _found(records)
    assert _names(front) == ["linear", "twin", "sdpa"]


def test_what_failed_stands_there_in_words_and_without_exact_attention_times_are_seconds() -> None:
    records = [
        *_records(512),
        efficiency("sdpa", 1024, "train", status="oom"),
        efficiency("linear", 1024, "train", 0.05, 50e6),
        efficiency("slow", 1024, "train", 0.06, 50e6),
        efficiency("identity", 1024, "train", status="timeout"),
    ]
    found, table, figure = _found(records)
    assert [front.placed.length for front in found] == ["512", "1024"]
    cells = {row.mechanism: row.cells[-1].text for row in table.rows}
    assert cells == {"linear": "50.0 ms", "slow": "60.0 ms", "sdpa": "OOM", "identity": "timeout"}
    assert "In seconds: lengths at which sdpa has no time." in table.notes
    assert "OOM: sdpa" in figure.svg and "timeout: no mixing (identity)" in figure.svg
    assert "time of a training step, s" in figure.svg
    # Both panels have room for exact attention's 90 %, which only one of them shows.
    assert ">80<" in figure.svg and "Faint" not in figure.caption


def test_the_accuracy_of_a_reference_row_is_faint_and_the_caption_says_so() -> None:
    run = [quality("sdpa", "text", 0.9)]
    run += [efficiency(n, 512, "train", s, 50e6) for n, s in SECONDS.items()]
    selection = join(run, [quality("linear", "text", 0.7)])
    table, costs = quality_tables(selection)[0], efficiency_tables(selection)
    found = fronts(table, costs, stand_ins(selection.entries, "mini"))
    known = looks((e.mechanism, e.label) for e in selection.entries if e.mechanism)
    figure = front_figure(table, found, known)
    assert figure is not None
    assert "fill-opacity: 0.08" in figure.svg
    assert "Faint: accuracy of a reference row." in figure.caption


def test_a_length_that_few_were_tried_at_has_no_front() -> None:
    """Two of four are half of them; of five they are fewer."""
    few = [efficiency(name, 2048, "train", 0.1, 50e6) for name in ("sdpa", "linear")]
    found, _, _ = _found([*_records(512), *few])
    assert [front.placed.length for front in found] == ["512", "2048"]
    more = [quality("more", "text"), efficiency("more", 512, "train", 0.1, 5e7)]
    found, _, _ = _found([*_records(512), *few, *more])
    assert [front.placed.length for front in found] == ["512"]


def test_of_many_lengths_four_are_drawn_with_the_shortest_and_the_longest() -> None:
    found, table, figure = _found(_records(128, 256, 512, 1024, 2048, 4096))
    assert len(found) == 6 and len(table.columns) == 7
    drawn = [f"length {front.placed.length}" in figure.svg for front in found]
    assert drawn == [True, False, True, True, False, True]
    assert figure.caption.endswith("Drawn are 4 of 6 lengths.")


def test_of_a_crowd_the_front_alone_is_named() -> None:
    """In the figure of all the same, which otherwise names each."""
    crowd = [f"m{n}" for n in range(30)]
    records = [
        *_records(512),
        *(quality(name, "text", 0.5) for name in crowd),
        *(efficiency(name, 512, "train", 0.05, 50e6) for name in crowd),
    ]
    selection = join(records, [])
    table, costs = quality_tables(selection)[0], efficiency_tables(selection)
    known = looks((e.mechanism, e.label) for e in selection.entries if e.mechanism)
    figure = tradeoff_figure(table, costs, stand_ins(selection.entries, "mini"), known)
    assert figure is not None
    assert ">linear<" in figure.svg and ">sdpa<" in figure.svg and ">m7<" not in figure.svg
    assert f"Named are exact attention, no mixing and the front: {ON_FRONT}." in figure.caption


def test_a_busy_time_of_exact_attention_marks_every_ratio_over_it() -> None:
    def slowed(record: Record) -> Record:
        slow = {**record.metrics, "control_after": Metric(value=9e-3, unit="s")}
        return msgspec.structs.replace(record, metrics=slow)

    def marked(busy: str) -> set[str]:
        records = [
            slowed(r) if isinstance(r.cell, EfficiencyCell) and r.cell.mechanism.name == busy else r
            for r in _records(256)
        ]
        (front,), table, figure = _found(records)
        assert any("busy machine" in note for note in table.notes) == bool(busy)
        doubtful = [c.row.title for c in front.placed.circles if disturbed(front, c)]
        which = "all" if busy == "sdpa" else listing(doubtful)
        told = f"are to be trusted: {which} at 256." if busy else ""
        assert told in figure.caption
        assert ("busy machine" in figure.caption) == bool(busy)
        return {row.label for row in table.rows if row.cells[1].busy}

    assert marked("") == set()
    assert marked("linear") == {"linear"}
    assert marked("sdpa") == {row.label for row in _found(_records(256))[1].rows}
