"""Cost curves of one mechanism: time and memory as multiples of exact attention's, by length."""

from __future__ import annotations

import math
from typing import Any

from lra.core.catalogue import EXACT
from lra.core.escape import escape_controls
from lra.report.analysis import Analysis
from lra.report.leaderboard import Leaderboard
from lra.report.load.frame import PEAK_MEMORY
from lra.report.model import Figure
from lra.report.plots.lines import ticks_of
from lra.report.plots.style import COLOURS, INK, draw
from lra.report.words import TIMES

_WIDTH, _HEIGHT = 10.4, 3.8
_MARKER = 1.1
"""Factor between a point and the frame, so that the frame does not cut the point's marker."""


def _tick_beyond(value: float) -> float:
    """Return the next of 1, 2, 5, 10, 20 and so on."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1.0, 2.0, 5.0, 10.0) if step * power > value)


def cost_curves(analysis: Analysis, board: Leaderboard, name: str) -> Figure | None:
    """Return a line for each cost measured at two lengths or more; None without any."""
    lines: dict[str, list[tuple[int, float]]] = {}
    memory = PEAK_MEMORY[board.setting.device] if board.setting else ""
    wanted = [
        (board.setting, "train", "latency", "time of training"),
        (board.setting, "forward", "latency", "time of a forward pass"),
        (board.setting, "train", memory, "memory of training"),
        (board.decoding, "decode", "latency", "time of decoding"),
    ]
    pooled = analysis.costs.pooled
    for setting, mode, metric, words in wanted:
        if setting is None:
            continue
        own = pooled[
            (pooled["setting"] == setting.id)
            & (pooled["mode"] == mode)
            & (pooled["metric"] == metric)
            & (pooled["mechanism"] == name)
            & pooled["ratio"].notna()
        ]
        by_variant = [group for _, group in own.groupby(["origin", "variant"])]
        if by_variant:
            most = max(by_variant, key=lambda group: (group["origin"].iloc[0] == "run", len(group)))
            points = sorted(zip(most["length"].tolist(), most["ratio"].tolist(), strict=True))
            if len(points) > 1:
                lines[words] = points
    if not lines or name == EXACT:
        return None

    def paint(figure: Any) -> None:
        from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

        axes = figure.subplots()
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.axhline(1.0, color=INK, linewidth=1.2)
        for colour, (words, points) in zip(COLOURS, lines.items(), strict=False):
            axes.plot(*zip(*points, strict=True), "o-", color=colour, label=words)
        lengths = sorted({n for points in lines.values() for n, _ in points})
        axes.xaxis.set_major_locator(FixedLocator(ticks_of(lengths)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{round(x):,}"))
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ratios = [ratio for points in lines.values() for _, ratio in points]
        low, high = min(1.0, *ratios), max(1.0, *ratios)
        axes.set_ylim(1 / _tick_beyond(_MARKER / low), _tick_beyond(_MARKER * high))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_minor_locator(NullLocator())
        axes.set_xlabel("sequence length")
        axes.set_ylabel(f"{TIMES} {EXACT}")
        figure.legend(loc="outside right upper", frameon=False)

    return Figure(
        id="costs",
        title=f"Costs over those of {EXACT}",
        alt=f"Log-log plot of {', '.join(lines)} of {escape_controls(name)} over {EXACT}'s against "
        "length.",
        caption=f"Below the line at 1 it costs less than {EXACT}.",
        svg=draw(paint, _WIDTH, _HEIGHT),
    )
