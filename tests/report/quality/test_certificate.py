"""What tasks test: exact attention beside what does without all of an input in its order."""

import msgspec
import pytest

from lra.core.records import Metric
from lra.report.quality.baselines import SOLVER
from lra.report.quality.certificate import certificate_section
from lra.report.quality.tables import quality_tables
from lra.report.select import join
from tests.report import sample


def shuffled(accuracy, task="text", name="sdpa", **changes):
    spec = sample.data(task, order="shuffled")
    return sample.quality(name, task, accuracy, data_spec=spec, **changes)


def records(**changes):
    given = {"sdpa": 0.9, "sliding_window": 0.6, "identity": 0.55} | changes
    simple = sample.baseline("text", majority=0.5, bag=0.52, area=0.51)
    solved = {**simple.metrics, SOLVER: Metric.share(1.0)}
    window = sample.mechanism("sliding_window", left=8, right=4)
    return [
        *(
            sample.quality(window if name == window.name else name, "text", accuracy)
            for name, accuracy in given.items()
        ),
        msgspec.structs.replace(simple, metrics=solved),
    ]


def cells(section):
    (table,) = section.tables
    (line,) = table.rows
    return dict(zip(table.columns, (cell.text for cell in line.cells), strict=True))


def test_all_that_does_without_stands_beside_exact_attention():
    section = certificate_section(join([*records(), shuffled(0.53), shuffled(0.57, seed=1)], []))
    assert cells(section) == {
        "its own rule": "100.0",
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
        "text, scale mini: exact attention 90.0 % (1 seed), its own rule 100.0 %; that is 30.0 "
        "points above the best of what does without, window of 8 left, 4 right (60.0 %).",
    )


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
    assert "exact attention 90.0 % (1 seed)" in mixed.text[0]
    filled = certificate_section(join([*records()[1:], shuffled(0.53)], reference))
    assert cells(filled)["exact (sdpa)"] == "20.0"


def test_a_shortcut_that_is_as_good_is_said_to_be():
    section = certificate_section(join([*records(identity=0.92), shuffled(0.5)], []))
    assert cells(section)["margin"] == "-2.0"
    assert "2.0 points below the best of what does without, no mixing (identity)" in section.text[0]


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
    assert [lines["image"][name] for name in ("its own rule", "majority", "area")] == ["none"] * 3


@pytest.mark.parametrize("others", [[], [shuffled(0.6, "image")]])
def test_a_task_without_a_control_has_no_certificate(others):
    section = certificate_section(join([*records(), *others], []))
    assert section is None or not section.tables
