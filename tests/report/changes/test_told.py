"""Changes in words: the sentence that comes first, and the tables."""

from __future__ import annotations

from lra.changes.comparison_report import changed_table, compared_markdown, full_tables, sentences
from report.changes.sides import compared, timed
from report.sample import mechanism


def test_the_first_sentence_says_what_changed_and_by_how_much() -> None:
    old = [*timed(0.01, 0.01), *timed(0.01, 0.01, length=1024), *timed(0.01, 0.01, length=2048)]
    new = [
        *timed(0.02, 0.02), *timed(0.03, 0.03, length=1024), *timed(0.01, 0.01, length=2048)
    ]  # fmt: skip
    found = compared(old, new)
    first, second = sentences(found)
    assert first.startswith(
        "new against old: time slower in 2 of 3 cells, the most performer train 1024 "
        "heads 4 x 64: 3.00 "
    )
    assert second == "Of 3 figures 1 is the same."
    table = changed_table(found)
    assert table is not None and [row.label.split()[2] for row in table.rows] == ["1024", "512"]
    (every,) = full_tables(found)
    assert [row.label.split()[2] for row in every.rows] == ["512", "1024", "2048"]


def test_what_cannot_be_compared_says_why() -> None:
    old = [*timed(0.01, 0.01), *timed(0.01, 0.01, length=1024), *timed(0.01, 0.01, length=2048)]
    other = timed(0.01, 0.01, name=mechanism("performer", features=64), length=1024)
    refused = timed(0.0, 0.0, length=2048, status="unsupported")
    assert sentences(compared(old, [*timed(0.01, 0.01), *other, *timed(0.01, length=2048)])) == [
        "new against old: no reliable change.",
        "Of 3 figures 2 are the same and 1 is incomparable (another configuration).",
    ]
    several = [*timed(0.01, 0.01), *other, *refused]
    assert sentences(compared(old, several))[1] == (
        "Of 3 figures 1 is the same and 2 are incomparable (another configuration: 1; "
        "unsupported: 1)."
    )
    assert sentences(compared(old, [r for r in several if r not in old])) == [
        "new against old: none of 2 figures can be compared (another configuration: 1; "
        "unsupported: 1).",
        "Not compared: 1 cell of old alone.",
    ]
    assert sentences(compared(timed(0.01), timed(0.01, measure=2))) == [
        "new against old: none of 1 figure can be compared (measured by another version of the "
        "code: time)."
    ]


def test_nothing_new_is_said_so() -> None:
    same = compared(timed(0.01, 0.01), timed(0.01, 0.01))
    assert sentences(same)[0] == "new against old: no reliable change."
    assert changed_table(same) is None
    assert sentences(compared(timed(0.01), timed(0.01, name="sdpa")))[0].endswith("share no cell.")


def test_for_a_pull_request_the_sentence_comes_first_and_tables_are_folded() -> None:
    odd = "my|odd_1<b>"
    text = compared_markdown(compared(timed(0.01, 0.01, name=odd), timed(0.02, 0.02, name=odd)))
    lines = text.splitlines()
    assert lines[0] == "## new against old" and lines[2].startswith("new against old: time slower")
    assert text.count("<details>") == text.count("</details>") == 1
    assert "<b>" not in text.replace("\\<b\\>", "")
    rows = [line for line in lines if "odd" in line and line.startswith("|")]
    assert len(rows) == 2
