"""Accuracies at tokens, bits per byte and nat: tables of their own, means over seeds, baselines."""

import pytest

from lra.report.sections import accuracy, tradeoff
from lra.report.words import DAGGER
from report import sample
from report.analysed import CAUSAL, analysed, bit_costs, costs, lines, recast, told


def several(name, *bits):
    return [told(name, bits=value, seed=seed) for seed, value in enumerate(bits)]


def table(records, reference=()):
    (section,) = accuracy.sections(analysed(records, reference))
    return section.tables[0]


def test_answers_at_tokens_have_a_table_of_their_own():
    records = [
        sample.quality("sdpa", "text", 0.9),
        told("sdpa", "recall", accuracy=0.99),
        sample.baseline("text"),
        sample.baseline("recall"),
    ]
    first, second = accuracy.sections(analysed(records))
    assert [one.tables[0].columns for one in (first, second)] == [("text",), ("recall",)]
    assert second.setting == "mini, token by token"
    assert "tokens asked for" in second.tables[0].caption


def test_answers_at_tokens_stand_against_no_cost_of_a_layer():
    timed = [sample.efficiency(n, 512, "train", s) for n, s in (("sdpa", 0.02), ("linear", 0.01))]

    def shown(task, model):
        pairs = (("sdpa", 0.9), ("linear", 0.8))
        trained = [sample.quality(name, task, a, model=model) for name, a in pairs]
        return bool(tradeoff.sections(analysed([*trained, *timed])))

    assert shown("text", sample.MODEL) and not shown("recall", CAUSAL)


def test_bits_are_means_over_seeds_beside_simple_baselines():
    records = [
        *several("sdpa", 1.9, 2.1),
        told("linear", bits=2.5),
        told("full", status="oom"),
        told("identity", bits=3.1),
        bit_costs(majority=4.9, floor=1.6),
    ]
    found = table(records)
    assert lines(found) == [
        ["full", "OOM"],
        ["linear", "2.50 (off 0.90)"],
        ["sdpa", "2.0 (± 0.14, n 2, off 0.40)"],
        ["identity", "3.10 (off 1.5)"],
        # The dearest first, so that the least there is stands last.
        ["majority", "4.90"],
        ["best possible", "1.60"],
        # The best possible score is no shortcut.
        ["best shortcut", "3.10 (no mixing)"],
    ]
    assert [row.group for row in found.rows[-4:]] == ["Baselines"] * 4


def test_a_floor_of_an_earlier_record_is_known_by_its_name_then():
    found = table([told("sdpa", bits=2.0), bit_costs(majority=4.9, **{"its grammar": 1.6})])
    assert ["best possible", "1.60"] in lines(found)


def test_nat_stand_in_a_table_of_their_own_with_nothing_in_bits():
    records = [
        told("sdpa", "bigrams", nat=1.53),
        told("identity", "bigrams", nat=2.07),
        costs("bigrams", "nat", majority=2.08, floor=1.51),
        told("sdpa", bits=2.0),
        bit_costs(majority=4.9),
    ]
    # The unit with more mechanisms comes first.
    nat, bits = accuracy.sections(analysed(records))
    assert [nat.tables[0].columns, bits.tables[0].columns] == [("bigrams",), ("bytes",)]
    assert bits.tables[0].id != nat.tables[0].id and bits.topic != nat.topic
    assert lines(nat.tables[0]) == [
        ["sdpa", "1.53 (off 0.020)"],
        ["identity", "2.07 (off 0.56)"],
        ["majority", "2.08"],
        ["best possible", "1.51"],
        ["best shortcut", "2.07 (no mixing)"],
    ]


def test_an_accuracy_has_its_distance_in_points_and_the_floor_is_no_shortcut():
    simple = sample.baseline("in_context", floor=0.936, **{"the name alone": 0.596})
    trained = [told("sdpa", "in_context", accuracy=0.9), told("identity", "recall", accuracy=0.2)]
    found = table([*trained, simple])
    assert found.columns == ("in_context", "recall")
    shown = {row.label: row.values[0].line for row in found.rows}
    assert shown["sdpa"] == "90 (off 3.6)"
    assert shown["best possible"] == "93.6"
    assert shown["best shortcut"] == "59.6 (the name alone)"
    assert next(row for row in found.rows if row.label == "best possible").values[1].text == "n/a"


@pytest.mark.parametrize(
    ("rival", "best"),
    [
        (several("linear", 2.50, 2.51, 2.52), ["sdpa"]),
        # No mixing is a baseline, however few bits it needs.
        (several("linear", 2.5, 2.5, 2.5) + several("identity", 0.5, 0.5, 0.5), ["sdpa"]),
        (several("linear", 1.5, 1.9, 2.9), []),
        ([told("linear", bits=2.5)], []),
    ],
)
def test_bold_are_the_fewest_bits_where_they_lie_clear_of_the_next(rival, best):
    found = table([*several("sdpa", 1.90, 1.91, 1.92), *rival])
    assert [row.label for row in found.rows if row.values[0].best] == best
    assert any("Bold" in text for text in found.legend) == bool(best)


def test_bits_no_fewer_than_the_best_shortcuts_are_marked():
    trained = {"sdpa": 2.0, "linear": 2.5, "full": 2.6, "local": 2.5}
    found = table([*(told(n, bits=b) for n, b in trained.items()), bit_costs(majority=4.9)])
    assert [row.label for row in found.rows if DAGGER in row.values[0].text] == ["full", "linear"]


def test_a_reference_stands_beside_bits_and_is_marked():
    theirs = recast(told("sdpa", bits=1.8), machine=sample.THERE)
    found = table([told("linear", bits=2.5)], [theirs, bit_costs(majority=4.9)])
    titles = [row.title for row in found.rows]
    ours, theirs = ["linear"], ["sdpa", "majority", "best shortcut"]
    assert titles == [*ours, *(f"{name} (reference)" for name in theirs)]
    assert any("Reference rows" in note for note in found.notes)


@pytest.mark.parametrize("metric", ["majority", "current_token"])
def test_a_baseline_in_bits_is_in_no_table_of_accuracies(metric):
    found = table([told("sdpa", "recall", accuracy=0.9), bit_costs(**{metric: 3.0})])
    assert [row.label for row in found.rows] == ["sdpa"]
