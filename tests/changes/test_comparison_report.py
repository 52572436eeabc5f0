"""Changes in sentences and tables."""

from __future__ import annotations

from report.sample import mechanism, with_metrics

from changes.sides import compared, mechanisms, timed
from lra.changes.comparison_report import (
    changed_table,
    comparison_markdown,
    comparison_section,
    full_table,
    sentences,
)

OLD = [*timed(0.01, 0.01), *timed(0.01, 0.01, length=1024), *timed(0.01, 0.01, length=2048)]


def test_the_first_sentence_has_the_largest_change_and_the_second_the_rest() -> None:
    new = [
        *timed(0.02, 0.02), *timed(0.03, 0.03, length=1024), *timed(0.01, 0.01, length=2048)
    ]  # fmt: skip
    found = compared(OLD, new)
    first, second = sentences(found)
    assert first.startswith(
        "new against old: time slower in 2 of 3 cells, the most performer train 1024 "
        "heads 4 x 64: 3.00 "
    )
    assert second == "3 figures: 1 is the same."
    table = changed_table(found)
    assert table is not None and table.columns == ("figure", "old", "new", "change", "verdict")
    assert [row.label.split()[2] for row in table.rows] == ["1024", "512"]
    assert [row.label.split()[2] for row in full_table(found).rows] == ["512", "1024", "2048"]
    section = comparison_section(found)
    assert section.topic == "Changes since old" and section.tables == (table,)


def test_columns_of_two_mechanisms_have_their_names() -> None:
    table = changed_table(mechanisms(*timed(0.01, 0.01, name="sdpa"), *timed(0.005, 0.005)))
    assert table is not None and table.columns[1:3] == ("sdpa", "performer")
    assert [value.text for value in table.rows[0].values[1:3]] == ["10.0 ms", "5.00 ms"]
    assert table.rows[0].label == "train 512 heads 4 x 64"


def test_endings_of_several_kinds_are_one_clause() -> None:
    good = [*timed(0.01, 0.01), *timed(0.01, 0.01, length=1024)]
    bad = [*timed(0.0, 0.0, status="oom"), *timed(0.0, 0.0, length=1024, status="timeout")]
    where = "in 2 of 2 cells, first performer train 512 heads 4 x 64"
    assert sentences(compared(good, bad)) == [
        f"new against old: time failing now {where}: OOM now."
    ]
    assert sentences(compared(bad, good)) == [
        f"new against old: time failing no more {where}: no OOM any more."
    ]


def test_incomparable_figures_are_counted_by_their_reason() -> None:
    other = timed(0.01, 0.01, name=mechanism("performer", features=64), length=1024)
    refused = timed(0.0, 0.0, length=2048, status="unsupported")
    assert sentences(compared(OLD, [*timed(0.01, 0.01), *other, *timed(0.01, length=2048)])) == [
        "new against old: no reliable change.",
        "3 figures: 2 are the same and 1 is incomparable (another configuration).",
    ]
    reasons = "another configuration: 1; unsupported: 1"
    assert sentences(compared(OLD, [*timed(0.01, 0.01), *other, *refused]))[1] == (
        f"3 figures: 1 is the same and 2 are incomparable ({reasons})."
    )
    assert sentences(compared(OLD, [*other, *refused])) == [
        f"new against old: none of 2 figures can be compared ({reasons}).",
        "Not compared: 1 cell of old alone.",
    ]


def test_whatever_was_left_out_is_counted() -> None:
    disturbed = with_metrics(timed(0.05, 0.05)[1], control_before=9e-3, control_after=9e-3)
    new = [*timed(0.01), disturbed, *timed(0.02, 0.005, length=1024)]
    *_, unclear, left_out = sentences(compared(OLD, new))
    assert unclear.startswith("Ambiguous: time (1);")
    assert left_out == "Not compared: 1 cell of old alone and 1 timing of a busy machine left out."
    several = [mechanism("performer", features=n) for n in (64, 256)]
    found = mechanisms(
        *timed(0.01, name="sdpa"), *(r for one in several for r in timed(1, name=one))
    )
    assert "1 cell with several settings" in sentences(found)[-1]


def test_nothing_new_is_said_so() -> None:
    same = compared(timed(0.01, 0.01), timed(0.01, 0.01))
    assert sentences(same)[0] == "new against old: no reliable change."
    assert changed_table(same) is None and comparison_section(same).tables == ()
    assert sentences(compared(timed(0.01), timed(0.01, name="sdpa")))[0].endswith("share no cell.")


def test_markdown_escapes_names_and_folds_all_but_what_changed() -> None:
    odd = "my|odd_1<b>"
    text = comparison_markdown(compared(timed(0.01, 0.01, name=odd), timed(0.02, 0.02, name=odd)))
    lines = text.splitlines()
    assert lines[0] == "## new against old" and lines[2].startswith("new against old: time slower")
    assert text.count("<details>") == text.count("</details>") == 1
    assert "<b>" not in text.replace("\\<b\\>", "")
    rows = [line for line in lines if "odd" in line and line.startswith("|")]
    assert len(rows) == 2
