"""The table of claims: which check of a mechanism counts, and what speaks against it."""

from __future__ import annotations

from pathlib import Path

from lra.report.mechanisms.capabilities import capabilities

from lra.core.records import Record
from lra.report.render import render
from report.mechanisms.checks import check


def cells(*records: Record) -> dict[str, dict[str, str]]:
    section = capabilities(records)
    assert section is not None
    return {
        row.label: {
            c: x.text + f" ({x.note})" * bool(x.note)
            for c, x in zip(t.columns, row.cells, strict=True)
        }
        for t in section.tables
        if t.id in ("capabilities", "peers")
        for row in t.rows
    }


def test_an_old_full_check_does_not_hide_what_newer_sources_break() -> None:
    old = check("x", "2020", {"causality": "held"}, form="full")
    new = check("x", "2026", {"causality": "failed"}, source="b")
    assert cells(old, new)["x"]["causal"] == "strict (claimed, broken)"
    assert cells(new, old)["x"]["laws held"] == "0 of 1"
    later = check("x", "2026", {"causality": "held", "batch": "held"})
    assert cells(old, later)["x"]["laws held"] == "1 of 1", "of one source the full form counts"


def test_a_broken_claim_comes_before_what_holds_unclaimed() -> None:
    verdicts = {"padding_count": "unclaimed", "padding_content": "failed"}
    assert cells(check("x", "2026", verdicts))["x"]["padding"] == "length (claimed, broken)"
    verdicts = {"padding_content": "held", "empty_rows": "failed"}
    assert cells(check("x", "2026", verdicts))["x"]["padding"] == "empty rows (claimed, broken)"


def test_what_holds_unclaimed_stands_beside_the_claim_that_holds() -> None:
    verdicts = {"padding_count": "unclaimed", "padding_content": "held"}
    shown = cells(check("x", "2026", verdicts))["x"]["padding"]
    assert shown == "length (content holds, though not claimed)"
    verdicts = {"causality": "unclaimed", "values_causality": "held"}
    shown = cells(check("x", "2026", verdicts))["x"]["causal"]
    assert shown == "values only (strict holds, though not claimed)"
    verdicts = {"padding_count": "unclaimed", "padding_content": "skipped"}
    shown = cells(check("x", "2026", verdicts))["x"]["padding"]
    assert shown == "length (claimed, not tried; content holds, though not claimed)"


def test_what_is_said_beside_a_word_stands_in_brackets_on_the_page(tmp_path: Path) -> None:
    verdicts = {"padding_count": "unclaimed", "padding_content": "held"}
    render([check("x", "2026", verdicts)], [], tmp_path, title="t")
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "length <small>(content holds, though not claimed)</small>" in page


def test_a_full_check_that_crashed_does_not_hide_a_short_one_after_it() -> None:
    crashed = check("x", "2020", {}, form="full", status="crash")
    assert cells(crashed)["x"]["laws held"].startswith("crash")
    short = check("x", "2026", {"causality": "held"})
    assert cells(crashed, short)["x"]["laws held"] == "1 of 1"


def test_parts_of_a_check_are_no_check() -> None:
    assert capabilities([check("x", "2026", {"causality": "held"}, laws=("causality",))]) is None


def test_a_claim_that_is_broken_on_one_device_is_not_hidden_by_a_check_on_another() -> None:
    gpu = check("x", "2025", {"causality": "failed"}, device="cuda")
    cpu = check("x", "2026", {"causality": "held"})
    shown = cells(cpu, gpu, check("y", "2026", {"causality": "held"}))
    assert list(shown) == ["x on cpu", "x on cuda", "y"]
    assert shown["x on cuda"]["causal"] == "strict (claimed, broken)"
    assert shown["x on cpu"]["causal"] == "strict"
    section = capabilities([cpu, gpu])
    assert section is not None
    assert [row.label for row in section.tables[-1].rows] == ["x on cuda"]
    # One device alone goes without saying.
    assert list(cells(gpu)) == ["x"]


def test_of_one_device_the_newest_check_counts_whatever_there_is_of_others() -> None:
    old = check("x", "2020", {"causality": "failed"}, device="cuda")
    new = check("x", "2026", {"causality": "held"}, device="cuda", source="b")
    assert cells(old, new)["x"]["causal"] == "strict"


def test_peers_stand_apart_with_their_release() -> None:
    peer = check("peer:x", "2026", {"causality": "failed"}, method={"package": "x-package 1.2"})
    section = capabilities([peer, check("x", "2026", {"causality": "held"})])
    assert section is not None
    assert [t.id for t in section.tables] == ["capabilities", "peers", "broken-claims"]
    assert [t.title for t in section.tables[:2]] == ["Claims tested", "Public packages"]
    assert section.tables[1].rows[0].note == "x-package 1.2"


def test_the_first_table_says_what_the_words_of_all_mean() -> None:
    ours, peer = (check(name, "2026", {"bias": "unclaimed"}) for name in ("x", "peer:x"))
    for records in ([ours], [ours, peer], [peer]):
        section = capabilities(records)
        assert section is not None
        first, *others = [" ".join(table.notes) for table in section.tables]
        assert "no: neither claimed nor seen to hold" in first
        assert "holds, though not claimed: it held in every case tried" in first
        assert "padding: content" in first
        assert not any(others)
        assert all("counts claimed laws that held" in table.caption for table in section.tables)
        assert "In use, what is not claimed is refused; the check tries it" in section.text[0]
