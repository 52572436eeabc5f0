"""Tasks that ask for each token: their accuracies apart, bits per byte, decoding by use."""

import msgspec
import pytest
from lra.report.quality.by_token import bits_sentences, decode_tables
from lra.report.quality.intervals import interval_table
from lra.report.quality.tables import bits_tables, quality_tables
from lra.report.select import join

from lra.core.records import Metric
from lra.report.assemble import assemble, spoken
from tests.report import sample
from tests.report.answer.said import answered

CAUSAL = sample.MODEL.by_token()


def told(
    name, task="bytes", *, bits=None, accuracy=None, decoded=None, seed=0, status="ok", **method
):
    """A training on a task that asks for each token; `method` is what its record says of it."""
    record = sample.quality(name, task, accuracy, model=CAUSAL, seed=seed, status=status)
    metric = "bits_per_byte" if bits is not None or accuracy is None else "accuracy"
    cell = msgspec.structs.replace(record.cell, metric=metric)
    metrics = dict(record.metrics)
    if bits is not None:
        metrics["bits_per_byte"] = Metric(value=bits, unit="bit")
    if decoded is not None:
        metrics["decode_agreement"] = Metric.share(decoded)
    return msgspec.structs.replace(record, id=cell.id, cell=cell, metrics=metrics, method=method)


def costs(**bits):
    """Simple baselines in bits."""
    record = sample.baseline("bytes")
    metrics = {name: Metric(value=value, unit="bit") for name, value in bits.items()}
    return msgspec.structs.replace(record, metrics=metrics)


def texts(table):
    return {line.label: [(cell.text, cell.note) for cell in line.cells] for line in table.rows}


def test_answers_at_tokens_have_a_table_of_their_own():
    records = [
        sample.quality("sdpa", "text", 0.9),
        told("sdpa", "recall", accuracy=0.99),
        sample.baseline("text"),
        sample.baseline("recall"),
    ]
    first, second = quality_tables(join(records, []))
    assert [column.task for column in first.columns] == ["text"] and not first.group.by_token
    assert [column.task for column in second.columns] == ["recall"] and second.group.by_token
    assert second.table.title == "Test accuracy at scale mini, token by token"
    assert "tokens asked for" in second.table.caption
    causal = (
        "Each token's answer is predicted from that token and earlier ones only; all mechanisms "
        "here are strictly causal."
    )
    assert causal in second.table.notes and causal not in first.table.notes


def test_answers_at_tokens_stand_against_no_cost_of_a_layer():
    timed = [
        sample.efficiency(name, 512, "train", seconds)
        for name, seconds in (("sdpa", 0.02), ("linear", 0.01), ("identity", 0.005))
    ]

    def sections(task, model):
        trained = [
            sample.quality(name, task, a, model=model)
            for name, a in (("sdpa", 0.9), ("linear", 0.8))
        ]
        return {s.id for s in assemble(join([*trained, *timed], []), "a report")[0].sections}

    assert {"tradeoff", "front"} <= sections("text", sample.MODEL)
    assert not {"tradeoff", "front"} & sections("recall", CAUSAL)


def test_bits_are_means_over_seeds_beside_what_is_simple():
    records = [
        told("sdpa", bits=1.9),
        told("sdpa", bits=2.1, seed=1),
        told("linear", bits=2.5),
        told("full", status="oom"),
        costs(majority=4.9, its_grammar=1.6),
    ]
    (found,) = bits_tables(join(records, []))
    table = found.table
    told_of = texts(table)
    assert told_of["sdpa"] == [("2.0", "± 0.14, n 2")]
    assert told_of["linear"] == [("2.50", "n 1")]
    assert told_of["full"] == [("OOM", "1 seed")]
    # The dearest first, so that the least there is stands last.
    assert [line.label for line in table.rows][-2:] == ["majority", "the grammar's entropy"]
    (sentence,) = bits_sentences([found], ())
    assert sentence == (
        "Bits per byte at scale mini, on bytes the fewest: sdpa 2.0 and linear 2.50 "
        "(the grammar's entropy 1.60, majority 4.90)."
    )


def several(name, *bits):
    return [told(name, bits=value, seed=seed) for seed, value in enumerate(bits)]


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
    (found,) = bits_tables(join([*several("sdpa", 1.90, 1.91, 1.92), *rival], []))
    assert [line.label for line in found.table.rows if line.cells[0].strong] == best
    assert any("lies below the next" in note for note in found.table.notes) == bool(best)


def test_no_mixing_may_know_positions_which_the_current_token_does_not():
    (found,) = bits_tables(join([told("sdpa", bits=1.9)], []))
    (note,) = (note for note in found.table.notes if "current token" in note)
    assert "what can be told without mixing, positions aside" in note


def test_no_mixing_is_a_baseline_and_no_answer():
    (found,) = bits_tables(join([told("sdpa", bits=1.9), told("identity", bits=3.1)], []))
    assert [line.group for line in found.table.rows] == ["This run", "Baselines"]
    (sentence,) = bits_sentences([found], ())
    assert sentence.endswith("on bytes the fewest: sdpa 1.90 (no mixing (identity) 3.10).")


def test_bits_have_intervals_that_may_lie_above_one():
    selection = join(several("sdpa", 1.90, 1.95, 2.00), [])
    table = interval_table(bits_tables(selection)[0], selection)
    assert table.id == "interval-bits-1"
    # Student's at two degrees of freedom: 4.303 * 0.05 / sqrt(3).
    assert texts(table) == {"sdpa": [("1.8 to 2.1", "n 3")]}


def test_where_only_bytes_were_trained_the_report_is_whole():
    selection = join([told("sdpa", bits=1.9), told("linear", bits=2.5), costs(majority=4.9)], [])
    report, terminal = assemble(selection, "a report")
    text = {section.id: section for section in report.sections}
    assert not any("No model was trained" in words for s in report.sections for words in s.text)
    assert text["quality-bits-1"].title == "Quality: bits per byte at scale mini"
    ids = [table.id for table in text["protocol"].tables]
    assert ids == ["protocol-bits-1", "parameters-bits-1"]
    protocol, parameters = text["protocol"].tables
    assert [line.label for line in protocol.rows] == ["bytes"]
    assert any("training" in note.lower() and "steps 300" in note for note in protocol.notes)
    assert texts(parameters) == {"linear": [("70,000", "")], "sdpa": [("70,000", "")]}
    assert terminal.title == "Bits per byte at scale mini" == spoken(selection)[1].title


def test_a_reference_stands_beside_bits_and_is_marked():
    theirs = told("sdpa", bits=1.8)
    cell = msgspec.structs.replace(theirs.cell, machine=sample.THERE)
    reference = [msgspec.structs.replace(theirs, id=cell.id, cell=cell), costs(majority=4.9)]
    (found,) = bits_tables(join([told("linear", bits=2.5)], reference))
    assert [line.title for line in found.table.rows] == [
        "linear",
        "sdpa (reference)",
        "no mixing (identity)",
        "majority (reference)",
    ]
    assert any("marked reference were measured" in note for note in found.table.notes)


def test_bits_have_a_heading_where_accuracies_have():
    records = [told("sdpa", bits=1.9), sample.quality("sdpa", "text")]
    assert "Language modelling:" not in answered(records)
    said = answered([*records, sample.quality("sdpa", "text", scale="small")])
    at = said.index("Language modelling:")
    assert said[at + 1].startswith("Bits per byte at scale mini, on bytes the fewest: sdpa 1.9")


def test_bits_are_no_accuracy():
    assert quality_tables(join([told("sdpa", bits=1.9)], [])) == []


def test_a_state_that_forgets_shows_in_the_least_of_the_seeds():
    records = [
        told("sdpa", bits=1.9, decoded=1.0),
        told("linear", bits=1.9, decoded=1.0),
        told("linear", bits=1.9, decoded=0.75, seed=1),
        told("linear", "recall", accuracy=0.2, decoded=1.0),
    ]
    (table,) = decode_tables(join(records, []))
    assert table.title == "Decoding by use at scale mini"
    assert table.caption == (
        "Share of tokens predicted alike in one pass and step by step (after half of each text was "
        "taken in at once), in percent; of several seeds the least."
    )
    assert table.columns == ("bytes", "recall")
    assert texts(table) == {
        "linear": [("75.0", ""), ("100.0", "")],
        "sdpa": [("100.0", ""), ("n/a", "")],
    }


def test_decoding_has_a_table_for_each_scale_source_rules_and_track():
    def elsewhere(record, **changes):
        cell = msgspec.structs.replace(record.cell, **changes)
        return msgspec.structs.replace(record, id=cell.id, cell=cell)

    def of(**changes):
        one = told("sdpa", bits=1.9, decoded=0.5)
        return elsewhere(one, data=msgspec.structs.replace(one.cell.data, **changes))

    here = told("sdpa", bits=1.9, decoded=1.0)
    others = [
        elsewhere(told("sdpa", bits=1.9, decoded=0.9), scale="small"),
        elsewhere(told("sdpa", bits=1.9, decoded=0.8), track="tuned"),
        of(source="file"),
        of(rules="lra2021"),
    ]
    tables = decode_tables(join([here, *others], []))
    assert [(t.title.partition("scale ")[2], t.columns, texts(t)["sdpa"]) for t in tables] == [
        ("mini, data from files", ("bytes",), [("50.0", "")]),
        ("mini", ("bytes",), [("100.0", "")]),
        ("mini, tuned track", ("bytes",), [("80.0", "")]),
        ("mini, lra2021 rules", ("bytes",), [("50.0", "")]),
        ("small", ("bytes",), [("90.0", "")]),
    ]


def test_a_decoding_that_failed_is_told_from_one_that_is_not_claimed():
    crashed = {"decode_failed": "RuntimeError: no | state"}
    records = [
        told("performer", bits=2.1, **crashed),
        told("linear", bits=2.2, decoded=1.0),
        told("linear", bits=2.2, seed=1, **crashed),
        told("sinkhorn", bits=2.3),
    ]
    (table,) = decode_tables(join(records, []))
    assert texts(table) == {
        "linear": [("100.0", "1 of 2 failed")],
        "performer": [("failed", "")],
    }
    assert "failed: the error stands below the answer." in table.notes


def test_hardly_all_is_not_all():
    (table,) = decode_tables(join([told("linear", bits=2.0, decoded=0.9999)], []))
    assert texts(table) == {"linear": [("99.9", "")]}


def test_without_any_there_is_no_table():
    selection = join([sample.quality("sdpa", "text", 0.9)], [])
    assert bits_tables(selection) == [] and decode_tables(selection) == []


@pytest.mark.parametrize("metric", ["majority", "current_token"])
def test_a_baseline_in_bits_is_in_no_table_of_accuracies(metric):
    (table,) = quality_tables(
        join([told("sdpa", "recall", accuracy=0.9), costs(**{metric: 3.0})], [])
    )
    assert {"300.0"}.isdisjoint(cell.text for line in table.table.rows for cell in line.cells)
