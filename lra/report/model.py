"""A report as plain values: sections with tables and figures, before they become a page or a
file."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Literal

import msgspec

from lra.report.load.measurement import Origin

Level = Literal["results", "appendix"]
"""results: for readers with time. appendix: folded, to be looked up."""


class Value(msgspec.Struct, frozen=True):
    """One cell of a table."""

    text: str
    note: str = ""
    """Smaller second line: a spread, a ratio, the reason for a word."""
    number: float | None = None
    """Number that `text` rounds and the table is sorted by; None where `text` is a word."""
    best: bool = False
    """Whether it is the best of its column, and told apart from the next."""
    disturbed: bool = False
    """Whether the machine was busy at the measurement."""

    @property
    def marked(self) -> str:
        """Text, with a mark in front where the machine was busy."""
        return f"!{self.text}" if self.disturbed else self.text

    @property
    def line(self) -> str:
        """Text with its note in brackets."""
        return f"{self.marked} ({self.note})" if self.note else self.marked


class Row(msgspec.Struct, frozen=True):
    """One row of a table."""

    label: str
    values: tuple[Value, ...]
    mechanism: str = ""
    """Name of the mechanism, for the row's swatch and the link to its page; empty for other
    rows."""
    variant: str = ""
    """Id of the mechanism with its configuration."""
    origin: Origin = "run"
    group: str = ""
    """Heading above the row and its neighbours of the same group."""

    @property
    def title(self) -> str:
        """Label, marked for a row of the reference."""
        return f"{self.label} (reference)" if self.origin == "reference" else self.label


class Table(msgspec.Struct, frozen=True):
    """Rows and columns, with title, caption and notes."""

    id: str
    title: str
    caption: str
    corner: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    legend: tuple[str, ...] = ()
    """Sentences that hold for all tables of a topic, such as what a mark means: the report has each
    once a topic, among the notes of the first table that has it."""
    numeric: bool = True
    """Whether columns are numbers; False for text, which reads better left-aligned."""

    def groups(self) -> list[tuple[str, list[Row]]]:
        """Return the rows by group, in order."""
        return [(group, list(rows)) for group, rows in groupby(self.rows, lambda row: row.group)]


class Figure(msgspec.Struct, frozen=True):
    """A drawing, and its content in words."""

    id: str
    title: str
    alt: str
    caption: str
    svg: str


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """Text, tables and figures of one topic in one setting."""

    topic: str
    """Heading that sections of one topic share: `Accuracy`, `Time and memory`."""
    setting: str = ""
    """Words that set it apart from others of its topic; the first of a topic is shown, others
    folded."""
    level: Level = "results"
    text: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing in it."""
        return not (self.text or self.tables or self.figures)


class Headline(msgspec.Struct, frozen=True):
    """The first screen."""

    sentences: tuple[str, ...]
    """Sentences, five at most."""
    figure: Figure | None = None
    leaderboard: Table | None = None
    caveats: tuple[str, ...] = ()
    """Caveats to know before the sentences are quoted."""


class Topic(msgspec.Struct, frozen=True):
    """Sections that share a heading."""

    id: str
    title: str
    level: Level
    sections: tuple[Section, ...]


class Report(msgspec.Struct, frozen=True):
    """The whole page."""

    title: str
    subtitle: str
    headline: Headline
    sections: tuple[Section, ...]
    footer: str = ""

    @property
    def topics(self) -> list[Topic]:
        """Sections by topic, results before the appendix, in order of first appearance."""
        found: dict[tuple[Level, str], list[Section]] = {}
        for level in ("results", "appendix"):
            for section in self.sections:
                if section.level == level and not section.is_empty:
                    found.setdefault((section.level, section.topic), []).append(section)
        return [
            Topic(slug(title), title, level, tuple(own)) for (level, title), own in found.items()
        ]

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All figures, in order."""
        own = (self.headline.figure,) if self.headline.figure else ()
        return (*own, *(figure for section in self.sections for figure in section.figures))


def with_legends(sections: Iterable[Section]) -> tuple[Section, ...]:
    """Return the sections with each sentence of a legend as a note of the first table of its topic
    that has it, and without all others."""
    told: set[tuple[str, str]] = set()
    found = []
    for section in sections:
        tables = []
        for table in section.tables:
            new = [text for text in table.legend if (section.topic, text) not in told]
            told |= {(section.topic, text) for text in new}
            notes = (*new, *table.notes)
            tables.append(msgspec.structs.replace(table, notes=notes, legend=()))
        found.append(msgspec.structs.replace(section, tables=tuple(tables)))
    return tuple(found)


def there(items: Iterable[Table | None]) -> tuple[Table, ...]:
    """Return the tables that are not None."""
    return tuple(item for item in items if item is not None)


def drawn(items: Iterable[Figure | None]) -> tuple[Figure, ...]:
    """Return the figures that are not None."""
    return tuple(item for item in items if item is not None)


def slug(text: str) -> str:
    """Return a text as an id: `Time and memory` is `time-and-memory`."""
    return "-".join("".join(c if c.isalnum() else " " for c in text.lower()).split())
