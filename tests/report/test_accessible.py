"""The page for those who do not see it, do not use a mouse, or print it."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise, product
from pathlib import Path

import lra.report
from lra.report import Rendered
from lra.report.model import Figure, Headline, Report, Section
from lra.report.plots.style import Looks
from lra.report.write.html import report_html

CSS = (Path(lra.report.__file__).parent / "write/templates/page.css").read_text("utf-8")
VARIABLES = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", CSS))
LEAST = 4.5
"""Contrast of text by WCAG 2, level AA."""


def _colour(text: str) -> str:
    """A colour as six digits, whatever way the style sheet writes it."""
    text = re.sub(r"var\(--(\w+)\)", lambda found: VARIABLES[found[1]], text)
    return re.sub(r"^#(.)(.)(.)$", r"#\1\1\2\2\3\3", text)


def _luminance(colour: str) -> float:
    shares = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _contrast(one: str, other: str) -> float:
    low, high = sorted(_luminance(_colour(colour)) + 0.05 for colour in (one, other))
    return high / low


def _declared(name: str) -> set[str]:
    found = re.findall(rf"[;{{ ]{name}: ([^;}}]+)", CSS)
    return {value.strip() for value in found} - {"none", "inherit"}


def test_every_text_stands_out_from_every_ground() -> None:
    texts, grounds = _declared("color"), _declared("background")
    assert len(texts) > 2 and len(grounds) > 1
    for text, ground in product(texts, grounds):
        assert _contrast(text, ground) >= LEAST, (text, ground)


def test_every_text_of_a_plot_stands_out_from_the_page(rendered: Rendered) -> None:
    colours: Counter[str] = Counter()
    for plot in (rendered.page.parent / "plots").iterdir():
        for style in re.findall(r"<text[^>]*style=\"([^\"]*)\"", plot.read_text("utf-8")):
            fill = re.search(r"fill: (#[0-9a-f]{6})", style)
            colours[fill[1] if fill else "#000000"] += 1
    assert colours.total() > 50
    assert {colour for colour in colours if _contrast(colour, "#fff") < LEAST} == set()


def test_headings_skip_no_level_and_the_page_says_its_language(rendered: Rendered) -> None:
    text = rendered.page.read_text("utf-8")
    levels = [int(level) for level in re.findall(r"<h([1-6])[ >]", text)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert '<html lang="en">' in text


def test_tables_have_titles_and_their_headings_a_scope(rendered: Rendered) -> None:
    text = rendered.page.read_text("utf-8")
    tables = re.findall(r"<table.*?</table>", text, re.DOTALL)
    assert len(tables) > 5
    for table in tables:
        assert re.findall(r"<th (?![^>]*scope=)[^>]*>|<th>", table) == []
    named = re.findall(r"aria-(?:describedby|labelledby)=\"([\w-]+)\"", text)
    assert len(named) > len(tables)
    assert all(text.count(f'id="{target}"') == 1 for target in named)


def test_there_are_landmarks_and_a_way_past_them(rendered: Rendered) -> None:
    text = rendered.page.read_text("utf-8")
    assert text.count("<main>") == text.count('<nav aria-label="Sections">') == 1
    skip = re.search(r'<a class="skip" href="#([\w-]+)">', text)
    assert skip is not None and f'<section id="{skip[1]}"' in text
    # It comes before whatever else can have the focus.
    assert skip.start() == re.search(r"<a |<button|<input|tabindex", text).start()  # type: ignore[union-attr]


def test_the_page_says_what_it_is_and_names_its_figures() -> None:
    drawn = Figure("f1", "Peak memory against length", "alt", "", "<svg></svg>")
    section = Section(topic="Memory", setting="batch 4", figures=(drawn,))
    text = report_html(Report("mine", "", Headline(("Done.",)), (section,)), Looks())
    assert re.findall(r"<(?:title|h1)>([^<]*)<", text) == ["mine: attention measured"] * 2
    assert re.findall(r'role="region" aria-label="([^"]*)"', text) == [drawn.title]


def test_what_has_the_focus_is_outlined() -> None:
    (rule,) = re.findall(r"([^{}]*:focus-visible[^{]*)\{([^}]*)\}", CSS)
    assert {"a", "button", "input", "summary", ".scroll"} == {
        one.strip().removesuffix(":focus-visible") for one in rule[0].split(",")
    }
    assert "outline: 2px" in rule[1] and "outline: none" not in CSS and "outline: 0" not in CSS


def test_the_first_setting_of_a_topic_is_shown_and_others_are_folded() -> None:
    sections = tuple(Section(topic="Memory", setting=f"batch {n}", text=("x",)) for n in range(3))
    looked_up = Section(topic="Protocol", level="appendix", text=("y",))
    text = report_html(Report("t", "", Headline(("Done.",)), (looked_up, *sections)), Looks())
    assert re.findall(r"<summary>(?:<h2>)?([^<]*)", text) == ["batch 1", "batch 2", "Protocol"]
    assert all(f'href="#{topic}"' in text for topic in ("memory", "protocol"))


def test_print_has_no_controls_and_cuts_nothing() -> None:
    rules = CSS.split("@media print")[1]
    assert "nav, .filter, .skip { display: none; }" in rules
    assert ".scroll { overflow: visible; }" in rules
    # Chromium repeats the head of a table on each page, but no buttons in it.
    assert "thead button { display: contents; }" in rules
    # A table that may not break leaves the rest of the page before it empty.
    avoided = re.findall(r"([^{}]*)\{ break-inside: avoid; \}", rules)
    assert avoided and " table" not in avoided[0]
