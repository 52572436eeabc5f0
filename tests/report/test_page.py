"""What the page has beside the report's own parts."""

from __future__ import annotations

from lra.report.page import contents, markdown_text
from lra.report.table import Report, Section


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


def test_markdown_links_to_its_sections_as_github_names_them() -> None:
    titles = ("Latency: 4 heads of width 64", "Memory: 4 heads of width 64", "LRA's Table_2")
    sections = tuple(Section(f"s{n}", title) for n, title in enumerate(titles))
    told = markdown_text(Report("x", "", ("Fast.",), sections, "", caveats=("Careful.",)))
    assert told.startswith(
        "# x: attention measured\n\nFast.\n\n- Careful.\n\nSections:\n\n"
        "- 4 heads of width 64: [Latency](#latency-4-heads-of-width-64) \N{MIDDLE DOT} "
        "[Memory](#memory-4-heads-of-width-64)\n"
        "- [LRA's Table_2](#lras-table_2)\n\n## Latency"
    )
    alone = markdown_text(Report("x", "", ("Fast.",), sections[:1], ""))
    assert "Sections:" not in alone
