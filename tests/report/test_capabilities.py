"""Claims of mechanisms: which check counts, what speaks against it, and who is exact attention."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from lra.core.cells import VerifyCell
from lra.core.findings import Finding
from lra.core.records import Failure, Record
from lra.report.assemble import analyse
from lra.report.checks import checks, exact_mechanisms
from lra.report.load.select import join
from lra.report.model import Section
from lra.report.render import render
from lra.report.sections import capabilities

from .sample import HERE, PROVENANCE, mechanism, quality


def check(name: str, started: str, verdicts: dict[str, Any], **fields: Any) -> Record:
    status = fields.pop("status", "ok")
    source, method = fields.pop("source", "a"), fields.pop("method", {})
    cell = VerifyCell(
        versions={"verify": "m", f"mechanism/{name}": source},
        mechanism=mechanism(name, **fields.pop("config", {})),
        **{"machine": HERE, "torch": "2.13.0", "threads": 1, **fields},
    )
    return Record(
        id=cell.id,
        cell=cell,
        status=status,
        failure=None if status == "ok" else Failure(type="X", message="x"),
        started_at=started,
        seconds=1.0,
        findings=tuple(Finding(law=law, verdict=verdict) for law, verdict in verdicts.items()),
        method=method,
        provenance=PROVENANCE,
    )


def sections(*records: Record) -> list[Section]:
    return capabilities.sections(analyse(join(list(records), [])))


def cells(*records: Record) -> dict[str, dict[str, str]]:
    (section,) = sections(*records)
    return {
        row.label: {
            c: x.text + f" ({x.note})" * bool(x.note)
            for c, x in zip(t.columns, row.values, strict=True)
        }
        for t in section.tables
        if "capabilities" in t.id
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
    assert sections(check("x", "2026", {"causality": "held"}, laws=("causality",))) == []


def test_a_claim_that_is_broken_on_one_device_is_not_hidden_by_a_check_on_another() -> None:
    gpu = check("x", "2025", {"causality": "failed"}, device="cuda")
    cpu = check("x", "2026", {"causality": "held"})
    shown = cells(cpu, gpu, check("y", "2026", {"causality": "held"}))
    assert list(shown) == ["x on cpu", "x on cuda", "y"]
    assert shown["x on cuda"]["causal"] == "strict (claimed, broken)"
    assert shown["x on cpu"]["causal"] == "strict"
    (section,) = sections(cpu, gpu)
    assert [row.label for row in section.tables[-1].rows] == ["x on cuda"]
    # One device alone goes without saying.
    assert list(cells(gpu)) == ["x"]


def test_of_one_device_the_newest_check_counts_whatever_there_is_of_others() -> None:
    old = check("x", "2020", {"causality": "failed"}, device="cuda")
    new = check("x", "2026", {"causality": "held"}, device="cuda", source="b")
    assert cells(old, new)["x"]["causal"] == "strict"


def test_beside_a_run_stand_its_mechanisms_and_the_anchors() -> None:
    names = ("a", "b", "sdpa")
    reference = [check(name, "2026-01-01", {"causality": "held"}) for name in names]
    reference += [quality(name, "text") for name in names]
    (section,) = capabilities.sections(analyse(join([quality("a", "text")], reference)))
    assert [row.label for row in section.tables[0].rows] == ["a", "sdpa"]


def test_peers_stand_apart() -> None:
    peer = check("peer:x", "2026", {"causality": "failed"})
    (section,) = sections(peer, check("x", "2026", {"causality": "held"}))
    ids = [table.id for table in section.tables]
    assert ids == ["capabilities", "peer-capabilities", "broken-claims"]


def softmax(
    name: str, claim: str = "always", verdict: str = "held", started: str = "2026"
) -> Record:
    """A check whose card says how a mechanism comes to softmax attention."""
    return check(name, started, {"exact_softmax": verdict}, method={"card": {"softmax": claim}})


def exact(*own: Record, reference: tuple[Record, ...] = ()) -> frozenset[str]:
    return exact_mechanisms(checks(join(list(own), list(reference))))


def test_softmax_attention_always_by_card_and_by_check_is_exact() -> None:
    made = [
        softmax("full"),
        softmax("sliding_window", "configured"),
        softmax("synthesizer", verdict="not claimed"),
        softmax("broken", verdict="failed"),
        # Records of earlier versions have no card.
        check("short", "2026", {"exact_softmax": "held"}),
        check("odd", "2026", {"exact_softmax": "held"}, method={"card": "always"}),
    ]
    assert exact(*made) == {"sdpa", "full"}


def test_the_newest_check_counts_and_one_of_some_laws_does_not() -> None:
    assert exact(softmax("full"), softmax("full", verdict="not claimed", started="2027")) == {
        "sdpa"
    }
    one = softmax("full")
    some = msgspec.structs.replace(one.cell, laws=("exact_softmax",))
    assert exact(msgspec.structs.replace(one, cell=some)) == {"sdpa"}


def test_a_committed_check_tells_of_mechanisms_that_the_run_did_not_check() -> None:
    run, committed = quality("full", "text"), (softmax("full"), softmax("chunked"))
    assert exact(run, reference=committed) == {"sdpa", "full"}
    assert exact(run) == {"sdpa"}
