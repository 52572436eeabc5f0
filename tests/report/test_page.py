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


def test_neighbours_of_one_topic_stand_under_it() -> None:
    sections = [
        Section("latency-1", "Latency: batch 1"),
        Section("memory-1", "Memory: batch 1"),
        Section("growth-1", "Growth: batch 1"),
        Section("growth-2", "Growth: batch 4"),
        Section("limit-2", "Limit: batch 4"),
    ]
    assert contents(sections[1:]) == [
        ("batch 1", [("memory-1", "Memory"), ("growth-1", "Growth")]),
        ("batch 4", [("growth-2", "Growth"), ("limit-2", "Limit")]),
    ]
    assert contents([sections[0], *sections[2:]])[1:] == [
        ("batch 4", [("growth-2", "Growth"), ("limit-2", "Limit")]),
    ]
    assert contents(sections[2:4]) == [
        ("Growth", [("growth-1", "batch 1"), ("growth-2", "batch 4")]),
    ]
