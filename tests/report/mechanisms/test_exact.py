"""Which mechanisms count as exact attention."""

from __future__ import annotations

import msgspec
from lra.report.mechanisms.exact import exact_mechanisms
from lra.report.select import join

from report.mechanisms.checks import check, softmax
from report.sample import quality


def test_what_is_softmax_attention_in_the_time_of_all_pairs_is_exact() -> None:
    checks = [
        softmax("full"),
        softmax("sliding_window", "O(n w d)"),
        softmax("synthesizer", verdict="not claimed"),
        softmax("broken", verdict="failed"),
        check("short", "2026", {"exact_softmax": "held"}),
    ]
    assert exact_mechanisms(join(checks, [])) == {"sdpa", "full"}


def test_the_newest_check_counts_and_one_of_some_laws_does_not() -> None:
    newer = softmax("full", verdict="not claimed", started="2027")
    assert exact_mechanisms(join([softmax("full"), newer], [])) == {"sdpa"}
    one = softmax("full")
    some = msgspec.structs.replace(one.cell, laws=("exact_softmax", "time_growth"))
    assert exact_mechanisms(join([msgspec.structs.replace(one, cell=some)], [])) == {"sdpa"}


def test_a_committed_check_tells_of_what_the_run_did_not_check() -> None:
    run = [quality("full", "text")]
    assert exact_mechanisms(join(run, [softmax("full"), softmax("chunked")])) == {"sdpa", "full"}
    assert exact_mechanisms(join(run, [])) == {"sdpa"}
