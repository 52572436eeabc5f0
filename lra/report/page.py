"""A report as one self-contained HTML page and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from lra.report.pictures.style import MARKS, Look, inline, look
from lra.report.table import Figure, Report, Row, Section, Table, escape, markdown

_TEMPLATES = Path(__file__).with_name("templates")


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
        drawing=drawing,
        marks=MARKS,
        colour=lambda row: swatch(row).colour,
        mark=lambda row: 1 + [*MARKS].index(swatch(row).marker),
    )


def contents(sections: Sequence[Section]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the links to sections, id and title, under what neighbours have in common.

    That is what stands behind the colon of all their titles; else an empty text.
    """
    found: list[tuple[str, list[tuple[str, str]]]] = []
    for shared, group in groupby(sections, lambda section: section.title.partition(": ")[2]):
        own = list(group)
        if shared and len(own) > 1:
            found.append((shared, [(one.id, one.title.partition(": ")[0]) for one in own]))
            continue
        if not found or found[-1][0]:
            found.append(("", []))
        found[-1][1].extend((one.id, one.title) for one in own)
    return found


def markdown_text(report: Report) -> str:
    """Return the same sections as GitHub Markdown, with the plots as linked files."""
    parts = [f"# {escape(report.title)}", *map(escape, report.answer)]
    parts.append("\n".join(f"- {escape(text)}" for text in report.caveats))
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


def _markdown_table(table: Table) -> list[str]:
    notes = "\n".join(f"- {escape(note)}" for note in table.notes)
    return [f"### {escape(table.title)}", escape(table.caption), markdown(table), notes]
