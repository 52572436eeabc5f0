"""A report as plain values: sections with tables and figures, before it is a page or a file."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Literal

import msgspec

from lra.report.load.kept import Origin

Level = Literal["results", "appendix"]
"""results: read by whoever has an afternoon. appendix: folded, looked up."""


class Value(msgspec.Struct, frozen=True):
    """One place of a table."""

    text: str
    note: str = ""
    """The smaller second line: a spread, a ratio, the reason for a word."""
    number: float | None = None
    """What `text` rounds, and the table is sorted by; None where `text` is a word."""
    best: bool = False
    """Best of its column, and told apart from the next."""
    disturbed: bool = False
    """Whether the machine was busy while it was taken."""

    @property
    def marked(self) -> str:
        """The text, behind the mark of a busy machine where it was one."""
        return f"!{self.text}" if self.disturbed else self.text

    @property
    def line(self) -> str:
        """The text with its note in brackets."""
        return f"{self.marked} ({self.note})" if self.note else self.marked


class Row(msgspec.Struct, frozen=True):
    """One line of a table."""

    label: str
    values: tuple[Value, ...]
    mechanism: str = ""
    """Gives the row its swatch and links it to the mechanism's page; empty for other rows."""
    variant: str = ""
    """Id of the mechanism with its configuration."""
    origin: Origin = "run"
    group: str = ""
    """Heading above the row and its neighbours of the same group."""

    @property
    def title(self) -> str:
        """The label, and whether it is a reference's."""
        return f"{self.label} (reference)" if self.origin == "reference" else self.label


class Table(msgspec.Struct, frozen=True):
    """Rows, columns and what they mean."""

    id: str
    title: str
    caption: str
    corner: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    numeric: bool = True
    """False for tables of text, which read better left-aligned."""

    def groups(self) -> list[tuple[str, list[Row]]]:
        """Return the rows by group, in order."""
        return [(group, list(rows)) for group, rows in groupby(self.rows, lambda row: row.group)]


class Figure(msgspec.Struct, frozen=True):
    """A drawing and what it shows in words."""

    id: str
    title: str
    alt: str
    caption: str
    svg: str


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """What one topic has to say of one setting."""

    topic: str
    """Heading that sections of one topic share: `Accuracy`, `Time and memory`."""
    setting: str = ""
    """What sets it apart from others of its topic; the first of a topic is shown, others folded."""
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
    """At most five."""
    figure: Figure | None = None
    leaderboard: Table | None = None
    caveats: tuple[str, ...] = ()
    """What to know before the sentences are quoted."""


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
        """The sections by topic, results before the appendix, in order of first appearance."""
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
        """All figures in order."""
        own = (self.headline.figure,) if self.headline.figure else ()
        return (*own, *(figure for section in self.sections for figure in section.figures))


def there(items: Iterable[Table | None]) -> tuple[Table, ...]:
    """Return those of the tables that there are."""
    return tuple(item for item in items if item is not None)


def drawn(items: Iterable[Figure | None]) -> tuple[Figure, ...]:
    """Return those of the figures that there are."""
    return tuple(item for item in items if item is not None)


def slug(text: str) -> str:
    """Return a text as an id: `Time and memory` is `time-and-memory`."""
    return "-".join("".join(c if c.isalnum() else " " for c in text.lower()).split())
