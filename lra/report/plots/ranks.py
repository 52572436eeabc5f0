"""The critical-difference diagram: average ranks on a line, joined where not told apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from lra.report.model import Figure
from lra.report.plots.lines import WIDTH
from lra.report.plots.style import INK, MUTED, Looks, draw
from lra.report.rows import Key
from lra.report.statistics import rank_name
from lra.report.words import count, listing, shortened
from lra.verdict.accuracy import Ranks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINE = 0.27
"""Inches between two names."""


def ranks_figure(id: str, ranks: Ranks, keys: Sequence[Key], looks: Looks) -> Figure:
    """Return the diagram of Demsar (2006)."""
    by_name = {rank_name(key): key for key in keys}
    order = list(ranks.average)
    labels = shortened([by_name[name].row(()).title for name in order], 40)
    bars = joined(ranks)
    half = -(-len(order) // 2)
    depth = 0.35 * len(bars) + 0.6

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        axes.set_axis_off()
        worst = len(order)
        axes.set_xlim(1 - 0.62 * (worst - 1), worst + 0.62 * (worst - 1))
        axes.set_ylim(-depth - half, 1.9)
        _scale(axes, worst, ranks.critical)
        for height, (low, high) in enumerate(bars):
            at = -0.35 * (height + 1)
            axes.plot([low, high], [at, at], color=INK, linewidth=3.5, solid_capstyle="butt")
        for place, (name, label) in enumerate(zip(order, labels, strict=True)):
            left, key = place < half, by_name[name]
            down = -depth - (place if left else len(order) - 1 - place)
            side = 1 - 0.06 * (worst - 1) if left else worst + 0.06 * (worst - 1)
            rank, look = ranks.average[name], looks.of(key.mechanism, key.variant)
            axes.plot([rank, rank, side], [0, down, down], color=look.colour, linewidth=1.0)
            axes.plot([rank], [0], look.marker, color=look.colour, markersize=5, zorder=3)
            axes.annotate(
                f"{label}  {rank:.1f}" if left else f"{rank:.1f}  {label}",
                (side, down),
                xytext=(-4 if left else 4, 0),
                textcoords="offset points",
                ha="right" if left else "left",
                va="center",
                color=MUTED if key.origin == "reference" else INK,
            )

    every = all(ranks.differ(one, other) for one, other in combinations(order, 2))
    apart = "All are told apart." if every else "Bars join ranks that are not told apart."
    return Figure(
        id=id,
        title="Average ranks over tasks",
        alt=f"Critical-difference diagram of {listing(labels)}; the table has their ranks.",
        caption=f"1 is the most accurate; over {count(ranks.tasks, 'task')}. {apart} CD: the "
        "critical difference (Nemenyi, 5 %).",
        svg=draw(paint, WIDTH, 0.6 + _LINE * (1.9 + depth + half)),
    )


def joined(ranks: Ranks) -> list[tuple[float, float]]:
    """Return the largest groups of neighbours that are not told apart, as their outer ranks."""
    order = ranks.average
    found: list[tuple[float, float]] = []
    for start in order:
        alike = [n for n in order if order[n] >= order[start] and not ranks.differ(start, n)]
        low, high = order[start], max(order[n] for n in alike)
        if high > low and not any(a <= low and high <= b for a, b in found):
            found.append((low, high))
    return found


def _scale(axes: Axes, worst: int, critical: float) -> None:
    axes.plot([1, worst], [0, 0], color=MUTED, linewidth=1)
    step = 1 if worst <= 12 else 2
    for rank in range(1, worst + 1, step):
        axes.plot([rank, rank], [0, 0.12], color=MUTED, linewidth=1)
        axes.annotate(
            str(rank), (rank, 0.12), xytext=(0, 2), textcoords="offset points", ha="center",
            va="bottom", color=MUTED,
        )  # fmt: skip
    end = min(1 + critical, worst + 0.5 * (worst - 1))
    axes.plot([1, end], [1.25, 1.25], color=INK, linewidth=1.6)
    axes.annotate(
        f"CD {critical:.1f}", ((1 + end) / 2, 1.25), xytext=(0, 3), textcoords="offset points",
        ha="center", va="bottom", color=INK,
    )  # fmt: skip
