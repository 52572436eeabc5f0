"""Tables, sections and the report itself as plain values, and tables as Markdown and plain text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import TypeVar

import msgspec

from lra.report.entries import Origin
from lra.report.pictures.style import Look
from lra.report.words import apart, count, shortened

_Item = TypeVar("_Item")


class Cell(msgspec.Struct, frozen=True):
    """One place of a table."""

    text: str
    note: str = ""
    """The smaller second line: a spread, a ratio, the reason for a word."""
    value: float | None = None
    """What `text` rounds: shares, seconds, bytes, joules, positions or ratios; None where `text` is
    a word."""
    spread: float | None = None
    ratio: float | None = None
    """To exact attention in the same run."""
    strong: bool = False
    """Best of its column, and apart from the next by more than the spread."""
    busy: bool = False
    """Whether the machine was busy while it was taken."""
    ratio_busy: bool = False
    """Likewise while it was taken, or what `ratio` is to."""

    @property
    def marked(self) -> str:
        """The text, behind the mark of a busy machine where it was one."""
        return f"!{self.text}" if self.busy else self.text


class Row(msgspec.Struct, frozen=True):
    """One line of a table."""

    label: str
    cells: tuple[Cell, ...]
    note: str = ""
    """Where the row comes from, if not from the run."""
    group: str = ""
    mechanism: str = ""
    """With the variant it gives the look; empty for other rows."""
    variant: str = ""
    """Mechanism with what sets it apart from others of that name, as in the entries."""
    origin: Origin = "run"

    @property
    def title(self) -> str:
        """Label and note on one line."""
        return f"{self.label} ({self.note})" if self.note else self.label


class Table(msgspec.Struct, frozen=True, dict=True):
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
    unit: str = ""
    """Of the times, sizes or energies of calls: that of all figures, such as `ms`."""

    def row(self, variant: str, origin: Origin) -> Row | None:
        """Return the row of a mechanism's variant, if there is one."""
        return self._by_variant.get((variant, origin))

    @cached_property
    def _by_variant(self) -> dict[tuple[str, Origin], Row]:
        """The first row of each."""
        return {(row.variant, row.origin): row for row in reversed(self.rows)}

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


class Section(msgspec.Struct, frozen=True):
    """A heading with what stands under it."""

    id: str
    title: str
    text: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()

    def with_tables(self, tables: Iterable[Table | None]) -> Section:
        """Return it with those of the tables that there are."""
        there = tuple(table for table in tables if table is not None)
        return msgspec.structs.replace(self, tables=there)

    def with_figures(self, figures: Iterable[Figure | None]) -> Section:
        """Return it with those of the figures that there are."""
        there = tuple(figure for figure in figures if figure is not None)
        return msgspec.structs.replace(self, figures=there)


class Report(msgspec.Struct, frozen=True):
    """The whole page, before it is HTML or Markdown."""

    title: str
    subtitle: str
    answer: tuple[str, ...]
    sections: tuple[Section, ...]
    footer: str
    caveats: tuple[str, ...] = ()
    """What to know before the answer is quoted."""
    looks: dict[tuple[str, str], Look] = {}
    """Of each mechanism and variant."""

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All figures in order."""
        return tuple(figure for section in self.sections for figure in section.figures)


def sorted_groups(
    items: Sequence[_Item], key: Callable[[_Item], tuple[object, ...]]
) -> Iterator[tuple[tuple[object, ...], list[_Item]]]:
    """Yield the items with equal keys together, keys in order."""
    keyed = sorted(((key(item), item) for item in items), key=itemgetter(0))
    for found, group in groupby(keyed, itemgetter(0)):
        yield found, [item for _, item in group]


def names(rows: Sequence[Row]) -> list[str]:
    """Return the labels for a plot, with their notes only where two rows share a label."""
    labels = Counter(row.label for row in rows)
    return [row.title if labels[row.label] > 1 else row.label for row in rows]


def short_names(rows: Sequence[Row], most: int = 28) -> list[str]:
    """Return the same in at most `most` characters each, which a plot has room for.

    Where a name is longer, rows of its mechanism have only the settings that tell them apart.
    """
    found = names(rows)
    for mechanism in {row.mechanism for row in rows}:
        # A title with more than mechanism and settings, such as an origin, stays as it is.
        head = f"{mechanism} ("
        own = [n for n, row in enumerate(rows) if found[n] == row.variant]
        own = [n for n in own if found[n].startswith(head) and found[n].endswith(")")]
        if any(len(found[n]) > most for n in own):
            settings = apart([found[n][len(head) : -1].split(", ") for n in own])
            for n, differing in zip(own, settings, strict=True):
                found[n] = f"{mechanism} ({differing})" if differing else mechanism
    return shortened(found, most)


def cut_note(rows: Sequence[Row], most: int = 28, table: str = "the table") -> str:
    """Return what a caption adds where names are cut short, and which table has them in full."""
    cut = any(len(name) > most for name in names(rows))
    return f" Long names are cut short; {table} has them in full." if cut else ""


def hollow_note(rows: Iterable[Row]) -> str:
    """Return what a caption adds where reference rows are drawn hollow; empty where none is."""
    return " Hollow: reference." if any(row.origin == "reference" for row in rows) else ""


def one_line(cell: Cell) -> str:
    """Return a cell's text with its note in brackets."""
    return f"{cell.marked} ({cell.note})" if cell.note else cell.marked


def markdown(table: Table) -> str:
    """Return a table as GitHub Markdown; the best of a column is bold."""
    from tabulate import tabulate

    def body(cell: Cell) -> str:
        text = escape(one_line(cell))
        return f"**{text}**" if cell.strong else text

    rows = [[escape(row.title), *(body(cell) for cell in row.cells)] for row in table.rows]
    return tabulate(
        rows,
        headers=[escape(text) for text in (table.corner, *table.columns)],
        tablefmt="pipe",
        colalign=["left"] + ["right" if table.numeric else "left"] * len(table.columns),
        disable_numparse=True,
    )


def plain_text(table: Table, most: int | None = None) -> str:
    """Return a table as aligned columns for a terminal, below its title and what it quotes.

    Of at most so many rows. Below it stands what its `~` means, where it has one.
    """
    from tabulate import tabulate

    aligned = tabulate(
        [[row.title, *(one_line(cell) for cell in row.cells)] for row in table.rows[:most]],
        headers=[table.corner, *table.columns],
        tablefmt="simple",
        colalign=["left"] + ["right" if table.numeric else "left"] * len(table.columns),
        disable_numparse=True,
    )
    left = len(table.rows) - len(table.rows[:most])
    more = f"\n... and {count(left, 'more row', 'more rows')}" if left else ""
    legend = "".join(f"\n\n{note}" for note in table.notes if note.startswith("~"))
    heading = f"{table.title}. {table.caption}".strip()
    return f"{heading}\n\n{aligned}{more}{legend}"


def escape(text: str) -> str:
    r"""Return text that Markdown shows as it is, inside a table too.

    Underscores inside a word mean nothing in GitHub's Markdown and stay readable, as do most `&`.
    """
    text = re.sub(r"([\\`*|<>\[\]~$])", r"\\\1", text)
    text = re.sub(r"&(?=#?\w+;)", r"\\&", text)
    # At its beginning a heading, a list or a rule.
    text = re.sub(r"^(\s*\d*)(?=[#+.)-]+(\s|$))", r"\1\\", text)
    return re.sub(r"(?<![^\W_])_|_(?![^\W_])", r"\\_", text)
