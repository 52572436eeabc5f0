"""Checks in sentences, as Markdown and as JUnit."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from lra.changes.check_report import Checked, junit, line, sentences, summary
from lra.verdict.baseline import Judgement, Outcome

WORSE = Judgement("linear", "train 1024", "peak_tensor_bytes", "regression", "100 before, 105 now")
BETTER = Judgement("sdpa", "forward 256", "operations", "improvement", "9 before, 5 now")
UNSURE = Judgement("", "", "baseline", "inconclusive", "no baseline for machines of class x")
NEW = Judgement("sdpa", "train 256", "ending", "new", "ok")
FINE = Judgement("sdpa", "laws", "causality", "held")


@pytest.mark.parametrize(
    ("judged", "stopped", "verdict", "first"),
    [
        ((FINE,), "", "passed", ""),
        ((), "", "passed", ""),
        ((FINE, NEW), "", "passed", line(NEW)),
        ((BETTER, BETTER), "", "passed", line(BETTER)),
        ((UNSURE, FINE), "", "inconclusive", line(UNSURE)),
        ((FINE, NEW, BETTER, UNSURE, WORSE), "", "failed", line(WORSE)),
        ((), "no such revision", "stopped", ""),
        ((FINE, WORSE), "no such revision", "failed and stopped", line(WORSE)),
    ],
)
def test_a_check_passes_fails_or_cannot_tell(
    judged: tuple[Judgement, ...], stopped: str, verdict: str, first: str
) -> None:
    checked = Checked(judged, ("A note.",), stopped)
    told = sentences(checked)
    assert told[0].startswith(f"check {verdict}: {stopped}") and told[0].endswith(first)
    assert checked.passed == (verdict == "passed") and told[-1] == "A note."
    assert len(told) == (3 if judged else 2), "as many figures as were looked at"


def rows(page: str) -> list[str]:
    return [text for text in page.splitlines() if text.startswith("|") and "---" not in text]


def test_the_summary_shows_regressions_and_folds_the_rest() -> None:
    page = summary(Checked((FINE, WORSE, UNSURE, BETTER, NEW), ("A note.",)))
    assert page.startswith("## lra check\n\n**check failed: 1 regression, ")
    assert "\n\nA note.\n\n### Regressions (1)\n\n|" in page
    assert page.count("<details>\n<summary>") == page.count("</details>") == 3
    assert "causality" not in page, "what held is counted"
    assert sum("linear" in row and "100 before, 105 now" in row for row in rows(page)) == 1
    assert sum(row.startswith("| all ") and "of class x" in row for row in rows(page)) == 1


def test_odd_names_break_no_table() -> None:
    odd = Judgement("a|b_c\n", "two\nlines", "*_", "regression", "<b> `x` | y\r\nz")
    page = summary(Checked((odd,), ("not | timed: *_",), stopped="a\nb|c"))
    header, row = rows(page)
    assert row.replace("\\|", "").count("|") == header.count("|") == 5
    assert "\n\nnot \\| timed: \\*\\_\n\n" in page
    assert "a\\|b_c\\\\n " in row and "two\\\\nlines" in row and "\\*\\_" in row
    assert "\\<b\\> \\`x\\` \\| y\\\\r\\\\nz" in row
    assert "stopped: a\\\\nb\\|c;" in page.splitlines()[2]


def parsed(checked: Checked) -> ElementTree.Element:
    text = junit(checked)
    assert text.startswith("<?xml version='1.0' encoding='utf-8'?>") and text.endswith("\n")
    return ElementTree.fromstring(text.encode())


KINDS: dict[Outcome, str | None] = {
    "regression": "failure",
    "inconclusive": "skipped",
    "new": "skipped",
    "improvement": "system-out",
    "held": None,
}


@pytest.mark.parametrize("outcome", KINDS)
def test_each_outcome_is_a_case_of_its_kind(outcome: Outcome) -> None:
    one = Judgement("linear", "train 1024", "operations", outcome, "1 before, 2 now")
    (case,) = parsed(Checked((one,))).iter("testcase")
    assert case.attrib == {"classname": "linear", "name": "train 1024 operations"}
    assert [child.tag for child in case] == ([KINDS[outcome]] if KINDS[outcome] else [])
    if outcome == "regression":
        assert case[0].get("message") == "1 before, 2 now"
    elif outcome in ("inconclusive", "new"):
        assert case[0].get("message") == f"{outcome}: 1 before, 2 now"


def test_suites_are_mechanisms_and_their_counts_are_those_of_their_cases() -> None:
    root = parsed(Checked((FINE, NEW, WORSE, BETTER, UNSURE)))
    found = {suite.get("name"): suite for suite in root}
    assert list(found) == ["sdpa", "linear", "all"]
    for suite in root:
        cases = list(suite)
        assert suite.get("tests") == str(len(cases))
        for name, tag in (("failures", "failure"), ("skipped", "skipped")):
            assert suite.get(name) == str(sum(case.find(tag) is not None for case in cases))
    assert found["sdpa"].get("tests") == "3" and found["linear"].get("failures") == "1"
    (case,) = found["all"]
    assert case.attrib == {"classname": "all", "name": "baseline"}


def test_a_check_that_stopped_is_an_error() -> None:
    root = parsed(Checked((FINE,), stopped="interrupted & <gone>\x07"))
    last = list(root)[-1]
    assert (last.get("errors"), last.get("tests")) == ("1", "1")
    (error,) = last.iter("error")
    assert error.get("message") == "interrupted & <gone>\\x07"
    assert not list(parsed(Checked((FINE,))).iter("error"))


def test_odd_names_are_xml_all_the_same() -> None:
    odd = Judgement("<a & b>\x00", "two\nlines", '"q" \u00d7', "regression", "\x1b[31mred")
    (case,) = parsed(Checked((odd,))).iter("testcase")
    assert case.get("classname") == "<a & b>\\x00"
    assert case.get("name") == 'two\\nlines "q" \u00d7'
    assert case[0].get("message") == "\\x1b[31mred"
