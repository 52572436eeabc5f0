"""A report as GitHub Markdown, and one table as aligned text for a terminal."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from lra.core.escape import escape_controls
from lra.report.model import Figure, Report, Section, Table, Value
from lra.report.words import count


def report_markdown(report: Report) -> str:
    """Return the report, with its plots as linked files and folded parts folded."""
    parts = [f"# {escape(report.title)}: attention measured", escape(report.subtitle)]
    parts += map(escape, report.headline.sentences)
    if report.headline.figure:
        parts += figure_markdown(report.headline.figure)
    if report.headline.leaderboard:
        parts += table_markdown(report.headline.leaderboard)
    parts.append("\n".join(f"- {escape(text)}" for text in report.headline.caveats))
    for topic in report.topics:
        parts.append(f"## {escape(topic.title)}")
        for place, section in enumerate(topic.sections):
            body = list(section_markdown(section))
            if place == 0 and topic.level == "results":
                parts += [f"*{escape(section.setting)}*" if section.setting else "", *body]
            else:
                # Up to the next blank line this is HTML, in which a backslash escapes nothing.
                name = html.escape(escape_controls(section.setting or topic.title), quote=False)
                parts += [f"<details><summary>{name}</summary>", *body, "</details>"]
    parts += [f"*{escape(report.footer)}*"] if report.footer else []
    return "\n\n".join(part for part in parts if part) + "\n"


def section_markdown(section: Section) -> Iterator[str]:
    """Yield the blocks of a section."""
    yield from map(escape, section.text)
    for figure in section.figures:
        yield f"### {escape(figure.title)}"
        yield from figure_markdown(figure)
    for table in section.tables:
        yield from table_markdown(table)


def figure_markdown(figure: Figure) -> list[str]:
    """Return a figure as a link to its file, and its caption."""
    return [f"![{escape(figure.alt)}](plots/{figure.id}.svg)", escape(figure.caption)]


def table_markdown(table: Table) -> list[str]:
    """Return a table with its title, caption and notes."""
    notes = "\n".join(f"- {escape(note)}" for note in table.notes)
    return [f"### {escape(table.title)}", escape(table.caption), rows_markdown(table), notes]


def rows_markdown(table: Table) -> str:
    """Return the rows of a table as GitHub Markdown; the best of a column is bold."""
    from tabulate import tabulate

    def body(value: Value) -> str:
        text = escape(value.line)
        return f"**{text}**" if value.best else text

    return tabulate(
        [[escape(row.title), *map(body, row.values)] for row in table.rows],
        headers=[escape(text) for text in (table.corner, *table.columns)],
        tablefmt="pipe",
        colalign=["left"] + ["right" if table.numeric else "left"] * len(table.columns),
        disable_numparse=True,
    )


def plain_text(table: Table, most: int | None = None) -> str:
    """Return at most `most` rows of a table as aligned columns, below its title and caption."""
    from tabulate import tabulate

    aligned = tabulate(
        [
            list(map(escape_controls, (row.title, *(value.line for value in row.values))))
            for row in table.rows[:most]
        ],
        headers=list(map(escape_controls, (table.corner, *table.columns))),
        tablefmt="simple",
        colalign=["left"] + ["right" if table.numeric else "left"] * len(table.columns),
        disable_numparse=True,
    )
    left = len(table.rows) - len(table.rows[:most])
    more = f"\n... and {count(left, 'more row', 'more rows')}" if left else ""
    heading = escape_controls(f"{table.title}. {table.caption}".strip())
    return f"{heading}\n\n{aligned}{more}"


def escape(text: str) -> str:
    r"""Return text that Markdown shows as it is, also inside a table.

    Underscores inside a word mean nothing in GitHub's Markdown and stay readable, as do most `&`.
    """
    text = re.sub(r"([\\`*|<>\[\]~$])", r"\\\1", escape_controls(text))
    text = re.sub(r"&(?=#?\w+;)", r"\\&", text)
    # A heading, a list or a rule, at the beginning of a text.
    text = re.sub(r"^(\s*\d*)(?=[#+.)-]+(\s|$))", r"\1\\", text)
    return re.sub(r"(?<![^\W_])_|_(?![^\W_])", r"\\_", text)
