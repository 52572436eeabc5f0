"""What a check found, as a person, a pull request and a CI server read it."""

from __future__ import annotations

from xml.etree import ElementTree

import msgspec
import pytest

from lra.changes.check_report import Checked, junit, line, sentences, summary
from lra.verdict.baseline import Judgement, Outcome

WORSE = Judgement("linear", "train 1024", "peak_tensor_bytes", "regression", "100 before, 105 now")
BETTER = Judgement("sdpa", "forward 256", "operations", "improvement", "9 before, 5 now")
UNSURE = Judgement("", "", "baseline", "inconclusive", "no baseline for machines of class x")
NEW = Judgement("sdpa", "train 256", "ending", "new", "ok")
FINE = Judgement("sdpa", "laws", "causality", "held")


def test_the_first_sentence_is_what_failed_and_the_worst_of_it() -> None:
    found = sentences(Checked((FINE, NEW, BETTER, UNSURE, WORSE), ("A note.",)))
    assert found == [
        "check failed: 1 regression, 1 inconclusive figure, 1 unexpected improvement, "
        "1 new figure; first: linear, train 1024: peak_tensor_bytes: 100 before, 105 now",
        "5 figures of 2 mechanisms, 1 held",
        "A note.",
    ]


@pytest.mark.parametrize(
    ("held", "first"),
    [
        ((FINE,), "check passed: nothing differs from the baseline"),
        ((FINE, NEW), "check passed: 1 new figure; first: sdpa, train 256: ending: ok"),
        ((BETTER, BETTER), "check passed: 2 unexpected improvements; first: sdpa, forward 256: "
         "operations: 9 before, 5 now"),
        ((UNSURE, FINE), "check inconclusive: 1 inconclusive figure; first: baseline: "
         "no baseline for machines of class x"),
        ((WORSE, WORSE, FINE), "check failed: 2 regressions; first: linear, train 1024: "
         "peak_tensor_bytes: 100 before, 105 now"),
    ],
)  # fmt: skip
def test_a_check_passes_fails_or_cannot_tell(held: tuple[Judgement, ...], first: str) -> None:
    checked = Checked(held)
    assert sentences(checked)[0] == first
    assert checked.passed == first.startswith("check passed")


def test_nothing_looked_at_says_nothing_of_the_baseline() -> None:
    assert sentences(Checked((), ("Changes since main reach no mechanism.",))) == [
        "check passed: nothing to report",
        "Changes since main reach no mechanism.",
    ]


def test_a_check_that_stopped_did_not_pass_whatever_it_had_found() -> None:
    early = Checked((), stopped="no such revision")
    assert not early.passed
    assert sentences(early) == ["check stopped: no such revision; until then nothing to report"]
    some = msgspec.structs.replace(early, judged=(FINE,))
    assert sentences(some)[0].endswith("; until then nothing differs from the baseline")
    worse = sentences(msgspec.structs.replace(early, judged=(FINE, WORSE)))[0]
    assert worse.startswith("check failed and stopped: no such revision; until then 1 regression;")


def rows(page: str) -> list[str]:
    return [text for text in page.splitlines() if text.startswith("|") and "---" not in text]


def test_the_summary_shows_regressions_and_folds_the_rest() -> None:
    page = summary(Checked((FINE, WORSE, UNSURE, BETTER, NEW), ("A note.",)))
    assert page.startswith("## lra check\n\n**check failed: 1 regression, ")
    assert "\n\nA note.\n\n### Regressions (1)\n\n|" in page
    assert page.count("<details>") == page.count("</details>") == 3
    for title in ("Inconclusive (1)", "Better than before: verify that the work was done (1)",
                  "New: nothing to hold it against (1)"):  # fmt: skip
        assert f"<details>\n<summary>{title}</summary>\n\n|" in page
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


def test_a_line_has_no_more_than_there_is() -> None:
    assert line(FINE) == "sdpa, laws: causality"
    assert line(UNSURE) == "baseline: no baseline for machines of class x"


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
