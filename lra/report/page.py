"""A report as one self-contained HTML page and as Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

from lra.report.pictures.style import MARKS, Look, inline, look
from lra.report.table import Figure, Report, Row, Section, Table, escape, markdown

_TEMPLATES = Path(__file__).with_name("templates")
_FOLDED = 20
"""Links to more sections than this are folded, so that a person sees a figure and not a list."""
_BETWEEN = " \N{MIDDLE DOT} "
"""Between links on a line."""


def html_text(report: Report) -> str:
    """Return the page: nothing fetched, everything a record says escaped.

    Its script sorts and filters tables; without it the page reads the same.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )

    def drawing(figure: Figure) -> Markup:
        return Markup(inline(figure.svg, f"plot-{figure.id}", figure.alt))

    template = environment.get_template("report.html")

    def swatch(row: Row) -> Look:
        return report.looks.get((row.mechanism, row.variant)) or look(row.mechanism, row.variant)

    return template.render(
        report=report,
        contents=contents(report.sections),
        folded=len(report.sections) > _FOLDED,
        drawing=drawing,
        marks=MARKS,
        colour=lambda row: swatch(row).colour,
        mark=lambda row: 1 + [*MARKS].index(swatch(row).marker),
    )


def contents(sections: Sequence[Section]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the links to sections, id and title, under what neighbours have in common.

    That is what stands before the colon of all their titles, or behind it, whichever more of them
    share; else an empty text.
    """
    found: list[tuple[str, list[tuple[str, str]]]] = []
    parts = [section.title.partition(": ")[::2] for section in sections]
    place = 0
    while place < len(sections):
        # Behind the colon stands the setting, before it the topic.
        side = max((1, 0), key=lambda side: _run(parts, place, side))
        length = _run(parts, place, side)
        if length > 1:
            own = range(place, place + length)
            found.append((parts[place][side], [(sections[n].id, parts[n][1 - side]) for n in own]))
        else:
            if not found or found[-1][0]:
                found.append(("", []))
            found[-1][1].append((sections[place].id, sections[place].title))
        place += length
    return found


def _run(parts: Sequence[tuple[str, str]], start: int, side: int) -> int:
    """How many titles from one on have a colon and are alike on one side of it; at least one."""
    if not parts[start][1]:
        return 1
    rest = parts[start:]
    return len([*takewhile(lambda one: one[1] and one[side] == rest[0][side], rest)])


def markdown_text(report: Report) -> str:
    """Return the same sections as GitHub Markdown, with the plots as linked files."""
    parts = [f"# {escape(report.title)}: attention measured", *map(escape, report.answer)]
    parts.append("\n".join(f"- {escape(text)}" for text in report.caveats))
    parts += _markdown_contents(report.sections)
    for section in report.sections:
        parts += [f"## {escape(section.title)}", *map(escape, section.text)]
        for table in section.tables:
            parts += _markdown_table(table)
        for figure in section.figures:
            parts += [
                f"### {escape(figure.title)}",
                f"![{escape(figure.alt)}](plots/{figure.id}.svg)",
                escape(figure.caption),
            ]
    parts += [f"*{escape(report.footer)}*"] if report.footer else []
    return "\n\n".join(part for part in parts if part) + "\n"


def _markdown_contents(sections: Sequence[Section]) -> list[str]:
    """The links to several sections, a line for what neighbours have in common."""
    if len(sections) < 2:
        return []
    titles = {section.id: section.title for section in sections}
    lines = []
    for shared, links in contents(sections):
        linked = [f"[{escape(text)}](#{_anchor(titles[id])})" for id, text in links]
        lines.append((f"- {escape(shared)}: " if shared else "- ") + _BETWEEN.join(linked))
    return ["Sections:", "\n".join(lines)]


def _anchor(heading: str) -> str:
    """How GitHub names a heading in links: letters, digits, `_` and hyphens for spaces."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _markdown_table(table: Table) -> list[str]:
    notes = "\n".join(f"- {escape(note)}" for note in table.notes)
    return [f"### {escape(table.title)}", escape(table.caption), markdown(table), notes]
