"""What the page has beside the report's own parts."""

from __future__ import annotations

from lra.report.page import contents
from lra.report.table import Section


def test_links_stand_under_what_their_sections_share() -> None:
    sections = [
        Section("quality", "Quality"),
        Section("quality-2", "Quality: at scale small"),
        Section("latency-1", "Latency: batch 1: causal"),
        Section("memory-1", "Memory: batch 1: causal"),
        Section("latency-2", "Latency: batch 4"),
        Section("memory-2", "Memory: batch 4"),
        Section("error", "Error"),
    ]
    assert contents(sections) == [
        ("", [("quality", "Quality"), ("quality-2", "Quality: at scale small")]),
        ("batch 1: causal", [("latency-1", "Latency"), ("memory-1", "Memory")]),
        ("batch 4", [("latency-2", "Latency"), ("memory-2", "Memory")]),
        ("", [("error", "Error")]),
    ]
    assert contents([]) == []
