"""Tasks that ask for each token: their accuracies apart, bits per byte, decoding by use."""

import msgspec
import pytest

from lra.core.records import Metric
from lra.report.quality.by_token import bits_sentences, bits_tables, decode_table
from lra.report.quality.tables import quality_tables
from lra.report.select import join
from tests.report import sample
from tests.report.answer.said import answered

CAUSAL = sample.MODEL.by_token()


def told(name, task="bytes", *, bits=None, accuracy=None, decoded=None, seed=0, status="ok"):
    """A training on a task that asks for each token."""
    record = sample.quality(name, task, accuracy, model=CAUSAL, seed=seed, status=status)
    metric = "bits_per_byte" if bits is not None or accuracy is None else "accuracy"
    cell = msgspec.structs.replace(record.cell, metric=metric)
    metrics = dict(record.metrics)
    if bits is not None:
        metrics["bits_per_byte"] = Metric(value=bits, unit="bit")
    if decoded is not None:
        metrics["decode_agreement"] = Metric.share(decoded)
    return msgspec.structs.replace(record, id=cell.id, cell=cell, metrics=metrics)


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
    assert [column.task for column in first.columns] == ["text"] and not first.by_token
    assert [column.task for column in second.columns] == ["recall"] and second.by_token
    assert second.table.title == "Test accuracy at scale mini, token by token"
    assert "tokens asked for" in second.table.caption


def test_bits_are_means_over_seeds_beside_what_is_simple():
    records = [
        told("sdpa", bits=1.9),
        told("sdpa", bits=2.1, seed=1),
        told("linear", bits=2.5),
        told("full", status="oom"),
        costs(majority=4.9, its_grammar=1.6),
    ]
    (table,) = bits_tables(join(records, []))
    found = texts(table)
    assert found["sdpa"] == [("2.0", "± 0.14, n 2")]
    assert found["linear"] == [("2.50", "")]
    assert found["full"] == [("OOM", "")]
    # The dearest first, so that the least there is stands last.
    assert [line.label for line in table.rows][-2:] == ["majority", "its grammar"]
    (sentence,) = bits_sentences([table])
    assert sentence == (
        "Bits per byte at scale mini, on bytes the fewest: sdpa 2.0 and linear 2.50 "
        "(its grammar 1.60, majority 4.90)."
    )


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
    table = decode_table(join(records, []))
    assert table.columns == ("bytes", "recall")
    assert texts(table) == {
        "linear": [("75.0", ""), ("100.0", "")],
        "sdpa": [("100.0", ""), ("n/a", "")],
    }


def test_without_any_there_is_no_table():
    selection = join([sample.quality("sdpa", "text", 0.9)], [])
    assert bits_tables(selection) == [] and decode_table(selection) is None


@pytest.mark.parametrize("metric", ["majority", "current_token"])
def test_a_baseline_in_bits_is_in_no_table_of_accuracies(metric):
    (table,) = quality_tables(
        join([told("sdpa", "recall", accuracy=0.9), costs(**{metric: 3.0})], [])
    )
    assert {"300.0"}.isdisjoint(cell.text for line in table.table.rows for cell in line.cells)
