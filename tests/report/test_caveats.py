"""Caveats: figures in doubt, trivial tasks, other settings and versions, busy machines."""

import msgspec
import pytest

from lra.report.accuracy import winner
from lra.report.doubts import doubts, impossible
from lra.report.sections import accuracy
from lra.report.sections.caveats import (
    caveats,
    mixed_versions,
    not_above,
    other_settings,
    other_versions,
)
from report import sample
from report.analysed import analysed, bit_costs, costs, recast, told, values
from report.sample import THERE, baseline, edited, efficiency, mechanism, quality, with_metrics

GRAMMAR = {"floor": 1.6}
FEW, MANY = mechanism("performer", features=32), mechanism("performer", features=256)


def doubt(records, reference=()):
    return [text for text in caveats(analysed(records, reference)) if text.startswith("In doubt")]


def several(name, *bits):
    return [told(name, bits=value, seed=seed) for seed, value in enumerate(bits)]


def leaking():
    """A model that sees what it is to tell, among others that do not."""
    return [
        *(told("linear", bits=b, decoded=0.1, seed=s) for s, b in enumerate((0.20, 0.21, 0.22))),
        *several("sdpa", 1.90, 1.91, 1.92),
        *several("performer", 2.10, 2.11, 2.12),
        bit_costs(majority=4.9, **GRAMMAR),
    ]


def test_fewer_bits_than_there_can_be_win_no_table():
    analysis = analysed(leaking())
    (scores,) = analysis.accuracies
    (column,) = scores.columns
    out = impossible(analysis.evidence, scores)
    assert winner(scores, column.protocol)[1].startswith("linear:")
    assert winner(scores, column.protocol, out)[1].startswith("sdpa:")
    (section,) = accuracy.sections(analysis)
    (table,) = section.tables
    assert values(table, "linear")["bytes"].note == "± 0.010, n 3, better than possible"
    assert [row.label for row in table.rows if row.values[0].best] == ["sdpa"]
    (sentence,) = doubt(leaking())
    assert sentence.startswith("In doubt: linear on bytes at mini (0.200 bits per byte, below")
    assert "1.60), linear" in sentence or "1.60) and linear" in sentence
    assert "10.0 % of answers the same" in sentence


@pytest.mark.parametrize(("accuracy", "is_doubted"), [(0.94, False), (0.98, True)])
def test_an_accuracy_is_in_doubt_where_luck_does_not_reach(accuracy, is_doubted):
    # The best possible answers to 2,000 rows are right in 93.6 %, by luck in 94.9 %.
    trained = told("sdpa", "in_context", accuracy=accuracy)
    analysis = analysed([trained, baseline("in_context", floor=0.936)])
    (scores,) = analysis.accuracies
    assert bool(impossible(analysis.evidence, scores)) == is_doubted
    assert [one.kind for one in doubts(analysis.evidence, [scores])] == ["impossible"] * is_doubted


@pytest.mark.parametrize(("nat", "is_doubted"), [(1.52, False), (1.50, True)])
def test_a_loss_in_nat_is_in_doubt_below_the_least(nat, is_doubted):
    analysis = analysed([told("sdpa", "bigrams", nat=nat), costs("bigrams", "nat", floor=1.51)])
    (scores,) = analysis.accuracies
    assert bool(impossible(analysis.evidence, scores)) == is_doubted


@pytest.mark.parametrize("method", ["decode_failed", "look_failed"])
def test_a_failure_after_a_training_is_in_doubt_with_its_error(method):
    (sentence,) = doubt([told("performer", bits=2.0, **{method: "RuntimeError: no\nstate"})])
    assert sentence.endswith("failed: RuntimeError: no\\nstate).")


def test_the_worst_seed_counts_and_a_reference_is_marked():
    records = [told("linear", bits=2.0, decoded=d, seed=s) for s, d in enumerate((1.0, 0.5, 0.9))]
    assert "linear on bytes at mini (50.0 % of" in doubt(records)[0]
    other = told("sdpa", bits=2.0, decoded=0.9999)
    (sentence,) = doubt([told("linear", bits=2.0)], [other])
    assert "sdpa (reference) on bytes at mini (99.9 % of" in sentence


def test_of_many_only_some_are_named():
    (sentence,) = doubt([told(f"m{n}", bits=2.0, decoded=0.5) for n in range(7)])
    assert "m4 on bytes" in sentence and "and 2 more." in sentence and "m5" not in sentence


def test_a_floor_is_of_its_own_data():
    other = recast(bit_costs(**GRAMMAR), data=sample.data("bytes", length=99))
    longer = recast(told("linear", bits=2.0), data=other.cell.data)
    assert doubt([told("linear", bits=0.5), longer, other]) == []


@pytest.mark.parametrize(
    "records",
    [
        [told("linear", bits=1.6, decoded=1.0), bit_costs(**GRAMMAR)],
        [told("linear", bits=0.5), bit_costs(xz=3.0)],
        [told("linear", accuracy=0.9, task="recall")],
        [told("linear", status="oom"), bit_costs(**GRAMMAR)],
        [quality("sdpa", "text")],
    ],
)
def test_nothing_in_doubt_is_no_sentence(records):
    assert doubt(records) == []


def trivial(*records):
    analysis = analysed(records)
    return not_above(analysis, analysis.main)


def test_tasks_on_which_no_seed_beats_luck_are_named():
    # Guessing at one half of 2000 rows reaches 52.6 % by luck.
    stuck = [quality("sdpa", "text", 0.51), quality("linear", "text", 0.5, seed=1)]
    assert trivial(*stuck, baseline("text", bag=0.5)) == (["text"], [])
    lucky = quality("linear", "text", 0.6, seed=2)
    assert trivial(*stuck, lucky, baseline("text", bag=0.5)) == ([], [])
    assert trivial(*stuck) == ([], []), "nothing is known of guessing"
    floor = quality("identity", "text", 0.5)
    assert trivial(floor, baseline("text", bag=0.5)) == ([], []), "only the floor"
    # Half of training is of one class, which is more of the test.
    simple = baseline("text", majority=0.4, bag=0.3)
    method = {"largest class of the test split": 0.6}
    known = msgspec.structs.replace(simple, method=method)
    assert trivial(quality("sdpa", "text", 0.6), known) == (["text"], [])
    assert trivial(quality("sdpa", "text", 0.6), simple) == ([], [])


def test_tasks_on_which_none_beats_the_best_shortcut_are_named_where_that_beats_luck():
    own = [quality("sdpa", "text", 0.6), quality("linear", "text", 0.55)]
    assert trivial(*own, baseline("text", bag=0.7)) == ([], ["text"])
    assert trivial(*own, baseline("text", bag=0.6)) == ([], ["text"])
    assert trivial(*own, baseline("text", bag=0.59)) == ([], [])
    assert trivial(quality("sdpa", "text", 0.5), baseline("text", bag=0.52))[1] == []
    assert trivial(*own, quality("local", "text", 0.6), baseline("text")) == ([], ["text"])
    assert trivial(*own, baseline("text", area=0.6)) == ([], ["text"])
    both = [quality("sdpa", "image", 0.5), baseline("image", bag=0.51), *own]
    assert "No mechanism beats lucky guessing on image, nor the best shortcut on text." in caveats(
        analysed([*both, baseline("text", bag=0.7)])
    )


def sides(*records, reference=()):
    figures = analysed(records, reference).evidence.figures
    trained = figures[(figures["kind"] == "quality") & (figures["origin"] == "run")]
    return trained, figures[figures["kind"] == "efficiency"]


def test_mechanisms_timed_with_other_settings_alone_are_named():
    alike = [quality(MANY, "text"), efficiency(MANY, 1024, "train")]
    assert other_settings(*sides(*alike)) == []
    assert other_settings(*sides(quality(FEW, "text"))) == []
    assert other_settings(*sides(quality(FEW, "text"), *alike[1:])) == ["performer"]
    both = [quality(FEW, "text"), *alike, efficiency(FEW, 1024, "train")]
    assert other_settings(*sides(*both)) == []
    # The reference's timings count only where the run has none.
    theirs = (efficiency(FEW, 1024, "train", machine=THERE),)
    same = quality(FEW, "text"), efficiency("sdpa", 1024, "train")
    assert other_settings(*sides(*same, reference=theirs)) == []
    assert other_settings(*sides(quality(FEW, "text"), alike[1], reference=theirs)) == ["performer"]
    # A setting that is none, as a later version records it, is no other one.
    later = mechanism("performer", features=32, parity=None, options={})
    alike = quality(FEW, "text"), efficiency(later, 1024, "train")
    assert other_settings(*sides(*alike)) == []


def test_mechanisms_trained_and_timed_in_other_versions_are_named():
    def named(trained, timed):
        records = [
            quality(edited("performer", trained), "text"),
            efficiency(edited("performer", timed), 512),
        ]
        figures = analysed(records).evidence.figures
        return other_versions(figures[figures["kind"] == "quality"], figures)

    assert named(1, 2) == ["performer"] and named(2, 2) == []


def test_rows_whose_tasks_share_no_version_are_named():
    def named(image):
        versions = {"text": 1, "image": image}
        return mixed_versions(
            sides(*(quality(edited("performer", v), task) for task, v in versions.items()))[0]
        )

    assert named(2) == ["performer"] and named(1) == []


def test_a_reference_that_was_trained_otherwise_is_one_sentence():
    longer = msgspec.structs.replace(sample.TRAINING, steps=600)
    wider = msgspec.structs.replace(sample.MODEL, width=128)
    run = [quality("a", "text"), quality("a", "image")]
    other = [quality("sdpa", "text", training=longer), quality("sdpa", "image", model=wider)]
    (sentence,) = caveats(analysed(run, other))
    assert "on text and image" in sentence or "on image and text" in sentence
    assert "model.width and training.steps" in sentence and "--baselines" in sentence


def test_busy_timings_are_counted_and_there_are_six_sentences_at_most():
    busy = with_metrics(efficiency(MANY, 512, "train"), control_after=5e-3)
    longer = msgspec.structs.replace(sample.TRAINING, steps=600)
    records = [
        *leaking(), busy, quality(FEW, "text", 0.5), baseline("text"),
        quality("full", "text", status="oom"),
    ]  # fmt: skip
    found = caveats(analysed(records, [quality("sdpa", "text", training=longer)]))
    assert len(found) == 6 and "during 1 of 1 timing (marked !)" in found[4]
