"""Plot of accuracy by task: a dot for each mechanism, a line for each baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lra.core.catalogue import CONTROLS
from lra.report.accuracy import Accuracies
from lra.report.baselines import CONTROL_NAMES
from lra.report.model import Figure, Row, Table
from lra.report.plots.lines import WIDTH
from lra.report.plots.names import short_names
from lra.report.plots.style import INK, MUTED, Looks, draw
from lra.report.words import listing, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINES: tuple[tuple[str, Any], ...] = (
    ("#7a5195", (0, (4, 2))),
    ("#59636e", (0, (1, 1.5))),
    ("#7f6000", (0, (5, 1.5, 1, 1.5))),
    ("#3a6b35", (0, (3, 1, 1, 1, 1, 1))),
)
_ACROSS = 5
"""Number of panels side by side."""
_LETTERS = 80
"""Letters that fit in titles side by side."""


def accuracy_figure(table: Table, scores: Accuracies, looks: Looks) -> Figure | None:
    """Return the dots of a table of accuracies; None below two mechanisms with a figure or two
    tasks, where the table shows as much."""
    known = [row for row in table.rows if any(value.number is not None for value in row.values)]
    rows = [row for row in known if row.mechanism and row.mechanism not in CONTROLS]
    if len(rows) < 2 or len(scores.columns) < 2:
        return None
    lines = [row for row in known if row not in rows]
    columns = scores.columns
    down, across = -(-len(columns) // _ACROSS), min(len(columns), _ACROSS)
    titles = shortened([column.title for column in columns], _LETTERS // across)

    def paint(figure: Any) -> None:
        from matplotlib.ticker import MaxNLocator

        panels = figure.subplots(down, across, squeeze=False, sharey=True)
        for place, axes in enumerate(panels.flat):
            if place >= len(columns):
                axes.set_visible(False)
                continue
            axes.xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
            _dots(axes, rows, place, looks)
            for (colour, dash), row in zip(_looks(lines, looks), lines, strict=True):
                if (number := row.values[place].number) is not None:
                    axes.axvline(100 * number, color=colour, linestyle=dash, linewidth=1.3)
            axes.set_title(titles[place])
            axes.set_ylim(len(rows) - 0.4, -0.6)
        for axes in panels[:, 0]:
            axes.set_yticks(range(len(rows)), short_names(rows, 28))
            for label, row in zip(axes.get_yticklabels(), rows, strict=True):
                label.set_color(MUTED if row.origin == "reference" else INK)
        for axes in panels[-1]:
            axes.set_xlabel("test accuracy, %")
        _legend(figure, lines, looks)

    hollow = " Hollow: reference." if any(row.origin == "reference" for row in rows) else ""
    return Figure(
        id=table.id,
        title="Accuracy by task",
        alt=f"Dot plot of the test accuracy of {listing([row.title for row in rows])} on "
        f"{listing([column.title for column in columns])}; the table has the figures.",
        caption=f"Lines are baselines.{hollow}",
        svg=draw(paint, WIDTH, 1.35 + down * (0.55 + 0.2 * len(rows))),
    )


def _dots(axes: Axes, rows: Sequence[Row], place: int, looks: Looks) -> None:
    for height, row in enumerate(rows):
        number = row.values[place].number
        if number is None:
            continue
        style = looks.of(row.mechanism, row.variant)
        axes.plot(
            [100 * number],
            [height],
            style.marker,
            color=style.colour,
            markerfacecolor="white" if row.origin == "reference" else style.colour,
            markersize=6,
            zorder=3,
        )


def _looks(rows: Sequence[Row], looks: Looks) -> list[tuple[str, Any]]:
    """Colours and dashes of baselines: controls in their own, the others in order."""
    others = iter(_LINES * len(rows))
    own = [looks.of(row.mechanism) if row.mechanism else None for row in rows]
    return [(look.colour, look.dash) if look else next(others) for look in own]


def _legend(figure: Any, rows: Sequence[Row], looks: Looks) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=colour, linestyle=dash, linewidth=1.3)
        for colour, dash in _looks(rows, looks)
    ]
    if handles:
        names = [CONTROL_NAMES.get(row.mechanism, "") for row in rows]
        labels = [f"{n} ({r.label})" if n else r.label for n, r in zip(names, rows, strict=True)]
        figure.legend(
            handles, shortened(labels, 28), loc="outside lower center", ncols=4, frameon=False
        )
