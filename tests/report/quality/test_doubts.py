"""Trainings that ended well and whose figures are not to be believed."""

import msgspec
import pytest
from lra.report.answer.sentences import answer, caveats
from lra.report.quality.doubts import doubt_sentences, doubts
from lra.report.quality.tables import bits_tables, quality_tables
from lra.report.select import join

from lra.report.assemble import assemble
from tests.report import sample
from tests.report.quality.test_by_token import costs, several, texts, told


def said(records, reference=()):
    return doubt_sentences(doubts(join(records, list(reference))))


def leaking(**changes):
    """A model that sees what it is to tell, among others that do not."""
    return [
        *(told("linear", bits=b, decoded=0.1, seed=s) for s, b in enumerate((0.20, 0.21, 0.22))),
        *several("sdpa", 1.90, 1.91, 1.92),
        *several("performer", 2.10, 2.11, 2.12),
        costs(majority=4.9, **{"its grammar": 1.6}),
    ]


def test_fewer_bits_than_there_can_be_win_no_table():
    selection = join(leaking(), [])
    (found,) = bits_tables(selection)
    assert texts(found.table)["linear"] == [("0.21", "± 0.010, n 3, below the grammar's entropy")]
    assert [line.label for line in found.table.rows if line.cells[0].strong] == ["sdpa"]
    sentences = answer(selection, quality_tables(selection), (), (), ())
    assert sentences == (
        "Bits per byte at scale mini, on bytes the fewest: sdpa 1.91 and performer 2.11 (the "
        "grammar's entropy 1.60, majority 4.90).",
    )


def test_doubts_are_caveats_and_stand_with_what_is_not_ok():
    selection = join(leaking(), [])
    wanted = (
        "Fewer bits per byte than the grammar's entropy: linear on bytes at scale mini "
        "(0.200, the grammar's entropy 1.60). Such a model has seen the bytes it "
        "predicts; it is left out of all comparisons.",
        "Other answers token by token than in one pass: linear on bytes at scale mini (10.0 % are "
        "the same). What such a model scores is not what it would tell in use.",
    )
    assert caveats(selection, bits_tables(selection))[:2] == wanted
    report, _ = assemble(selection, "a report")
    (section,) = (one for one in report.sections if one.id == "not-ok")
    assert section.text == ("None: every cell ended well.", *wanted)


@pytest.mark.parametrize(
    ("method", "start"),
    [("decode_failed", "Decoding a trained model"), ("look_failed", "Looking at what a trained")],
)
def test_what_failed_after_a_training_is_a_caveat_with_its_error(method, start):
    (sentence,) = said([told("performer", bits=2.0, **{method: "RuntimeError: no\nstate"})])
    assert sentence.startswith(start)
    assert sentence.endswith("failed: performer on bytes at scale mini (RuntimeError: no\\nstate).")


def test_the_worst_seed_counts_and_a_reference_is_marked():
    records = [told("linear", bits=2.0, decoded=d, seed=s) for s, d in enumerate((1.0, 0.5, 0.9))]
    assert "linear on bytes at scale mini (50.0 % are the same)" in said(records)[0]
    other = told("sdpa", bits=2.0, decoded=0.999)
    (sentence,) = said([told("linear", bits=2.0)], [other])
    assert "sdpa (reference) on bytes at scale mini (99.9 % are the same)" in sentence


def test_of_many_only_some_are_named():
    records = [told(f"m{n}", bits=2.0, decoded=0.5) for n in range(7)]
    (sentence,) = said(records)
    assert "m4 on bytes" in sentence and "and 2 more. What" in sentence and "m5" not in sentence


@pytest.mark.parametrize(
    "records",
    [
        [told("linear", bits=1.6, decoded=1.0), costs(**{"its grammar": 1.6})],
        [told("linear", bits=0.5), costs(xz=3.0)],
        [told("linear", accuracy=0.9, task="recall")],
        [told("linear", status="oom"), costs(**{"its grammar": 1.6})],
        [sample.quality("sdpa", "text")],
    ],
)
def test_of_what_is_as_it_should_be_nothing_is_said(records):
    assert said(records) == []


def test_a_floor_is_of_its_own_data():
    other = costs(**{"its grammar": 1.6})
    cell = msgspec.structs.replace(other.cell, data=sample.data("bytes", length=99))
    other = msgspec.structs.replace(other, id=cell.id, cell=cell)
    longer = told("linear", bits=2.0)
    spec = msgspec.structs.replace(longer.cell, data=cell.data)
    longer = msgspec.structs.replace(longer, id=spec.id, cell=spec)
    assert said([told("linear", bits=0.5), longer, other]) == []
