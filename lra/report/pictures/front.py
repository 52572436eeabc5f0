"""The front of accuracy against time, a panel for each of a few lengths."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lra.report.pictures.circles import (
    faint_note,
    name_circles,
    paint_circles,
    plain_ticks,
    widened,
)
from lra.report.pictures.lines import WIDTH
from lra.report.pictures.style import MUTED, Looks, draw
from lra.report.quality.tables import QualityTable
from lra.report.rows import EXACT, NO_MIXING
from lra.report.table import Figure, cut_note, short_names
from lra.report.tradeoff.front import ON_FRONT, Front, disturbed
from lra.report.tradeoff.points import Circle
from lra.report.words import TIMES, figures, listing, quantity, raised

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST = 4
"""So many lengths are drawn; the table has all."""
_ROW = 3.9
"""Inches that a row of panels is high."""
_LARGEST = 500.0
"""Area of the largest circle, in square points."""
_NAMED = 3
"""So many mechanisms of one ending are named below a panel, else counted."""

_LETTERS = 22
"""The longest name that leaves room for two panels."""


def front_figure(quality: QualityTable, found: Sequence[Front], looks: Looks) -> Figure | None:
    """Return the front at up to four lengths, the shortest and the longest among them; None where
    nothing is placed at any."""
    drawn = _spread(found)
    if not drawn:
        return None
    circles = [circle for front in drawn for circle in front.placed.circles]
    heights = [100 * circle.accuracy for circle in circles]
    tall = widened(min(heights), max(heights), logarithmic=False)
    across = min(2, len(drawn))
    down = -(-len(drawn) // across)

    def paint(figure: Any) -> None:
        grid = figure.subplots(down, across, squeeze=False, sharey=True)
        places = [axes for line in grid for axes in line]
        for axes, front in zip(places, drawn, strict=False):
            _paint(axes, front, (WIDTH / across, _ROW), tall, looks)
        for axes in places[len(drawn) :]:
            axes.set_visible(False)
        for line in grid:
            line[0].set_ylabel("test accuracy, %")

    told = "; ".join(
        f"at length {front.placed.length} "
        + listing([f"{c.row.title} ({_reach(front, c)})" for c in front.members])
        for front in drawn
    )
    fewer = f" Drawn are {len(drawn)} of {len(found)} lengths." if len(drawn) < len(found) else ""
    named = [circle.row for circle in drawn[0].placed.circles]
    return Figure(
        id=f"front-{quality.number}",
        title=f"The front by length {quality.where}",
        alt=f"Panels of {quality.over} against the time of a training step, one for each length, "
        f"with a line through the front. On it, the fastest first: {told}.",
        caption=f"{raised(quality.over)}; left is faster, up is better, small is lean (area "
        f"is peak memory). Trained on {quality.tokens}, timed at the length of each panel. The "
        f"line joins the front: {ON_FRONT}; what lies below it is named in the table.{fewer}"
        f"{_busy_note(drawn)}{faint_note(circles)}{cut_note(named, _LETTERS)}",
        svg=draw(paint, WIDTH, _ROW * down),
    )


def _busy_note(drawn: Sequence[Front]) -> str:
    """Which places a busy machine makes doubtful, by length."""
    told = []
    for front in drawn:
        circles = front.placed.circles
        titles = [circle.row.title for circle in circles if disturbed(front, circle)]
        if titles:
            which = "all" if len(titles) == len(circles) else listing(titles)
            told.append(f"{which} at {front.placed.length}")
    if not told:
        return ""
    return (
        " Timed, wholly or in part, on a busy machine (! in the table), so neither their places "
        f"nor a line through them are to be trusted: {'; '.join(told)}."
    )


def _spread(found: Sequence[Front]) -> list[Front]:
    """A few of many, the first and the last among them, evenly by place."""
    if len(found) <= _MOST:
        return list(found)
    return [found[round(n * (len(found) - 1) / (_MOST - 1))] for n in range(_MOST)]


def _reach(front: Front, circle: Circle) -> str:
    reach = front.reach(circle)
    if front.placed.exact_seconds is None:
        return quantity(reach, "s")
    return f"{figures(reach)} {TIMES} {EXACT}"


def _paint(
    axes: Axes, front: Front, size: tuple[float, float], tall: tuple[float, float], looks: Looks
) -> None:
    """Draw one panel; `tall` are the limits of accuracy, in percent, that all panels share."""
    circles, members = front.placed.circles, front.members
    times = [front.reach(circle) for circle in circles]
    points = [(time, 100 * c.accuracy) for time, c in zip(times, circles, strict=True)]
    biggest = max(circle.memory for circle in circles)
    areas = [_LARGEST * circle.memory / biggest for circle in circles]
    logarithmic = max(times) > 6 * min(times)
    if logarithmic:
        axes.set_xscale("log")
    left, right = widened(min(times), max(times), logarithmic=logarithmic)
    axes.set_xlim(left, right)
    axes.set_ylim(*tall)
    plain_ticks(axes.xaxis, logarithmic=logarithmic)
    axes.set_title(f"length {front.placed.length}")
    unit = "s" if front.placed.exact_seconds is None else f"{TIMES} {EXACT}"
    axes.set_xlabel(f"time of a training step, {unit}{_missing(front)}")
    # What is slower than a member has its accuracy at best, up to the next member.
    corners = [(front.reach(c), 100 * c.accuracy) for c in members]
    steps = corners[:1]
    for x, y in corners[1:]:
        steps += [(x, steps[-1][1]), (x, y)]
    steps.append((right, steps[-1][1]))
    axes.plot(*zip(*steps, strict=True), color=MUTED, linewidth=1.0, zorder=2)
    named = {id(circle) for circle in members}
    texts = [
        name if id(circle) in named or circle.row.mechanism in (EXACT, NO_MIXING) else ""
        for circle, name in zip(
            circles, short_names([c.row for c in circles], _LETTERS), strict=True
        )
    ]
    paint_circles(axes, circles, points, areas, looks)
    room = ((size[0] - 0.8) * 72, (size[1] - 1.2) * 72)
    name_circles(axes, circles, points, areas, texts, room, looks, steps)


def _missing(front: Front) -> str:
    """What has no place at this length, in words, a line for each ending."""
    by_word = defaultdict(list)
    for one in front.placed.missing:
        by_word[one.why].append(one.row.title)
    lines = [
        f"{why}: {listing(names) if len(names) <= _NAMED else len(names)}"
        for why, names in sorted(by_word.items())
    ]
    return "".join(f"\n{line}" for line in lines)
