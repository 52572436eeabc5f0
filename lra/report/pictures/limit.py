"""Dot plot of the share of the machine's limit at the longest length, best on top."""

from __future__ import annotations

from typing import Any

from lra.report.costs.tables import EfficiencyTables
from lra.report.pictures.lines import LETTERS, LINE, WIDTH
from lra.report.pictures.style import MUTED, Looks, draw
from lra.report.table import Figure, Row, Table, cut_note, hollow_note, names, short_names
from lra.report.words import figures, listing


def limit_figure(costs: EfficiencyTables, looks: Looks) -> Figure | None:
    """Return a panel for each of the tables of shares; None where there are none.

    Panels share their rows, in the order of the first that has a figure for them.
    """
    tables = costs.limit
    if not tables:
        return None
    lengths = {int(length) for table in tables for length in table.columns}
    longest = max(lengths)
    shares = [_shares(table, longest) for table in tables]
    found: dict[tuple[str, str], Row] = {}
    for table, known in zip(tables, shares, strict=True):
        ranked = sorted((key for key in known), key=lambda key: -known[key])
        found |= {key: row for key in ranked for row in table.rows if _key(row) == key} | found
    if not found:
        return None
    rows = list(found.values())
    texts = short_names(rows, LETTERS)
    height = 0.9 + LINE * len(rows)

    def paint(figure: Any) -> None:
        panels = figure.subplots(1, len(tables), sharex=True, sharey=True, squeeze=False)[0]
        for axes, table, known in zip(panels, tables, shares, strict=True):
            # `Share of the machine's limit in a forward pass, in percent`
            axes.set_title(table.title.rpartition(" in a ")[2].rpartition(",")[0])
            for place, (key, row) in enumerate(found.items()):
                if key in known:
                    _dot(axes, 100 * known[key], place, row, looks)
            axes.axvline(100.0, color=MUTED, linewidth=0.8, zorder=1)
            axes.set_xlabel("% of the limit")
        panels[0].set_xlim(0, max(105.0, 105 * max(max(s.values(), default=0) for s in shares)))
        panels[0].set_ylim(len(rows) - 0.5, -0.5)
        panels[0].set_yticks(range(len(rows)), texts)

    best = [
        f"{table.title.rpartition(' in a ')[2].rpartition(',')[0]}: "
        f"{found[top].label} {figures(100 * known[top], most=2)} %"
        for table, known in zip(tables, shares, strict=True)
        if known
        for top in [max(known, key=lambda key: known[key])]
    ]
    return Figure(
        id=f"limit-{costs.number}",
        title=f"Share of the machine's limit at length {longest}",
        alt=f"Dot plot of the share of the machine's limit at length {longest} for "
        f"{listing(names(rows))}. Highest: {listing(best)}.",
        caption="The line: the limit. Best first; what has no figure at this length has no dot."
        + hollow_note(rows)
        + cut_note(rows, LETTERS),
        svg=draw(paint, WIDTH, height),
    )


def _key(row: Row) -> tuple[str, str]:
    return (row.origin, row.variant)


def _shares(table: Table, length: int) -> dict[tuple[str, str], float]:
    if str(length) not in table.columns:
        return {}
    place = table.columns.index(str(length))
    cells = {_key(row): row.cells[place].value for row in table.rows}
    return {key: value for key, value in cells.items() if value is not None}


def _dot(axes: Any, percent: float, place: int, row: Row, looks: Looks) -> None:
    look = looks[row.mechanism, row.variant]
    face = "white" if row.origin == "reference" else look.colour
    axes.plot(
        [percent],
        [place],
        look.marker,
        color=look.colour,
        markerfacecolor=face,
        markersize=6,
        zorder=3,
    )
