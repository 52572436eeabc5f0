"""Dot plot of the share of the machine's limit at the longest length, best on top."""

from __future__ import annotations

from typing import Any

from lra.report.costs.tables import EfficiencyTables, call_words
from lra.report.pictures.lines import LETTERS, LINE, WIDTH
from lra.report.pictures.style import MUTED, Looks, draw
from lra.report.rows import RowKey
from lra.report.table import Figure, Row, Table, cut_note, hollow_note, names, short_names
from lra.report.words import figures, listing


def limit_figure(costs: EfficiencyTables, looks: Looks) -> Figure | None:
    """Return a panel for each of the tables of shares; None where there are none.

    Panels share their rows, in the order of the first that has a figure for them.
    """
    if not costs.limit:
        return None
    longest = max(int(length) for table in costs.limit.values() for length in table.columns)
    shares = {mode: _shares(table, longest) for mode, table in costs.limit.items()}
    found: dict[RowKey, Row] = {}
    for mode, known in shares.items():
        by_key = {_key(row): row for row in costs.limit[mode].rows}
        for key in sorted(known, key=known.__getitem__, reverse=True):
            found.setdefault(key, by_key[key])
    if not found:
        return None
    rows = list(found.values())
    texts = short_names(rows, LETTERS)
    height = 0.9 + LINE * len(rows)

    def paint(figure: Any) -> None:
        panels = figure.subplots(1, len(shares), sharex=True, sharey=True, squeeze=False)[0]
        for axes, (mode, known) in zip(panels, shares.items(), strict=True):
            axes.set_title(call_words(mode))
            for place, (key, row) in enumerate(found.items()):
                if key in known:
                    _dot(axes, 100 * known[key], place, row, looks)
            axes.axvline(100.0, color=MUTED, linewidth=0.8, zorder=1)
            axes.set_xlabel("% of the limit")
        panels[0].set_xlim(
            0, max(105.0, 105 * max(max(s.values(), default=0) for s in shares.values()))
        )
        panels[0].set_ylim(len(rows) - 0.5, -0.5)
        panels[0].set_yticks(range(len(rows)), texts)

    best = []
    for mode, known in shares.items():
        if known:
            top = max(known, key=known.__getitem__)
            share = figures(100 * known[top], most=2)
            best.append(f"{call_words(mode)}: {found[top].label} {share} %")
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


def _key(row: Row) -> RowKey:
    return (row.origin, row.variant)


def _shares(table: Table, length: int) -> dict[RowKey, float]:
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
