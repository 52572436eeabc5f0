"""Plot of validation accuracy while learning, one panel per task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lra.core.cells import QualityCell
from lra.report.entries import protocol_hash
from lra.report.pictures.lines import WIDTH
from lra.report.pictures.style import MUTED, Looks, draw
from lra.report.quality.tables import QualityTable
from lra.report.rows import EXACT, NO_MIXING
from lra.report.select import Selection
from lra.report.table import Figure, Row, cut_note, names, short_names
from lra.report.words import listing, raised, shortened

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_ACROSS = 3
_PLAIN = 1.6
"""Points that a line is wide, but for the thick and the thin ones."""
_ANCHORS = {EXACT: EXACT, NO_MIXING: "no mixing"}
"""What others are compared with, in words."""
_ROOMY = 12
"""With more lines than this none is thick and none has a band, or dashes and markers drown."""
_LETTERS = 84
"""Letters that stand side by side in titles or in the legend."""


def learning_figure(quality: QualityTable, selection: Selection, looks: Looks) -> Figure | None:
    """Return validation accuracy against steps; None if no record of the table has a curve."""
    points = _points(quality, selection)
    if points.empty:
        return None
    rows = [row for row in quality.table.rows if (points["row"] == row.title).any()]
    columns = [c for c in quality.columns if (points["protocol"] == c.protocol).any()]
    across, down = min(_ACROSS, len(columns)), -(-len(columns) // _ACROSS)
    titles = shortened([column.title for column in columns], _LETTERS // across)
    labels = short_names(rows)
    ncols = max(1, min(4, _LETTERS // max(map(len, labels))))

    def paint(figure: Any) -> None:
        panels = list(figure.subplots(down, across, squeeze=False).flat)
        for axes, column, title in zip(panels, columns, titles, strict=False):
            axes.set_title(title)
            _panel(axes, points[points["protocol"] == column.protocol], rows, looks)
        for axes in panels[len(columns) :]:
            axes.set_visible(False)
        for axes in panels[max(0, len(columns) - across) : len(columns)]:
            axes.set_xlabel("training step")
        figure.supylabel("validation accuracy, %", fontsize=9.5, color=MUTED)
        _legend(figure, rows, labels, looks, ncols)

    several = points.groupby(["row", "protocol"])["seed"].nunique().max() > 1
    bands = ", bands of one standard deviation" if len(rows) <= _ROOMY else ""
    return Figure(
        id=f"learning-{quality.number}",
        title=f"Learning curves {quality.where}",
        alt="Line plots of validation accuracy against training steps on "
        f"{listing([c.title for c in columns])} for {listing(names(rows))}.",
        caption=_reading(rows, f"Means over seeds{bands}." if several else "")
        + cut_note(rows, table="the table of accuracies"),
        svg=draw(paint, WIDTH, 0.8 + 2.3 * down + 0.24 * -(-len(rows) // ncols)),
    )


def _reading(rows: Sequence[Row], seeds: str) -> str:
    """What the widths of the lines mean, of those that are drawn, and over what they are means."""
    widths = [_width(row, rows) for row in rows]
    parts, plain = [], ""
    if max(widths) > _PLAIN:
        parts.append("thick: the mechanisms compared")
        anchors = [r.mechanism for r, width in zip(rows, widths, strict=True) if width == _PLAIN]
        plain = listing([words for name, words in _ANCHORS.items() if name in anchors])
    parts += [f"thin: {plain}"] if plain else []
    parts += [f"{'thinnest' if plain else 'thin'}: reference"] if min(widths) < _PLAIN else []
    told = "; ".join(parts)
    told = f"{raised(told)}." if told else ""
    return " ".join(filter(None, [told, seeds, "A point for each validation."]))


def _points(quality: QualityTable, selection: Selection) -> pd.DataFrame:
    """One validation per line, of the rows that the table shows."""
    import pandas as pd

    protocols = {column.protocol for column in quality.columns}
    found = []
    for kept in selection.kept:
        cell, row = kept.cell, quality.table.row(kept.label, kept.origin)
        if not isinstance(cell, QualityCell) or row is None:
            continue
        protocol = protocol_hash(cell)
        if protocol not in protocols:
            continue
        found += [
            {
                "row": row.title,
                "protocol": protocol,
                "seed": cell.seed,
                "step": point.step,
                "accuracy": 100 * point.validation_accuracy,
            }
            for point in kept.record.curve
        ]
    return pd.DataFrame(found, columns=["row", "protocol", "seed", "step", "accuracy"])


def _panel(axes: Axes, points: pd.DataFrame, rows: Sequence[Row], looks: Looks) -> None:
    by_row = dict(iter(points.groupby("row")))
    for row in rows:
        if row.title not in by_row:
            continue
        style = looks[row.mechanism, row.variant]
        over_seeds = by_row[row.title].groupby("step")["accuracy"]
        middle, spread = over_seeds.mean(), over_seeds.std()
        solid = 0.7 if row.origin == "reference" else 1.0
        axes.plot(
            middle.index,
            middle,
            color=style.colour,
            linestyle=style.dash,
            marker=style.marker,
            markersize=_marker(row, rows),
            markeredgewidth=0,
            linewidth=_width(row, rows),
            alpha=solid,
        )
        if len(rows) <= _ROOMY and spread.notna().any():
            low, high = middle - spread, middle + spread
            axes.fill_between(
                middle.index, low, high, color=style.colour, alpha=0.2 * solid, linewidth=0
            )
    axes.set(xlabel="", ylabel="")
    axes.set_xlim(left=0)
    # A band of one standard deviation may reach above all there is.
    axes.set_ylim(top=min(102.0, axes.get_ylim()[1]))


def _width(row: Row, rows: Sequence[Row]) -> float:
    if row.origin == "reference":
        return 1.0
    asked = row.mechanism not in (EXACT, NO_MIXING)
    return 2.4 if asked and len(rows) <= _ROOMY else _PLAIN


def _marker(row: Row, rows: Sequence[Row]) -> float:
    """Side of a marker, in points."""
    return 2.2 + 1.4 * _width(row, rows)


def _legend(
    figure: Any, rows: Sequence[Row], labels: Sequence[str], looks: Looks, ncols: int
) -> None:
    from matplotlib.lines import Line2D

    styles = [(looks[row.mechanism, row.variant], row) for row in rows]
    handles = [
        Line2D(
            [],
            [],
            color=style.colour,
            linestyle=style.dash,
            marker=style.marker,
            markersize=_marker(row, rows),
            markeredgewidth=0,
            linewidth=_width(row, rows),
        )
        for style, row in styles
    ]
    figure.legend(
        handles, labels, loc="outside lower center", ncols=ncols, frameon=False, handlelength=3
    )
