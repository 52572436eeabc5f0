"""Plots of time and memory against length, on two logarithmic axes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from lra.report.costs.tables import EfficiencyTables, call_words
from lra.report.pictures.lines import (
    LETTERS,
    WIDTH,
    Name,
    height_of,
    line_style,
    log_axes,
    margin_of,
    points,
    tick_of,
    write_names,
)
from lra.report.pictures.style import Looks, draw
from lra.report.table import Figure, Table, cut_note, hollow_note, names, short_names
from lra.report.words import Unit, is_failure, listing
from lra.verdict.growth import LEAST, slope

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def cost_figure(
    costs: EfficiencyTables, metric: Literal["latency", "memory"], looks: Looks
) -> Figure | None:
    """Return one panel per mode; None if nothing was measured at two lengths.

    The time of a decoding step stands in a figure of its own, beside the state.
    """
    tables = costs.latency if metric == "latency" else costs.memory
    word = "time" if metric == "latency" else "peak memory"
    return length_figure(
        f"{metric}-{costs.number}",
        f"{word.capitalize()} against length",
        {
            f"{word} of a {call_words(mode)}": (table, "s" if metric == "latency" else "B")
            for mode, table in tables.items()
            if (metric, mode) != ("latency", "decode")
        },
        looks,
    )


def decode_figure(costs: EfficiencyTables, looks: Looks) -> Figure | None:
    """Return the time of one token and the size of the state against the context's length."""
    state = costs.state.get("decode")
    if state is None:
        return None
    return length_figure(
        f"decoding-{costs.number}",
        "Decoding against length of the context",
        {
            "time of one token": (costs.latency["decode"], "s"),
            "state after the prompt": (state, "B"),
        },
        looks,
        axis="context length",
    )


def length_figure(
    id: str,
    title: str,
    tables: Mapping[str, tuple[Table, Unit]],
    looks: Looks,
    axis: str = "sequence length",
) -> Figure | None:
    """Return a panel for each of the tables, by its title; None if all have a single length."""
    drawn = {name: (_drawn(t), unit) for name, (t, unit) in tables.items() if _values(t)}
    if not any(len(table.columns) > 1 for table, _ in drawn.values()):
        return None
    height = height_of(max(len(table.rows) for table, _ in drawn.values()))
    rows = [row for table, _ in drawn.values() for row in table.rows]
    margin = margin_of(short_names(rows, LETTERS))
    panel = max(1.5, WIDTH / len(drawn) - margin)

    def paint(figure: Any) -> None:
        # Every panel has a narrow neighbour for the names of its lines.
        grid = figure.subplots(1, 2 * len(drawn), width_ratios=[panel, margin] * len(drawn))
        for name, axes, side in zip(drawn, grid[::2], grid[1::2], strict=True):
            axes.set_title(name)
            axes.set_xlabel(axis)
            labels = _panel(axes, *drawn[name], looks)
            write_names(side, axes.get_ylim(), labels, height, margin)

    cells = [cell for row in rows for cell in row.cells]
    busy = any(cell.busy for cell in cells)
    failed = any(is_failure(cell.text) for cell in cells)
    return Figure(
        id=id,
        title=title,
        alt=f"Log-log plot of {listing([*drawn])} against {axis} for "
        f"{listing([*dict.fromkeys(names(rows))])}; the tables have the figures.",
        caption="After each name: the exponent of length in a straight-line fit to its points."
        + hollow_note(rows)
        + (" A cross at the top: a failure, such as OOM." if failed else "")
        + (" Figures of a busy machine (! in the table) are drawn as measured." if busy else "")
        + cut_note(rows, LETTERS),
        svg=draw(paint, WIDTH, height),
    )


def _drawn(table: Table) -> Table:
    """The table without rows that have neither a figure nor a failure."""
    rows = tuple(
        row for row in table.rows if any(cell.value or is_failure(cell.text) for cell in row.cells)
    )
    return msgspec.structs.replace(table, rows=rows)


def _values(table: Table) -> list[float]:
    return [value for row in table.rows for _, value in points(table, row)]


def _panel(axes: Axes, table: Table, unit: Unit, looks: Looks) -> list[Name]:
    """Draw a table's lines and crosses; return the names to write beside them."""
    lengths = [int(length) for length in table.columns]
    log_axes(axes, lengths, _values(table), lambda value: tick_of(value, unit))
    _make_room(axes, table)
    labels: list[Name] = []
    crosses: Counter[str] = Counter()
    for row, name in zip(table.rows, short_names(table.rows, LETTERS), strict=True):
        known, style = points(table, row), line_style(row, looks[row.mechanism, row.variant])
        if known:
            axes.plot(*zip(*known, strict=True), **style)
        for length, cell in zip(table.columns, row.cells, strict=True):
            if is_failure(cell.text):
                height = 1.03 - 0.045 * (crosses[length] + 1)
                crosses[length] += 1
                top = axes.get_xaxis_transform()
                axes.plot([int(length)], [height], "x", color=style["color"], transform=top)
        value = known[-1][1] if known else axes.get_ylim()[1]
        labels.append(Name(value, f"{name}{_growth(known)}", style))
    return labels


def _make_room(axes: Axes, table: Table) -> None:
    """Move the top up by what crosses need, one above the other."""
    crosses = max(
        sum(is_failure(row.cells[n].text) for row in table.rows) for n in range(len(table.columns))
    )
    values = _values(table)
    room = (max(values) / min(values)) ** 0.08 if max(values) > min(values) else 1.5
    axes.set_ylim(top=axes.get_ylim()[1] * room**crosses)


def _growth(known: Sequence[tuple[int, float]]) -> str:
    """The exponent of length in a least-squares line through the logarithms."""
    if len(known) < LEAST:
        return ""
    # No sign before a zero.
    return f"  n^{round(slope(dict(known)), 1) + 0.0:.1f}"
