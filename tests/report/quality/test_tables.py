"""Accuracy tables."""

from __future__ import annotations

from statistics import mean, stdev

import msgspec
import pytest
from lra.report.entries import measured
from lra.report.quality.tables import QualityTable, quality_tables
from lra.report.select import join
from lra.report.table import Cell
from lra.report.versions import data_hash

from lra.core.protocol import Rows
from lra.core.records import Record, Status
from report.mechanisms.checks import softmax
from report.sample import LENGTHS, MODEL, THERE, TRAINING, baseline, data, edited, quality


def _tables(records: list[Record], reference: list[Record] | None = None) -> list[QualityTable]:
    return quality_tables(join(records, reference or []))


def _cell(quality: QualityTable, row: str, column: str) -> Cell:
    table = quality.table
    found = next(r for r in table.rows if r.label == row)
    return found.cells[table.columns.index(column)]


def test_one_seed_is_its_accuracy_without_a_spread() -> None:
    (table,) = _tables([quality("performer", "text", 0.7834)])
    assert _cell(table, "performer", "text") == Cell("78.3", value=0.7834)
    assert any("One seed" in note for note in table.table.notes)


def test_seeds_are_averaged_with_their_standard_deviation_and_number() -> None:
    values = [0.70, 0.74, 0.81]
    (table,) = _tables([quality("performer", "text", v, seed=s) for s, v in enumerate(values)])
    cell = _cell(table, "performer", "text")
    assert cell.text == "75.0"
    assert cell.note == "± 5.6, n 3"
    assert (cell.value, cell.spread) == (mean(values), stdev(values))


def test_classes_of_machine_that_share_a_row_are_named() -> None:
    alone = [quality("performer", "text"), quality("sdpa", "text", machine=THERE)]
    (table,) = _tables(alone)
    assert not any("machine" in note for note in table.table.notes)
    (table,) = _tables([*alone, quality("performer", "text", seed=1, machine=THERE)])
    assert (
        "Seeds of several classes of machine stand in one row: Example CPU 9000, 2 cores; "
        "Other CPU 1, 8 cores."
    ) in table.table.notes


def test_trainings_that_shared_devices_are_named() -> None:
    def on(devices: int, record: Record) -> Record:
        return msgspec.structs.replace(record, method={"devices": devices})

    alone = [on(1, quality("sdpa", "text")), quality("performer", "image")]
    (table,) = _tables(alone)
    assert not any("devices" in note for note in table.table.notes)
    seeds = [on(4, quality("performer", "text", seed=seed)) for seed in range(2)]
    (table,) = _tables([*alone, *seeds])
    assert (
        "Trained on several devices at once: performer on text (4). Scores compare with those of "
        "one device; training seconds and steps per second in report.csv do not."
    ) in table.table.notes
    many = [on(2, quality(f"m{n}", "text")) for n in range(7)]
    (table,) = _tables(many)
    (note,) = (note for note in table.table.notes if "devices" in note)
    assert "m4 on text (2) and 2 more. Scores" in note and "m5" not in note


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ("oom", "OOM"),
        ("timeout", "timeout"),
        ("crash", "crash (SIGSEGV)"),
        ("diverged", "diverged"),
        ("error", "error (ValueError)"),
        ("unsupported", "unsupported"),
        ("skipped", "skipped: a shorter length failed"),
    ],
)
def test_an_ending_stands_in_words_where_the_figure_would_be(status: Status, text: str) -> None:
    (table,) = _tables([quality("performer", "text", status=status), quality("sdpa", "text", 0.9)])
    assert _cell(table, "performer", "text") == Cell(text)


def test_a_task_that_only_failed_with_other_data_keeps_the_mean() -> None:
    broken = quality("performer", "text", status="error", data_spec=data("text", hash="b" * 20))
    (table,) = _tables(
        [quality("performer", "listops", 0.4), quality("performer", "text", 0.6), broken]
    )
    assert table.mean_of == ("listops", "text")
    assert _cell(table, "performer", "mean of 2").text == "50.0"


def test_a_reference_row_stays_until_the_run_has_all_of_it() -> None:
    run = [quality(name, "text", 0.8) for name in ("performer", "sdpa")]
    run.append(quality("performer", "listops", 0.4))
    reference = [quality("sdpa", task, 0.9) for task in ("text", "listops")]
    (table,) = _tables(run, reference)
    assert [row.origin for row in table.table.rows if row.label == "sdpa"] == ["run", "reference"]
    run.append(quality("sdpa", "listops", 0.5))
    (table,) = _tables(run, reference)
    assert [row.origin for row in table.table.rows if row.label == "sdpa"] == ["run"]


def test_a_failed_seed_is_counted_and_never_averaged_in() -> None:
    records = [
        quality("performer", "text", 0.8),
        quality("performer", "text", status="diverged", seed=1),
    ]
    (table,) = _tables(records)
    cell = _cell(table, "performer", "text")
    assert (cell.text, cell.note, cell.value) == ("80.0", "n 1, 1 diverged", 0.8)


def test_an_absent_figure_says_why_and_a_cell_without_record_says_so() -> None:
    (table,) = _tables([quality("performer", "text", None), quality("sdpa", "image", 0.9)])
    assert _cell(table, "performer", "text") == Cell("not measured", "not in the record")
    assert _cell(table, "performer", "image") == Cell("not run")


def test_no_cell_of_any_table_is_blank_and_no_word_has_a_value() -> None:
    records = [quality("performer", "text", None), quality("sdpa", "image", status="oom")]
    (table,) = _tables(records)
    cells = [cell for row in table.table.rows for cell in row.cells]
    assert all(cell.text for cell in cells)
    assert all(cell.value is None for cell in cells)


def test_the_mean_is_over_the_five_named_tasks_and_only_for_rows_that_have_them_all() -> None:
    shares = dict(zip(LENGTHS, (0.5, 0.6, 0.7, 0.8, 0.9), strict=True))
    whole = [quality("performer", task, share) for task, share in shares.items()]
    part = [quality("linear", task, 0.99) for task in list(shares)[:4]]
    part.append(quality("linear", "pathfinder", status="timeout"))
    (table,) = _tables([*whole, *part, quality("performer", "pathx", 0.1)])
    assert table.table.columns == (*LENGTHS, "pathx", "mean of 5")
    assert _cell(table, "performer", "mean of 5").text == "70.0"
    assert _cell(table, "linear", "mean of 5") == Cell("n/a", "4 of 5")
    assert any("listops, text, retrieval, image, pathfinder" in note for note in table.table.notes)


def test_the_spread_of_a_mean_is_over_seeds_of_means() -> None:
    shares = {("text", 0): 0.6, ("text", 1): 0.8, ("image", 0): 0.8, ("image", 1): 0.6}
    records = [quality("performer", t, share, seed=s) for (t, s), share in shares.items()]
    (table,) = _tables(records)
    assert _cell(table, "performer", "mean of 2").note == "± 0.0"


def test_the_mean_names_a_smaller_set_and_one_task_has_none() -> None:
    (two,) = _tables([quality("performer", "text"), quality("performer", "image")])
    assert two.table.columns == ("text", "image", "mean of 2")
    (one,) = _tables([quality("performer", "text")])
    assert one.table.columns == ("text",)


def test_rules_scales_sources_and_precisions_never_share_a_table() -> None:
    records = [
        quality("performer", "text"),
        quality("performer", "text", scale="small"),
        quality("performer", "text", data_spec=data("text", rules="lra2021")),
        quality("performer", "text", data_spec=data("text", source="hub")),
        quality(
            "performer", "text", training=msgspec.structs.replace(TRAINING, precision="bfloat16")
        ),
    ]
    tables = _tables(records)
    assert len(tables) == len(records)
    assert len({one.table.id for one in tables}) == len(records)


def test_two_protocols_of_a_task_are_two_columns_and_no_mean() -> None:
    longer = msgspec.structs.replace(TRAINING, steps=600)
    records = [
        quality("performer", "text", 0.7),
        quality("performer", "text", 0.9, training=longer),
        quality("performer", "image", 0.8),
    ]
    (table,) = _tables(records)
    assert sorted(table.table.columns) == ["image", "text (steps=300)", "text (steps=600)"]
    assert _cell(table, "performer", "text (steps=600)").text == "90.0"


def test_two_data_hashes_of_a_task_are_two_columns() -> None:
    records = [
        quality("performer", "text", 0.7, data_spec=data("text", hash="abcdefgh" + "0" * 12)),
        quality("performer", "text", 0.9),
    ]
    (table,) = _tables(records)
    assert sorted(table.table.columns) == sorted(
        f"text (data {data_hash(measured(record))[:8]})" for record in records
    )
    assert len(set(table.table.columns)) == 2


def test_data_of_two_versions_of_a_generator_are_two_columns() -> None:
    first = quality("performer", "text", 0.7)
    versions = {**first.cell.versions, "data/text": 2}
    cell = msgspec.structs.replace(first.cell, versions=versions)
    second = msgspec.structs.replace(first, id=cell.id, cell=cell)
    (table,) = _tables([first, second])
    assert len(set(table.table.columns)) == 2


def test_baselines_stand_below_with_the_best_rule_of_thumb_of_each_task() -> None:
    records = [
        quality("identity", "pathfinder", 0.547),
        quality("performer", "pathfinder", 0.74),
        quality("performer", "text", 0.78),
        baseline("pathfinder", majority=0.519, bag=0.545, marker_distance=0.685, other_rule=0.6),
        baseline("text", majority=0.518, bag=0.488),
    ]
    (table,) = _tables(records)
    labels = [row.label for row in table.table.rows]
    assert labels == [
        "performer",
        "no mixing (identity)",
        "bag of tokens",
        "majority",
        "rule of thumb",
    ]
    assert _cell(table, "no mixing (identity)", "pathfinder").text == "54.7"
    assert _cell(table, "majority", "text").text == "51.8"
    assert _cell(table, "rule of thumb", "pathfinder") == Cell("68.5", "marker distance", 0.685)
    assert _cell(table, "rule of thumb", "text") == Cell("none")


def test_baselines_that_nobody_ran_say_so() -> None:
    (table,) = _tables([quality("performer", "text")])
    for label in ("no mixing (identity)", "bag of tokens", "majority"):
        assert _cell(table, label, "text") == Cell("not run")


def test_the_baselines_that_there_are_have_a_legend() -> None:
    def legend(*simple: Record) -> list[str]:
        (table,) = _tables([quality("performer", "pathfinder"), *simple])
        return [note for note in table.table.notes if note.startswith("Simple baselines")]

    both = (
        "Simple baselines: bag of tokens, logistic regression on how often each token occurs; "
        "majority, the commonest answer in training"
    )
    assert legend(baseline("pathfinder")) == [f"{both}."]
    assert legend(baseline("pathfinder", marker_distance=0.6, other_rule=0.5)) == [
        f"{both}; rule of thumb, the best rule that looks at one thing alone; marker distance, how "
        "far the two discs are apart."
    ]
    assert legend() == []


def test_the_fewest_test_rows_are_said_to_be_of_one_task_only_where_others_have_more() -> None:
    few = data("image", rows=Rows(train=20000, validation=1000, test=400))
    (table,) = _tables([quality("a", "text"), quality("a", "image", data_spec=few)])
    assert (
        "With 400 test rows (the fewest of these tasks), sampling alone has a standard error of up "
        "to 2.5 points."
    ) in table.table.notes
    (table,) = _tables([quality("a", "text"), quality("a", "image")])
    assert any(note.startswith("With 2,000 test rows, sampling") for note in table.table.notes)


def test_a_start_that_favours_softmax_attention_is_told_with_its_tasks() -> None:
    tied = msgspec.structs.replace(MODEL, query_key_start="tied")
    run = [quality("a", task, model=tied) for task in ("text", "retrieval")]
    (table,) = _tables([*run, quality("a", "listops")])
    assert (
        "On text and retrieval each layer starts with its keys equal to its queries (query key "
        "start: tied), which favours softmax attention."
    ) in table.table.notes
    (table,) = _tables([quality("a", "listops")])
    assert not any("tied" in note for note in table.table.notes)


def test_models_of_another_size_are_named_with_the_most_that_they_differ() -> None:
    def told(*records: Record) -> list[str]:
        (table,) = _tables(list(records))
        return [note for note in table.table.notes if note.startswith("Parameters differ")]

    exact = [quality("sdpa", task, parameters=100_000) for task in ("text", "image")]
    wide = [quality("linformer", "text", parameters=756_000)]
    wide.append(quality("linformer", "image", parameters=150_000))
    slim = quality("multi_query", "text", parameters=80_000)
    assert told(*exact, *wide, slim, quality("linear", "text", parameters=109_000)) == [
        "Parameters differ from sdpa's by more than 10 %; largest difference over the tasks: "
        "linformer +656 % and multi_query -20 % (table under Protocol)."
    ]
    assert told(exact[0], slim) == [
        "Parameters differ from sdpa's by more than 10 %: multi_query -20 % (table under Protocol)."
    ]
    assert told(*wide, slim) == []


def test_what_computes_the_same_function_is_exact_with_as_many_parameters() -> None:
    run = [quality(name, "text", 0.9) for name in ("sdpa", "full", "linear", "chunked")]
    run.append(quality("multi_query", "text", 0.8, parameters=60_000))
    checks = [softmax("full"), softmax("multi_query")]
    (table,) = _tables([*run, *checks])
    assert table.exact == {"sdpa", "full", "multi_query"}
    assert table.alike == ("full", "sdpa")


def test_reference_rows_are_marked_and_their_machine_named() -> None:
    (table,) = _tables(
        [quality("performer", "text", 0.78)],
        [quality("sdpa", "text", 0.99, machine=THERE), baseline("text", machine=THERE)],
    )
    rows = {row.label: row for row in table.table.rows}
    assert rows["performer"].note == ""
    assert rows["sdpa"].title == "sdpa (reference)"
    assert rows["majority"].title == "majority (reference)"
    assert "Other CPU 1, 8 cores" in rows["sdpa"].group
    assert any("Other CPU 1, 8 cores" in note for note in table.table.notes)


def test_a_reference_row_yields_to_the_run_unless_its_source_differs() -> None:
    run = [quality(edited("performer"), "text", 0.8), quality("sdpa", "text", 0.9)]
    reference = [quality("performer", "text", 0.7), quality("sdpa", "text", 0.91, seed=1)]
    (table,) = _tables(run, reference)
    titles = [row.title for row in table.table.rows if row.mechanism]
    assert titles[:3] == ["performer", "sdpa", "performer (reference)"]
    assert "sdpa (reference)" not in titles


def test_rows_measured_by_another_trainer_are_said_to_be() -> None:
    run, same = [quality("performer", "text")], [quality("sdpa", "text")]
    other = [quality("sdpa", "text", measure=9)]
    needle = "another version of the measuring code"
    assert not any(needle in note for note in _tables(run, same)[0].table.notes)
    assert any(needle in note for note in _tables(run, other)[0].table.notes)


@pytest.mark.parametrize(
    ("second", "strong"), [((0.60, 0.61, 0.62), True), ((0.88, 0.90, 0.92), False)]
)
def test_the_best_is_bold_only_where_the_intervals_lie_apart(
    second: tuple[float, ...], strong: bool
) -> None:
    records = [quality("full", "text", v, seed=s) for s, v in enumerate((0.90, 0.91, 0.92))]
    records += [quality("linear", "text", v, seed=s) for s, v in enumerate(second)]
    (table,) = _tables(records)
    assert _cell(table, "full", "text").strong is strong
    assert _cell(table, "linear", "text").strong is False


def test_one_seed_is_never_bold() -> None:
    (table,) = _tables([quality("full", "text", 0.9), quality("linear", "text", 0.1)])
    assert not any(cell.strong for row in table.table.rows for cell in row.cells)


def test_a_trial_with_other_steps_does_not_take_the_mean_from_the_others() -> None:
    trial = msgspec.structs.replace(TRAINING, steps=50)
    run = [quality(name, task, 0.6) for name in ("performer", "sdpa") for task in ("text", "image")]
    table = _tables([*run, quality("linear", "text", 0.5, training=trial)])[0]
    assert table.mean_of == ("text", "image")
    assert table.table.columns[-1] == "mean of 2"
    rows = [row for row in table.table.rows if row.mechanism and row.cells[-1].text != "n/a"]
    means = {row.label: row.cells[-1].value for row in rows}
    assert means == {"performer": 0.6, "sdpa": 0.6}
