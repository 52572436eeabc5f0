"""Calls of as many positions at every length: one table of them, and where mechanisms cross."""

from __future__ import annotations

import pytest
from lra.report.answer.crossings import crossing_sentences
from lra.report.costs.crossover import crossings
from lra.report.costs.tables import EfficiencyTables, efficiency_tables
from lra.report.select import join

from lra.core.records import Record
from report.sample import efficiency

TOKENS = 4096


def call(name: str, length: int, seconds: float, batch: int | None = None) -> Record:
    """A timing; without a batch of as many examples as make up the tokens."""
    return efficiency(name, length, batch=batch or TOKENS // length, seconds=seconds)


def tables(records: list[Record]) -> list[EfficiencyTables]:
    return efficiency_tables(join(records, []))


def test_lengths_of_one_number_of_positions_share_a_table_per_example() -> None:
    records = [call("sdpa", n, 1e-3 * n) for n in (512, 1024, 2048, 4096)]
    (found,) = tables(records)
    assert found.tokens == TOKENS and found.batch == 1
    (row,) = found.latency["forward"].rows
    # A second for 1,000 calls of length 1,000, by the number of examples in each.
    values = [cell.value for cell in row.cells]
    assert values == pytest.approx([1e-3 * n * n / TOKENS for n in (512, 1024, 2048, 4096)])


def test_one_example_as_long_as_that_stands_in_both_tables() -> None:
    records = [call("sdpa", n, 1.0) for n in (512, 1024, 2048, 4096)]
    records += [call("sdpa", n, 1.0, batch=1) for n in (1024, 2048)]
    by_batch = {found.tokens: found for found in tables(records)}
    assert by_batch.keys() == {None, TOKENS}
    assert by_batch[TOKENS].latency["forward"].columns == ("512", "1024", "2048", "4096")
    assert by_batch[None].latency["forward"].columns == ("1024", "2048", "4096")


def test_a_grid_of_batches_and_lengths_stays_a_table_for_each_batch() -> None:
    records = [call("sdpa", n, 1.0, batch=b) for n in (512, 1024, 2048) for b in (1, 2, 4)]
    assert [found.tokens for found in tables(records)] == [None] * 3


def test_a_sentence_says_from_where_each_mechanism_pays() -> None:
    lengths = (512, 1024, 2048, 4096)
    records = [call("sdpa", n, 1e-6 * n) for n in lengths]
    # Below at all lengths, from twice 1,024 on, and never.
    records += [call("linear", n, 1e-7 * n) for n in lengths]
    records += [call("performer", n, 1.5e-3) for n in lengths]
    records += [call("full", n, 1e-5 * n) for n in lengths]
    (found,) = tables(records)
    (column,) = [one for one in found.derived if one.timed]
    at = {label: one.at for (_, label), (one, _) in crossings(column, found.entries, ()).items()}
    assert at["linear"] == 0 and at["full"] == float("inf")
    assert at["performer"] == pytest.approx(1500, rel=1e-6)
    (sentence,) = crossing_sentences(found, "", ())
    for words in ("linear", "performer (1,500)", "full"):
        assert words in sentence
    (batched,) = tables([call("sdpa", n, 1.0, batch=1) for n in lengths])
    assert crossing_sentences(batched, "", ()) == []
