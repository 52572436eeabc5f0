"""Tables as Markdown and plain text."""

from __future__ import annotations

import html
import re

import pytest

from lra.report.model import Headline, Report, Row, Section, Table, Value
from lra.report.write.markdown import escape, plain_text, report_markdown
from lra.report.write.markdown import rows_markdown as markdown

AWKWARD = "a|b_c %d* <e>"


def _table(*labels: str) -> Table:
    rows = tuple(Row(label, (Value("1.0", "± 0.1"), Value("OOM"))) for label in labels)
    return Table("t", "Title", "caption", "mechanism", ("512", AWKWARD), rows)


def _cells(line: str) -> list[str]:
    """The cells of a Markdown table line as a reader of GitHub's Markdown sees them."""
    parts = re.split(r"(?<!\\)\|", line.strip())[1:-1]
    return [re.sub(r"\\(.)", r"\1", part.strip()) for part in parts]


def test_awkward_names_survive_in_markdown() -> None:
    lines = markdown(_table(AWKWARD)).splitlines()
    assert _cells(lines[0]) == ["mechanism", "512", AWKWARD]
    assert _cells(lines[2]) == [AWKWARD, "1.0 (± 0.1)", "OOM"]


def test_figures_stay_as_they_are_written() -> None:
    """Nothing is read as a number and printed anew: trailing zeros carry meaning."""
    table = Table("t", "", "", "x", ("y",), (Row("a", (Value("1.50"),)), Row("b", (Value("10"),))))
    assert "1.50" in markdown(table)
    assert "1.50" in plain_text(table)


def test_a_figure_of_a_busy_machine_has_a_mark_and_its_text_none() -> None:
    cell = Value("~1.5", "2 to 3", 1.5, disturbed=True)
    table = Table("t", "", "", "x", ("y",), (Row("a", (cell,)),))
    assert "!~1.5 (2 to 3)" in plain_text(table)
    assert r"!\~1.5 (2 to 3)" in markdown(table)
    assert cell.text == "~1.5"


def test_a_folded_heading_is_escaped_as_html_is() -> None:
    """A backslash before `<` would leave a tag there."""
    hostile = "<i>*a_b*</i> & |"
    sections = tuple(
        Section(topic="T", setting=name, tables=(_table("a"),)) for name in ("first", hostile)
    )
    text = report_markdown(Report("t", "", Headline(("Done.",)), sections))
    (summary,) = re.findall("<summary>(.*)</summary>", text)
    assert html.unescape(summary) == hostile and "<" not in summary


def test_the_best_is_bold_in_markdown() -> None:
    table = Table("t", "", "", "x", ("y",), (Row("a", (Value("1.5", best=True),)),))
    assert "**1.5**" in markdown(table)


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("sliding_window", "sliding_window"),
        ("_private_", r"\_private\_"),
        ("a|b", r"a\|b"),
        ("2*3", r"2\*3"),
        ("a\\|b", r"a\\\|b"),
        ("<e>", r"\<e\>"),
        ("> quoted", r"\> quoted"),
        ("~~gone~~", r"\~\~gone\~\~"),
        ("$x$", r"\$x\$"),
        ("[a](b)", r"\[a\](b)"),
        ("`a`", r"\`a\`"),
        ("A & B", "A & B"),
        ("&amp; &#42; &lt", r"\&amp; \&#42; &lt"),
        ("# x", r"\# x"),
        ("## x #1", r"\## x #1"),
        ("1. z", r"1\. z"),
        ("12) z", r"12\) z"),
        ("- a - b", r"\- a - b"),
        ("+ a", r"\+ a"),
        ("---", r"\---"),
        ("-0.5", "-0.5"),
        ("+1.2", "+1.2"),
        ("1.50", "1.50"),
    ],
)
def test_only_what_markdown_would_read_is_escaped(text: str, escaped: str) -> None:
    assert escape(text) == escaped


def test_plain_text_says_what_it_is_and_has_one_line_per_row() -> None:
    table = _table("a", "b")
    told, nothing, *lines = plain_text(table).splitlines()
    assert told == f"{table.title}. {table.caption}" and nothing == ""
    assert len(lines) == 4
    assert lines[2].split() == ["a", "1.0", "(±", "0.1)", "OOM"]
    assert plain_text(table, 1).endswith("\n... and 1 more row")
