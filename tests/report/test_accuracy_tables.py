"""Accuracy tables: digits that seeds bear, endings in words, baselines, and who is best."""

from __future__ import annotations

import msgspec
import pytest

from lra.core.records import Metric, Record, Status
from lra.report.assemble import analyse
from lra.report.load.select import join
from lra.report.model import Row, Table, Value
from lra.report.sections import accuracy
from lra.report.sections.accuracy import UNBEATEN
from lra.report.words import DAGGER

from .sample import HERE, LENGTHS, MODEL, THERE, TRAINING, baseline, data, edited, quality


def tables(records: list[Record], reference: list[Record] | None = None) -> list[Table]:
    found = accuracy.sections(analyse(join(records, reference or [])))
    return [section.tables[0] for section in found]


def table(*records: Record) -> Table:
    (found,) = tables(list(records))
    return found


def row(found: Table, label: str) -> Row:
    return next(row for row in found.rows if row.label == label)


def value(found: Table, label: str, column: str) -> Value:
    return row(found, label).values[found.columns.index(column)]


@pytest.mark.parametrize(
    ("share", "rows", "text"),
    [
        # Half a point of standard error is what a tenth of a point asks for.
        (0.7834, 2000, "78"),
        (0.9934, 2000, "99.3"),
        (0.7834, 20000, "78.3"),
        (1.0, 10, "100.0"),
    ],
)
def test_one_seed_has_the_digits_that_its_test_rows_bear(
    share: float, rows: int, text: str
) -> None:
    split = msgspec.structs.replace(data("text").rows, test=rows)
    found = table(quality("performer", "text", share, data_spec=data("text", rows=split)))
    assert value(found, "performer", "text") == Value(text, "", share)


def test_a_mean_of_one_seed_each_has_no_tenth_of_a_point() -> None:
    found = table(*(quality("performer", task, 0.7834) for task in ("text", "image")))
    assert value(found, "performer", "mean of 2").text == "78"


def test_seeds_have_the_digits_of_their_spread() -> None:
    values = [0.70, 0.74, 0.81]
    found = table(*(quality("performer", "text", v, seed=s) for s, v in enumerate(values)))
    assert value(found, "performer", "text") == Value("75.0", "± 5.6, n 3", sum(values) / 3)


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
    found = table(quality("performer", "text", status=status), quality("sdpa", "text", 0.9))
    assert value(found, "performer", "text") == Value(text)


def test_a_failed_seed_is_counted_and_never_averaged_in() -> None:
    found = table(
        quality("performer", "text", 0.8), quality("performer", "text", status="diverged", seed=1)
    )
    assert value(found, "performer", "text").number == 0.8
    assert "diverged" in value(found, "performer", "text").note


def test_an_absent_figure_says_why_and_a_cell_without_record_says_so() -> None:
    found = table(quality("performer", "text", None), quality("sdpa", "image", 0.9))
    assert value(found, "performer", "text") == Value("not measured", "not in the record")
    assert value(found, "performer", "image") == Value("not run")


def test_a_task_that_only_failed_with_other_data_keeps_the_mean() -> None:
    broken = quality("performer", "text", status="error", data_spec=data("text", hash="b" * 20))
    found = table(quality("performer", "listops", 0.4), quality("performer", "text", 0.6), broken)
    assert value(found, "performer", "mean of 2").number == pytest.approx(0.5)


def test_a_trial_with_other_steps_does_not_take_the_mean_from_the_others() -> None:
    trial = msgspec.structs.replace(TRAINING, steps=50)
    run = [quality(name, task, 0.6) for name in ("performer", "sdpa") for task in ("text", "image")]
    found = table(*run, quality("linear", "text", 0.5, training=trial))
    means = {one.label: one.values[-1].number for one in found.rows if one.mechanism}
    assert means == {"performer": 0.6, "sdpa": 0.6, "linear": None}


def test_the_mean_is_over_the_five_named_tasks_and_only_for_rows_that_have_them_all() -> None:
    shares = dict(zip(LENGTHS, (0.5, 0.6, 0.7, 0.8, 0.9), strict=True))
    whole = [quality("performer", task, share) for task, share in shares.items()]
    part = [quality("linear", task, 0.99) for task in list(shares)[:4]]
    part.append(quality("linear", "pathfinder", status="timeout"))
    found = table(*whole, *part, quality("performer", "pathx", 0.1))
    assert found.columns == (*LENGTHS, "pathx", "mean of 5")
    assert value(found, "performer", "mean of 5").number == pytest.approx(0.7)
    assert value(found, "linear", "mean of 5") == Value("n/a", "4 of 5")


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
    assert len({one.id for one in tables(records)}) == len(records)


def test_two_protocols_of_a_task_are_two_columns_and_no_mean() -> None:
    longer = msgspec.structs.replace(TRAINING, steps=600)
    found = table(
        quality("performer", "text", 0.7),
        quality("performer", "text", 0.9, training=longer),
        quality("performer", "image", 0.8),
    )
    assert sorted(found.columns) == ["image", "text (steps=300)", "text (steps=600)"]
    assert value(found, "performer", "text (steps=600)").number == 0.9


def test_two_data_hashes_of_a_task_are_two_columns() -> None:
    found = table(
        quality("performer", "text", 0.7, data_spec=data("text", hash="abcdefgh" + "0" * 12)),
        quality("performer", "text", 0.9),
    )
    assert len({*found.columns}) == 2 and all("data" in column for column in found.columns)


def test_baselines_stand_below_and_the_exact_solver_is_none_of_them() -> None:
    simple = baseline("pathfinder", majority=0.518, bag=0.53, marker_distance=0.685)
    solved = {**simple.metrics, "exact_solver": Metric.share(1.0)}
    found = table(
        quality("performer", "pathfinder", 0.7),
        quality("identity", "pathfinder", 0.547),
        msgspec.structs.replace(simple, metrics=solved),
    )
    own = {one.label: one.values[0].number for one in found.rows if one.group == accuracy.BASELINES}
    assert own == {
        "identity": 0.547, "bag of tokens": 0.53, "majority": 0.518, "rule of thumb": 0.685,
        "best shortcut": 0.685,
    }  # fmt: skip
    assert value(found, "best shortcut", "pathfinder").note == "marker distance"
    assert value(found, "rule of thumb", "pathfinder").note == "marker distance"


def test_the_best_shortcut_stands_beside_and_what_it_beats_is_marked() -> None:
    """On 2,000 rows a point above is luck; the best may be a rule, trees or a control."""
    shares = {"sdpa": 0.90, "performer": 0.61, "linear": 0.55, "local": 0.6, "identity": 0.5}
    found = table(
        *(quality(name, "text", share) for name, share in shares.items()),
        *(quality(name, "image", share + 0.05) for name, share in shares.items()),
        baseline("text", bag=0.52),
        baseline("image", trees=0.7, area=0.68),
    )
    best = [(one.text, one.note) for one in row(found, "best shortcut").values]
    assert best == [("60", "local mixing"), ("70.0", "trees"), ("65", "")]
    marked = {
        (label, column)
        for label in shares
        for column in ("text", "image")
        if DAGGER in value(found, label, column).text
    }
    # Controls are shortcuts themselves.
    assert marked == {
        ("performer", "text"), ("linear", "text"), ("performer", "image"), ("linear", "image"),
    }  # fmt: skip
    assert UNBEATEN in found.legend and row(found, "trees").values[1].number == 0.7
    assert [one.mechanism for one in found.rows if one.group == accuracy.BASELINES][:2] == [
        "identity", "local",
    ]  # fmt: skip


def test_where_all_beat_the_best_shortcut_nothing_is_marked() -> None:
    found = table(quality("sdpa", "text", 0.9), quality("identity", "text", 0.6))
    assert DAGGER not in value(found, "sdpa", "text").text and UNBEATEN not in found.legend
    # Where nothing is known of a task there is no row.
    assert "best shortcut" not in [one.label for one in table(quality("sdpa", "text")).rows]


def test_a_reference_control_is_a_shortcut_until_the_run_has_its_own() -> None:
    reference = [quality("local", "text", 0.8, machine=THERE, seed=7)]
    (found,) = tables([quality("sdpa", "text", 0.7)], reference)
    assert DAGGER in value(found, "sdpa", "text").text
    own = [quality("sdpa", "text", 0.7), quality("local", "text", 0.6)]
    (found,) = tables(own, reference)
    assert DAGGER not in value(found, "sdpa", "text").text


def test_a_control_is_never_the_best_in_bold() -> None:
    records = [quality("sdpa", "text", v, seed=s) for s, v in enumerate((0.70, 0.71, 0.72))]
    records += [quality("linear", "text", v, seed=s) for s, v in enumerate((0.50, 0.51, 0.52))]
    records += [quality("local", "text", v, seed=s) for s, v in enumerate((0.90, 0.91, 0.92))]
    found = table(*records)
    assert [one.label for one in found.rows if one.values[0].best] == ["sdpa"]


def test_a_reference_row_stays_until_the_run_has_all_of_it() -> None:
    def origins(run: list[Record], reference: list[Record]) -> list[str]:
        (found,) = tables(run, reference)
        return [one.origin for one in found.rows if one.label == "sdpa"]

    run = [quality(name, "text", 0.8) for name in ("performer", "sdpa")]
    run.append(quality("performer", "listops", 0.4))
    reference = [quality("sdpa", task, 0.9) for task in ("text", "listops")]
    assert origins(run, reference) == ["run", "reference"]
    assert origins([*run, quality("sdpa", "listops", 0.5)], reference) == ["run"]


def test_a_reference_row_yields_to_the_run_unless_its_source_differs() -> None:
    run = [quality(edited("performer"), "text", 0.8), quality("sdpa", "text", 0.9)]
    reference = [quality("performer", "text", 0.7), quality("sdpa", "text", 0.91, seed=1)]
    (found,) = tables(run, reference)
    titles = [one.title for one in found.rows if one.mechanism]
    assert titles == ["performer", "sdpa", "performer (reference)"]


def test_beside_a_run_the_reference_has_its_anchors_in_the_table_and_all_rows_in_the_plot() -> None:
    reference = [quality(name, "text", 0.7) for name in ("linear", "identity")]
    reference += [
        quality("sdpa", "text", share, seed=n) for n, share in enumerate((0.9, 0.91, 0.9))
    ]
    run = quality("performer", "text", 0.8)
    near, every = accuracy.sections(analyse(join([run], reference)))
    labels = [one.label for one in near.tables[0].rows]
    assert labels == ["performer", "sdpa", "identity", "best shortcut"]
    # One task has no plot, and so its other rows stand in a table of all.
    assert near.figures == () and "linear" in [one.label for one in every.tables[0].rows]
    several = [*reference, quality("sdpa", "image", 0.9), quality("linear", "image", 0.7)]
    (section,) = accuracy.sections(analyse(join([run, quality("performer", "image")], several)))
    labels = [one.label for one in section.tables[0].rows]
    assert labels == ["performer", "sdpa", "identity", "best shortcut"]
    assert "linear" in section.figures[0].alt
    (section,) = accuracy.sections(analyse(join(reference, [])))
    assert "linear" in [one.label for one in section.tables[0].rows]


def test_reference_rows_name_their_machine_below() -> None:
    reference = [quality("sdpa", "text", 0.99, machine=THERE), baseline("text", machine=THERE)]
    (found,) = tables([quality("performer", "text", 0.78)], reference)
    assert row(found, "majority").origin == row(found, "sdpa").origin == "reference"
    assert any(THERE.name in note for note in found.notes)


def test_trainings_that_devices_or_classes_of_machine_share_are_named() -> None:
    shared = msgspec.structs.replace(quality("a", "text"), method={"devices": 4})
    elsewhere = quality("a", "text", seed=1, machine=THERE)
    notes = table(shared, elsewhere, quality("b", "text")).notes
    assert [note for note in notes if "a on text (4)" in note]
    assert [note for note in notes if HERE.name in note and THERE.name in note]
    assert not [
        note
        for note in table(quality("a", "text"), quality("b", "text")).notes
        if "devices" in note or THERE.name in note
    ]


def test_a_start_that_favours_softmax_attention_is_said_with_its_tasks() -> None:
    tied = msgspec.structs.replace(MODEL, query_key_start="tied")
    run = [quality("a", task, model=tied) for task in ("text", "retrieval")]
    assert any("text, retrieval" in note for note in table(*run, quality("a", "listops")).notes)


@pytest.mark.parametrize(
    ("second", "best"), [((0.60, 0.61, 0.62), True), ((0.88, 0.90, 0.92), False)]
)
def test_the_best_is_bold_only_where_the_intervals_lie_apart(
    second: tuple[float, ...], best: bool
) -> None:
    records = [quality("full", "text", v, seed=s) for s, v in enumerate((0.90, 0.91, 0.92))]
    records += [quality("linear", "text", v, seed=s) for s, v in enumerate(second)]
    found = table(*records)
    assert value(found, "full", "text").best is best
    assert value(found, "linear", "text").best is False


def test_one_seed_is_never_bold() -> None:
    found = table(quality("full", "text", 0.9), quality("linear", "text", 0.1))
    assert not any(one.best for own in found.rows for one in own.values)
