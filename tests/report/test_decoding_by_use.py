"""Trained models that answer alike in one pass and step by step, or do not."""

import pytest

from lra.report.sections.decoding_by_use import sections
from report import sample
from report.analysed import analysed, lines, recast, told


def test_a_state_that_forgets_shows_in_the_least_of_the_seeds():
    records = [
        told("sdpa", bits=1.9, decoded=1.0),
        told("linear", bits=1.9, decoded=1.0),
        told("linear", bits=1.9, decoded=0.75, seed=1),
        told("linear", "recall", accuracy=0.2, decoded=1.0),
    ]
    (section,) = sections(analysed(records))
    (table,) = section.tables
    assert table.columns == ("recall", "bytes")
    assert lines(table) == [["linear", "100.0", "75.0"]]
    (alike,) = section.text
    assert "sdpa" in alike and "linear" not in alike


def test_where_all_are_alike_there_is_no_table():
    (section,) = sections(analysed([told("sdpa", bits=1.9, decoded=1.0)]))
    assert section.tables == () and "sdpa" in section.text[0]


@pytest.mark.parametrize("changes", [{"scale": "small"}, {"track": "tuned"}])
def test_each_setting_has_a_section(changes):
    here = told("sdpa", bits=1.9, decoded=0.5)
    found = sections(analysed([here, recast(told("sdpa", bits=1.9, decoded=0.9), **changes)]))
    assert sorted(one.tables[0].rows[0].values[0].text for one in found) == ["50.0", "90.0"]


def test_a_decoding_that_failed_is_told_from_one_that_is_not_claimed():
    crashed = {"decode_failed": "RuntimeError: no | state"}
    records = [
        told("performer", bits=2.1, **crashed),
        told("linear", bits=2.2, decoded=1.0),
        told("linear", bits=2.2, seed=1, **crashed),
        told("sinkhorn", bits=2.3),
    ]
    (section,) = sections(analysed(records))
    assert lines(section.tables[0]) == [
        ["linear", "100.0 (1 of 2 failed)"],
        ["performer", "failed"],
    ]


def test_hardly_all_is_not_all():
    (section,) = sections(analysed([told("linear", bits=2.0, decoded=0.9999)]))
    assert lines(section.tables[0]) == [["linear", "99.9"]]


def test_without_any_there_is_no_section():
    assert sections(analysed([sample.quality("sdpa", "text", 0.9)])) == []
