"""Certificates of tasks: exact attention beside whatever does without reading all in its order."""

import msgspec
import pytest

from lra.core.records import Metric
from lra.report.baselines import SOLVER
from lra.report.cards import cards
from lra.report.sections import accuracy
from lra.report.sections.shortcuts import sections
from report import sample
from report.analysed import CAUSAL, analysed, recast, told

WINDOW = sample.mechanism("sliding_window", left=8, right=4)


def shuffled(accuracy, task="text", name="sdpa", **changes):
    spec = sample.data(task, order="shuffled")
    return sample.quality(name, task, accuracy, data_spec=spec, **changes)


def records(**changes):
    given = {"sdpa": 0.9, "sliding_window": 0.6, "identity": 0.55} | changes
    simple = sample.baseline("text", majority=0.5, bag=0.52, area=0.51)
    solved = {**simple.metrics, SOLVER: Metric.share(1.0)}
    return [
        *(
            sample.quality(WINDOW if name == WINDOW.name else name, "text", accuracy)
            for name, accuracy in given.items()
        ),
        msgspec.structs.replace(simple, metrics=solved),
    ]


def only(made, reference=()):
    (section,) = sections(analysed(made, reference))
    return section


def rows(made, reference=(), place=0):
    table = only(made, reference).tables[place]
    return {row.label: dict(zip(table.columns, row.values, strict=True)) for row in table.rows}


def texts(row):
    return {name: value.text for name, value in row.items()}


def test_all_that_does_without_stands_beside_exact_attention():
    found = rows([*records(), shuffled(0.53), shuffled(0.57, seed=1)])["text"]
    assert texts(found) == {
        "best possible": "100.0",
        "exact (sdpa)": "90",
        "margin": "+30",
        "window 8 + 4": "60",
        "no mixing": "55",
        "shuffled input": "55.0",
        "bag of tokens": "52",
        "majority": "50",
        "rule of thumb": "51",
    }
    assert (found["margin"].note, found["rule of thumb"].note) == ("over window 8 + 4", "area")
    assert found["margin"].number == pytest.approx(0.3)


def test_local_mixing_and_trees_are_shortcuts():
    simple = sample.baseline("text", trees=0.7, area=0.51)
    local = sample.quality("local", "text", 0.72)
    found = rows([*records()[:-1], simple, local, shuffled(0.53)])["text"]
    assert (found["trees"].text, found["local mixing"].text) == ("70", "72")
    assert (found["rule of thumb"].text, found["rule of thumb"].note) == ("51", "area")
    assert (found["margin"].text, found["margin"].note) == ("+18", "over local mixing")


def test_a_reference_has_no_control_that_the_run_did_not_ask_for():
    theirs = {"machine": sample.THERE, "seed": 7}
    assert sections(analysed(records(), [shuffled(0.53, **theirs)])) == []


def test_where_no_task_has_an_exact_solver_there_is_no_column_of_one():
    simple = records()[-1]
    unsolved = {name: m for name, m in simple.metrics.items() if name != SOLVER}
    given = [*records()[:-1], msgspec.structs.replace(simple, metrics=unsolved)]
    assert [*rows([*given, shuffled(0.53)])["text"]][:2] == ["exact (sdpa)", "margin"]


def test_shuffled_input_is_that_of_exact_attention_alone():
    others = [shuffled(0.7, name="identity"), shuffled(0.8, name="performer")]
    found = rows([*records(), shuffled(0.53), *others])["text"]
    assert found["shuffled input"].text == "53"


def test_a_reference_stands_in_only_for_what_the_run_has_not():
    theirs = {"machine": sample.THERE, "seed": 7}
    reference = [sample.quality("sdpa", "text", 0.2, **theirs), shuffled(0.1, **theirs)]
    mixed = rows([*records(), shuffled(0.53)], reference)["text"]
    assert (mixed["exact (sdpa)"].text, mixed["shuffled input"].text) == ("90", "53")
    filled = rows([*records()[1:], shuffled(0.53)], reference)["text"]
    assert filled["exact (sdpa)"].text == "20"


def test_a_shortcut_that_is_as_good_is_said_to_be():
    margin = rows([*records(identity=0.92), shuffled(0.5)])["text"]["margin"]
    assert (margin.text, margin.note) == ("-2", "over no mixing")


def test_a_shortcut_of_one_seed_bears_no_digit_more_than_other_trainings():
    def shown(number):
        seeds = [sample.quality("identity", "text", 0.511, seed=seed) for seed in range(number)]
        analysis = analysed([sample.quality("sdpa", "text", 0.777), *seeds])
        (page,), (card,) = accuracy.sections(analysis), cards(analysis, ["sdpa"])
        (on_card,) = [one.tables[0].rows[0] for one in card.sections if one.topic == "Accuracy"]
        return {page.tables[0].rows[-1].values[0].text, on_card.values[-1].text}

    assert shown(1) == {"51"} and shown(2) == {"51.1"}


def test_margins_of_several_seeds_have_a_digit_more():
    again = sample.quality("sdpa", "text", 0.91, seed=1)
    assert rows([*records(), again, shuffled(0.5)])["text"]["margin"].text == "+30.5"


def test_a_task_without_a_baseline_is_told_from_one_that_was_not_run():
    other = [sample.quality("sdpa", "image", 0.8), sample.quality("identity", "image", 0.4)]
    found = rows([*records(), *other, shuffled(0.5), shuffled(0.3, "image")])["image"]
    assert found["window 8 + 4"].text == "not run"
    names = ("best possible", "majority", "rule of thumb")
    assert [found[name].text for name in names] == ["none"] * 3


def test_a_task_whose_order_was_not_tried_has_no_row():
    # The controls of one task say nothing of another under the same protocol.
    other = [sample.quality("sdpa", "image", 0.8), sample.quality("identity", "image", 0.4)]
    assert [*rows([*records(), shuffled(0.5), *other])] == ["text"]


@pytest.mark.parametrize("others", [[], [shuffled(0.6, "image")]])
def test_a_task_without_a_control_has_no_certificate(others):
    assert sections(analysed([*records(), *others])) == []


@pytest.mark.parametrize(("right", "note"), [(16, "reads all"), (15, "")])
def test_a_window_whose_layers_read_all_of_an_input_is_no_shortcut(right, note):
    # Two layers reach over 2 * (16 + 16) tokens beside their own: just 65.
    length = {"data_spec": sample.data("text", length=65)}
    wide = sample.mechanism("sliding_window", left=16, right=right)
    own = [
        sample.quality(name, "text", a, **length)
        for name, a in (("sdpa", 0.9), ("identity", 0.6), (wide, 0.88))
    ]
    control = sample.data("text", length=65, order="shuffled")
    found = rows([*own, sample.quality("sdpa", "text", 0.5, data_spec=control)])["text"]
    value = found[f"window 16 + {right}"]
    assert (value.text, value.note) == ("88", note)
    assert found["margin"].text == ("+30" if note else "+2")


def test_a_mechanism_with_more_to_set_than_a_window_is_no_shortcut():
    more = sample.mechanism("longformer", left=8, right=4, leading=1)
    found = rows([*records(), sample.quality(more, "text", 0.89), shuffled(0.5)])["text"]
    assert found["margin"].text == "+30"


def test_answers_at_tokens_read_to_the_left_and_are_never_shuffled():
    window = sample.mechanism("sliding_window", left=31, right=31)
    trained = {"data_spec": sample.data("recall", length=64), "model": CAUSAL}
    recall = [
        sample.quality(name, "recall", accuracy, **trained)
        for name, accuracy in (("sdpa", 1.0), ("identity", 0.1), (window, 0.7))
    ]
    found = rows([*records(), shuffled(0.53), *recall])["recall"]
    # To both sides it would read 125 tokens, more than the 64 that there are.
    assert (found["window 31 + 31"].text, found["window 31 + 31"].note) == ("70", "")
    assert found["shuffled input"].text == "none"


def test_the_best_possible_is_the_floor_where_it_is_known():
    trained = {"data_spec": sample.data("in_context", length=18), "model": CAUSAL}
    exact = sample.quality("sdpa", "in_context", 0.9, **trained)
    simple = sample.baseline("in_context", bag=0.1, majority=0.6, floor=0.936)
    simple = recast(simple, data=trained["data_spec"])
    found = rows([*records(), shuffled(0.53), exact, simple])["in_context"]
    assert (found["best possible"].text, found["best possible"].number) == ("93.6", 0.936)
    assert (found["margin"].text, found["margin"].note) == ("+30", "over majority")


@pytest.mark.parametrize("changes", [{"source": "file"}, {"rules": "lra2021"}, {"track": "tuned"}])
def test_rules_tracks_and_sources_have_a_certificate_each(changes):
    def other(record):
        if "track" in changes:
            return recast(record, **changes)
        return recast(record, data=msgspec.structs.replace(record.cell.data, **changes))

    there = [*records(sdpa=0.7)[:-1], shuffled(0.4)]
    found = sections(analysed([*records()[:-1], shuffled(0.53), *map(other, there)]))
    exact = {one.setting: one.tables[0].rows[0].values[0].text for one in found}
    assert exact.pop("mini") == "90" and [*exact.values()] == ["70"]


@pytest.mark.parametrize(
    ("identity", "margin", "over"), [(3.1, "+1.00", "rule of thumb"), (1.5, "-0.50", "no mixing")]
)
def test_the_fewest_bits_are_the_best(identity, margin, over):
    simple = sample.baseline("bytes")
    costs = {"xz": 3.0, "current_token": 3.2, "floor": 1.6, "majority": 4.9}
    metrics = {name: Metric(value=value, unit="bit") for name, value in costs.items()}
    window = sample.mechanism("sliding_window", left=8, right=8)
    trained = [
        told(name, bits=bits)
        for name, bits in (("sdpa", 2.0), (window, 3.05), ("identity", identity))
    ]
    trained.append(msgspec.structs.replace(simple, metrics=metrics))
    assert sections(analysed(trained)) == []
    made = [*records(), shuffled(0.53), *trained]
    assert [*rows(made)] == ["text"]
    found = rows(made, place=1)["bytes"]
    assert texts(found) == {
        "best possible": "1.60",
        "exact (sdpa)": "2.00",
        "margin": margin,
        "window 8 + 8": "3.05",
        "no mixing": f"{identity:.2f}",
        "majority": "4.90",
        "rule of thumb": "3.00",
    }
    assert found["margin"].note == f"over {over}"
