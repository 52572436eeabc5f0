"""What tasks test: exact attention beside what does without all of an input in its order."""

import msgspec
import pytest
from lra.report.quality.baselines import SOLVER
from lra.report.quality.certificate import certificate_section
from lra.report.quality.tables import quality_tables
from lra.report.select import join

from lra.core.records import Metric
from lra.report.assemble import spoken
from tests.report import sample


def shuffled(accuracy, task="text", name="sdpa", **changes):
    spec = sample.data(task, order="shuffled")
    return sample.quality(name, task, accuracy, data_spec=spec, **changes)


def records(**changes):
    given = {"sdpa": 0.9, "sliding_window": 0.6, "identity": 0.55} | changes
    simple = sample.baseline("text", majority=0.5, bag=0.52, area=0.51)
    solved = {**simple.metrics, SOLVER: Metric.share(1.0)}
    window = sample.mechanism("sliding_window", left=8, right=4)
    method = {"exact solver": "the task's own rule, on at most 500 test rows"}
    return [
        *(
            sample.quality(window if name == window.name else name, "text", accuracy)
            for name, accuracy in given.items()
        ),
        msgspec.structs.replace(simple, metrics=solved, method=method),
    ]


def cells(section):
    (table,) = section.tables
    (line,) = table.rows
    return dict(zip(table.columns, (cell.text for cell in line.cells), strict=True))


def test_all_that_does_without_stands_beside_exact_attention():
    section = certificate_section(join([*records(), shuffled(0.53), shuffled(0.57, seed=1)], []))
    assert cells(section) == {
        "exact solver": "100.0",
        "exact (sdpa)": "90.0",
        "window of 8 left, 4 right": "60.0",
        "no mixing (identity)": "55.0",
        "shuffled input": "55.0",
        "majority": "50.0",
        "bag of tokens": "52.0",
        "area": "51.0",
        "margin": "+30.0",
    }
    assert section.text == (
        "A shortcut does without attention over the whole input in its order; a task tests "
        "attention as far as exact attention beats the best of them. The exact solver works the "
        "label out from the tokens alone: what can be known.",
        "text, scale mini: exact attention reaches 90.0 % (1 seed), 30.0 points above the best "
        "shortcut (window of 8 left, 4 right, 60.0 %); the task's exact solver reaches 100.0 %.",
    )


def test_a_run_of_controls_says_what_came_of_them():
    theirs = {"machine": sample.THERE, "seed": 7}
    says = "text, scale mini: exact attention reaches 90.0 % (1 seed)"
    told, _ = spoken(join([*records(), shuffled(0.53)], []))
    assert sum(line.startswith(says) for line in told) == 1
    # Reference controls are no question of this run.
    told, _ = spoken(join(records(), [shuffled(0.53, **theirs)]))
    assert not any(line.startswith(says) for line in told)


def test_the_rows_that_the_exact_solver_is_tried_on_are_told():
    (table,) = certificate_section(join([*records(), shuffled(0.53)], [])).tables
    (note,) = (note for note in table.notes if note.startswith("Exact solver"))
    assert note == "Exact solver: on at most 500 test rows."
    silent = [msgspec.structs.replace(record, method={}) for record in records()]
    (table,) = certificate_section(join([*silent, shuffled(0.53)], [])).tables
    assert not any("Exact solver" in note for note in table.notes)


def test_where_no_task_has_an_exact_solver_nothing_is_said_of_one():
    simple = records()[-1]
    unsolved = {name: m for name, m in simple.metrics.items() if name != SOLVER}
    given = [*records()[:-1], msgspec.structs.replace(simple, metrics=unsolved)]
    section = certificate_section(join([*given, shuffled(0.53)], []))
    assert [*cells(section)][:2] == ["exact (sdpa)", "margin"]
    assert cells(section)["exact (sdpa)"] == "90.0"
    assert section.text[0].endswith("as far as exact attention beats the best of them.")
    assert "solver" not in section.text[1]


def test_shuffled_input_is_that_of_exact_attention_alone():
    others = [shuffled(0.7, name="identity"), shuffled(0.8, name="performer")]
    section = certificate_section(join([*records(), shuffled(0.53), *others], []))
    assert cells(section)["shuffled input"] == "53.0"


def test_a_reference_stands_in_only_for_what_the_run_has_not():
    theirs = {"machine": sample.THERE, "seed": 7}
    reference = [sample.quality("sdpa", "text", 0.2, **theirs), shuffled(0.1, **theirs)]
    mixed = certificate_section(join([*records(), shuffled(0.53)], reference))
    assert cells(mixed)["exact (sdpa)"] == "90.0"
    assert cells(mixed)["shuffled input"] == "53.0"
    assert "exact attention reaches 90.0 % (1 seed)" in mixed.text[1]
    filled = certificate_section(join([*records()[1:], shuffled(0.53)], reference))
    assert cells(filled)["exact (sdpa)"] == "20.0"


def test_a_shortcut_that_is_as_good_is_said_to_be():
    section = certificate_section(join([*records(identity=0.92), shuffled(0.5)], []))
    assert cells(section)["margin"] == "-2.0"
    assert "2.0 points below the best shortcut (no mixing (identity), 92.0 %);" in section.text[1]


def test_shuffled_input_is_in_no_table_of_accuracies():
    (table,) = quality_tables(join([*records(), shuffled(0.53)], []))
    assert [column.title for column in table.columns] == ["text"]
    assert all(entry.order == "given" for entry in join(records(), []).entries if entry.task)


def test_what_a_task_has_not_is_told_from_what_was_not_run():
    other = [sample.quality("sdpa", "image", 0.8), sample.quality("identity", "image", 0.4)]
    section = certificate_section(
        join([*records(), *other, shuffled(0.5), shuffled(0.3, "image")], [])
    )
    (table,) = section.tables
    lines = {
        line.label: dict(zip(table.columns, (cell.text for cell in line.cells), strict=True))
        for line in table.rows
    }
    assert lines["image"]["window of 8 left, 4 right"] == "not run"
    assert [lines["image"][name] for name in ("exact solver", "majority", "area")] == ["none"] * 3


def test_no_best_shortcut_is_told_of_a_task_whose_order_was_not_tried():
    # The controls of one task say nothing of another under the same protocol.
    other = [sample.quality("sdpa", "image", 0.8), sample.quality("identity", "image", 0.4)]
    section = certificate_section(join([*records(), shuffled(0.5), *other], []))
    assert [line.label for table in section.tables for line in table.rows] == ["text"]
    assert [sentence.partition(",")[0] for sentence in section.text[1:]] == ["text"]


@pytest.mark.parametrize("others", [[], [shuffled(0.6, "image")]])
def test_a_task_without_a_control_has_no_certificate(others):
    section = certificate_section(join([*records(), *others], []))
    assert section is None or not section.tables


def through(left, right, accuracy=0.88, **changes):
    window = sample.mechanism("sliding_window", left=left, right=right)
    return sample.quality(window, "text", accuracy, **changes)


@pytest.mark.parametrize(("right", "note"), [(16, "reads all"), (15, "")])
def test_a_window_whose_layers_read_all_of_an_input_is_no_shortcut(right, note):
    # Two layers reach over 2 * (16 + 16) tokens beside their own: just 65.
    length = {"data_spec": sample.data("text", length=65)}
    wide = through(16, right, **length)
    own = [
        sample.quality(name, "text", a, **length) for name, a in (("sdpa", 0.9), ("identity", 0.6))
    ]
    control = sample.quality(
        "sdpa", "text", 0.5, data_spec=sample.data("text", length=65, order="shuffled")
    )
    section = certificate_section(join([wide, *own, control], []))
    (table,) = section.tables
    name = f"window of 16 left, {right} right"
    cell = table.rows[0].cells[table.columns.index(name)]
    assert (cell.text, cell.note) == ("88.0", note)
    assert cells(section)["margin"] == ("+30.0" if note else "+2.0")


def test_what_asks_for_each_token_reads_to_the_left_and_is_never_shuffled():
    spec = sample.data("recall", length=64)
    trained = {"data_spec": spec, "model": sample.MODEL.by_token()}
    window = sample.mechanism("sliding_window", left=31, right=31)
    recall = [
        sample.quality(name, "recall", accuracy, **trained)
        for name, accuracy in (("sdpa", 1.0), ("identity", 0.1), (window, 0.7))
    ]
    section = certificate_section(join([*records(), shuffled(0.53), *recall], []))
    (table,) = section.tables
    line = next(line for line in table.rows if line.label == "recall")
    found = dict(zip(table.columns, ((c.text, c.note) for c in line.cells), strict=True))
    # To both sides it would read 125 tokens, more than the 64 that there are.
    assert found["window of 31 left, 31 right"] == ("70.0", "")
    assert found["shuffled input"] == ("none", "")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"source": "file"}, "data from files"),
        ({"rules": "lra2021"}, "lra2021 rules"),
        ({"track": "tuned"}, "tuned track"),
    ],
)
def test_rules_tracks_and_sources_have_a_certificate_each(changes, words):
    def other(record):
        cell = record.cell
        own = {key: value for key, value in changes.items() if key != "track"}
        cell = msgspec.structs.replace(cell, data=msgspec.structs.replace(cell.data, **own))
        if "track" in changes:
            cell = msgspec.structs.replace(cell, track=changes["track"])
        return msgspec.structs.replace(record, id=cell.id, cell=cell)

    given, control = records()[:-1], shuffled(0.53)
    there = [*records(sdpa=0.7)[:-1], shuffled(0.4)]
    section = certificate_section(join([*given, control, *map(other, there)], []))
    exact = {t.title: [(line.label, line.cells[0].text) for line in t.rows] for t in section.tables}
    start = "What exact attention has over shortcuts at scale mini"
    assert exact == {start: [("text", "90.0")], f"{start}, {words}": [("text", "70.0")]}
    assert {sentence.partition(":")[0] for sentence in section.text[1:]} == {
        "text, scale mini",
        f"text, scale mini, {words}",
    }


def bytes_told(name, bits):
    record = sample.quality(name, "bytes", None, model=sample.MODEL.by_token())
    cell = msgspec.structs.replace(record.cell, metric="bits_per_byte")
    metrics = {"bits_per_byte": Metric(value=bits, unit="bit")}
    return msgspec.structs.replace(record, id=cell.id, cell=cell, metrics=metrics)


@pytest.mark.parametrize(
    ("identity", "margin", "told"),
    [
        (3.1, "+1.00", "1.00 fewer than the best shortcut (xz, 3.00"),
        (1.5, "-0.50", "0.500 more than the best shortcut (no mixing (identity), 1.50"),
    ],
)
def test_of_bits_the_fewest_are_the_best(identity, margin, told):
    simple = sample.baseline("bytes")
    costs = {"xz": 3.0, "current_token": 3.2, "its grammar": 1.6, "majority": 4.9}
    metrics = {name: Metric(value=value, unit="bit") for name, value in costs.items()}
    window = sample.mechanism("sliding_window", left=8, right=8)
    trained = [
        bytes_told(name, bits)
        for name, bits in (("sdpa", 2.0), (window, 3.05), ("identity", identity))
    ]
    trained.append(msgspec.structs.replace(simple, metrics=metrics))
    assert certificate_section(join(trained, [])) is None
    section = certificate_section(join([*records(), shuffled(0.53), *trained], []))
    accuracies, bits = section.tables
    assert [line.label for line in accuracies.rows] == ["text"]
    (line,) = bits.rows
    found = dict(zip(bits.columns, (cell.text for cell in line.cells), strict=True))
    assert found == {
        "the grammar's entropy": "1.60",
        "exact (sdpa)": "2.00",
        "window of 8 left, 8 right": "3.05",
        "no mixing (identity)": f"{identity:.2f}",
        "majority": "4.90",
        "current token": "3.20",
        "xz": "3.00",
        "margin": margin,
    }
    assert section.text[-1] == (
        "bytes, scale mini: exact attention reaches 2.00 bits per byte (1 seed), "
        f"{told} bits per byte); the grammar's entropy is 1.60 bits per byte."
    )
