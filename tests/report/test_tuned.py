"""The tuned track: rates are chosen by validation, never by test, and never beside matched."""

import msgspec
import pytest

from lra.report.assemble import analyse
from lra.report.load.select import join
from lra.report.load.tuned import chosen
from lra.report.sections import accuracy
from report import sample


def tried(rate, *, test, validation, seed=0, name="performer", status="ok"):
    record = sample.quality(name, "text", test, seed=seed, status=status)
    training = msgspec.structs.replace(sample.TRAINING, learning_rate=rate)
    cell = msgspec.structs.replace(record.cell, track="tuned", training=training)
    curve = tuple(
        msgspec.structs.replace(point, validation_accuracy=validation) for point in record.curve
    )
    return msgspec.structs.replace(record, id=cell.id, cell=cell, curve=curve)


def tables(records, reference=()):
    found = accuracy.sections(analyse(join(records, list(reference))))
    return [section.tables[0] for section in found]


def texts(records, reference=()):
    (table,) = tables(records, reference)
    return {
        row.label: (row.values[0].number, row.values[0].note)
        for row in table.rows
        if row.mechanism and row.values[0].number is not None
    }


def test_the_rate_that_validates_best_is_shown_not_the_one_that_tests_best():
    records = [
        tried(1e-3, test=0.7, validation=0.8),
        tried(3e-3, test=0.9, validation=0.6),
        tried(1e-2, test=0.5, validation=0.7),
    ]
    assert texts(records) == {"performer": (0.7, "rate 0.001, the lowest of 3")}


@pytest.mark.parametrize(
    ("validations", "note"),
    [
        ((0.9, 0.8, 0.7), "rate 0.001, the lowest of 3"),
        ((0.7, 0.8, 0.9), "rate 0.01, the highest of 3"),
        ((0.7, 0.9, 0.8), "rate 0.003"),
    ],
)
def test_a_rate_at_the_end_of_those_tried_is_said_to_be(validations, note):
    rates = (1e-3, 3e-3, 1e-2)
    records = [tried(r, test=0.5, validation=v) for r, v in zip(rates, validations, strict=True)]
    assert texts(records)["performer"][1] == note


def test_the_rates_tried_stand_in_the_frame():
    records = [tried(rate, test=0.7, validation=rate) for rate in (3e-3, 1e-3)]
    assert {*join(records, []).figures["rates_tried"]} == {"0.001, 0.003"}
    assert {*join([sample.quality("sdpa", "text")], []).figures["rates_tried"]} == {""}


def test_where_bits_are_counted_the_rate_with_the_lowest_loss_is_shown():
    def counted(rate, *losses):
        record = tried(rate, test=0.5, validation=0.5)
        cell = msgspec.structs.replace(record.cell, metric="bits_per_byte")
        curve = tuple(
            msgspec.structs.replace(point, validation_loss=loss)
            for point, loss in zip(record.curve, losses, strict=True)
        )
        return msgspec.structs.replace(record, id=cell.id, cell=cell, curve=curve)

    records = [
        counted(1e-3, 2.0, 1.6, 1.5),
        counted(3e-3, 1.9, 1.2, 2.5),
        counted(1e-2, 1.8, 1.7, 1.6),
    ]
    assert [record.cell.training.learning_rate for record in chosen(records)] == [3e-3]


def test_each_mechanism_has_a_rate_of_its_own_in_one_column():
    records = [
        tried(1e-3, test=0.7, validation=0.8),
        tried(3e-3, test=0.9, validation=0.6),
        tried(1e-3, test=0.4, validation=0.5, name="linear"),
        tried(3e-3, test=0.6, validation=0.6, name="linear"),
    ]
    (table,) = tables(records)
    assert len(table.columns) == 1
    assert texts(records) == {
        "performer": (0.7, "rate 0.001, the lowest of 2"),
        "linear": (0.6, "rate 0.003, the highest of 2"),
    }


def test_validations_are_averaged_over_seeds_and_a_rate_with_fewer_waits():
    records = [
        *(tried(1e-3, test=0.7, validation=v, seed=s) for s, v in enumerate((0.9, 0.5))),
        *(tried(3e-3, test=0.6, validation=v, seed=s) for s, v in enumerate((0.75, 0.75))),
        tried(1e-2, test=0.99, validation=0.99),
    ]
    assert texts(records)["performer"][0] == 0.6


def test_a_rate_that_diverged_is_the_worst():
    records = [
        tried(1e-3, test=0.6, validation=0.55),
        tried(1e-1, test=None, validation=0.9, status="diverged"),
    ]
    assert texts(records) == {"performer": (0.6, "rate 0.001, the lowest of 2")}


def test_tuned_and_matched_share_no_table_and_no_reference():
    matched = sample.quality("performer", "text", 0.8)
    assert len(tables([matched, tried(1e-3, test=0.7, validation=0.8)])) == 2
    assert texts([tried(1e-3, test=0.7, validation=0.8)], [matched]) == {
        "performer": (0.7, "rate 0.001")
    }


@pytest.mark.parametrize("rate", [1e-3, 3e-3])
def test_of_equals_the_lowest_rate_is_taken_in_any_order(rate):
    records = [tried(r, test=r, validation=0.7) for r in (rate, 1e-2)]
    assert texts(records) == texts(records[::-1])
    assert texts(records)["performer"][1] == f"rate {rate:g}, the lowest of 2"


def test_a_tuned_column_bears_no_rate_for_its_rows_have_each_their_own():
    def longer(record):
        training = msgspec.structs.replace(record.cell.training, steps=900)
        cell = msgspec.structs.replace(record.cell, training=training)
        return msgspec.structs.replace(record, id=cell.id, cell=cell)

    records = [
        tried(1e-3, test=0.7, validation=0.8),
        longer(tried(3e-3, test=0.7, validation=0.8)),
        longer(tried(1e-2, test=0.7, validation=0.8, name="linear")),
    ]
    (table,) = tables(records)
    assert table.columns == ("text (steps=300)", "text (steps=900)")


def test_the_best_validation_of_a_training_counts_and_not_its_last():
    def validated(record, *accuracies):
        curve = tuple(
            msgspec.structs.replace(point, validation_accuracy=one)
            for point, one in zip(record.curve, accuracies, strict=True)
        )
        return msgspec.structs.replace(record, curve=curve)

    records = [
        validated(tried(1e-3, test=0.7, validation=0.0), 0.5, 0.9, 0.4),
        validated(tried(3e-3, test=0.6, validation=0.0), 0.6, 0.7, 0.8),
    ]
    assert texts(records) == {"performer": (0.7, "rate 0.001, the lowest of 2")}


def test_settings_of_a_mechanism_have_a_search_each():
    few, many = (sample.mechanism("performer", features=n) for n in (32, 64))
    records = [
        tried(1e-3, test=0.7, validation=0.9, name=few),
        tried(3e-3, test=0.6, validation=0.8, name=few),
        tried(1e-3, test=0.5, validation=0.6, name=many),
        tried(3e-3, test=0.4, validation=0.7, name=many),
    ]
    assert texts(records) == {
        "performer (features=32)": (0.7, "rate 0.001, the lowest of 2"),
        "performer (features=64)": (0.4, "rate 0.003, the highest of 2"),
    }


def test_a_reference_is_searched_by_itself_and_says_its_rates():
    reference = [
        tried(1e-3, test=0.7, validation=0.8, name="sdpa"),
        tried(3e-3, test=0.9, validation=0.6, name="sdpa"),
        tried(1e-2, test=0.5, validation=0.7, name="sdpa"),
    ]
    selection = join([tried(1e-2, test=0.6, validation=0.7)], reference)
    rates = [
        (kept.origin, kept.record.cell.training.learning_rate, kept.rates_tried)
        for kept in selection.measurements
    ]
    assert rates == [("run", 1e-2, (1e-2,)), ("reference", 1e-3, (1e-3, 3e-3, 1e-2))]
    assert texts([tried(1e-2, test=0.6, validation=0.7)], reference) == {
        "performer": (0.6, "rate 0.01"),
        "sdpa": (0.7, "rate 0.001, the lowest of 3"),
    }


def test_rates_of_older_sources_are_not_among_those_tried():
    def older(record):
        cell = msgspec.structs.replace(record.cell, versions={**record.cell.versions, "train": 2})
        return msgspec.structs.replace(record, id=cell.id, cell=cell, started_at="2026-01-01")

    records = [
        older(tried(1e-2, test=0.9, validation=0.99)),
        tried(1e-3, test=0.7, validation=0.8),
    ]
    assert texts(records) == {"performer": (0.7, "rate 0.001")}
