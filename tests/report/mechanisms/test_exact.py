"""Which mechanisms count as exact attention."""

from __future__ import annotations

import msgspec

from lra.core.findings import Finding, Verdict
from lra.core.records import Record
from lra.report.mechanisms.exact import exact_mechanisms
from lra.report.select import join
from report.mechanisms.test_capabilities import check
from report.sample import quality


def softmax(name: str, time: str = "O(n m d)", verdict: Verdict = "held") -> Record:
    """A check of what says that it is softmax attention, in time that grows so."""
    grown = f"time grows as n^1.90 from 1024 to 2048, claimed: {time}"
    findings = (
        Finding(law="exact_softmax", verdict=verdict),
        Finding(law="time_growth", verdict="reported", detail=grown),
    )
    return msgspec.structs.replace(check(name, "2026", {}), findings=findings)


def test_what_is_softmax_attention_in_the_time_of_all_pairs_is_exact() -> None:
    checks = [
        softmax("full"),
        softmax("sliding_window", "O(n w d)"),
        softmax("synthesizer", verdict="not claimed"),
        softmax("broken", verdict="failed"),
        check("short", "2026", {"exact_softmax": "held"}),
    ]
    assert exact_mechanisms(join(checks, [])) == {"sdpa", "full"}


def test_a_committed_check_tells_of_what_the_run_did_not_check() -> None:
    run = [quality("full", "text")]
    assert exact_mechanisms(join(run, [softmax("full"), softmax("chunked")])) == {"sdpa", "full"}
    assert exact_mechanisms(join(run, [])) == {"sdpa"}
