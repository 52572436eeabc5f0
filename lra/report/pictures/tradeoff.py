"""The figure of the Long Range Arena: accuracy against speed, circle area for memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from lra.report.costs.tables import EfficiencyTables
from lra.report.mechanisms.settings import Differences, StandIns, in_words
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
from lra.report.tradeoff.front import ON_FRONT, members
from lra.report.tradeoff.points import Circle, Tradeoff, tradeoff
from lra.report.words import TIMES, listing, quantity, raised

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEIGHT = 5.2
_LARGEST = 1500.0
"""Area of the largest circle, in square points."""
_ROOMY = 10
"""With more circles than this the names stand without their memory."""
_CROWDED = 30
"""And with more than this only those of the front, exact attention and no mixing are named."""


def tradeoff_figure(
    quality: QualityTable,
    costs: Sequence[EfficiencyTables],
    instead: StandIns,
    looks: Looks,
) -> Figure | None:
    """Return accuracy against speed of training; None with fewer than two mechanisms to place.

    `instead` says whose timings stand for settings that have none.
    """
    found = tradeoff(quality, costs, instead)
    if found is None:
        return None

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        _paint(axes, found.circles, found.batch, found.exact_seconds, looks)
        axes.set_xlabel(f"training speed of the {found.level} at length {found.length}, examples/s")

    shown = listing([circle.row.title for circle in found.circles])
    return Figure(
        id=f"tradeoff-{quality.number}",
        title=f"Accuracy against speed and memory {quality.where}",
        alt=f"Scatter plot of {quality.over} against training speed at length {found.length}; the "
        f"area of a circle is peak memory. Shown: {shown}.",
        caption=" ".join(
            [
                f"{raised(quality.over)}; {_READING}{faint_note(found.circles)}",
                f"Trained on {quality.tokens}, timed at length {found.length}.",
                *_marks(found, quality.differences, quality.group.scale),
            ]
        )
        + cut_note([circle.row for circle in found.circles]),
        svg=draw(paint, WIDTH, _HEIGHT),
    )


_READING = "right is faster, up is better, small is lean. Area is peak memory."


def _marks(found: Tradeoff, differences: Differences, scale: str) -> list[str]:
    placed = {(scale, circle.row.variant) for circle in found.circles}
    marks = in_words(differences, placed, briefly=True)
    if any(circle.moved for circle in found.circles):
        marks.append(
            "What was timed in another run is placed by its ratios of time and memory to "
            f"{EXACT} there."
        )
    if any(circle.elsewhere for circle in found.circles):
        marks.append(
            "Dashed outline: that run was on another machine class, or of "
            "another build or version of the code."
        )
    if len(found.circles) > _CROWDED:
        marks.append(f"Named are exact attention, no mixing and the front: {ON_FRONT}.")
    marks += _busy(found)
    if found.missing:
        missing = listing([one.row.title for one in found.missing])
        marks.append(f"Not placed, because a figure is missing: {missing}.")
    return marks


def _busy(found: Tradeoff) -> list[str]:
    """What a busy machine makes doubtful: speeds, ratios that place a speed, all such places."""
    disturbed = [circle for circle in found.circles if circle.disturbed]
    here = [circle.row.title for circle in disturbed if not circle.moved]
    moved = [circle.row.title for circle in disturbed if circle.moved]
    marks = []
    if here:
        marks.append(
            "Timed, wholly or in part, on a busy machine (! in the table), so the speed is not to "
            f"be trusted: {listing(here)}."
        )
    if moved:
        marks.append(
            f"Placed by a ratio of times of which one, its own or one of {EXACT}, was taken on a "
            f"busy machine, so the speed is not to be trusted: {listing(moved)}."
        )
    if found.exact_disturbed:
        what = "the scale above is"
        if any(circle.moved for circle in found.circles):
            what = "the scale above, and how those of another run lie to the others, are"
        marks.append(f"{EXACT} was timed on a busy machine: {what} not to be trusted.")
    return marks


def _paint(
    axes: Axes, circles: Sequence[Circle], batch: int, exact: float | None, looks: Looks
) -> None:
    speeds = [batch / circle.seconds for circle in circles]
    points = [(speed, 100 * c.accuracy) for speed, c in zip(speeds, circles, strict=True)]
    heights = [height for _, height in points]
    biggest = max(circle.memory for circle in circles)
    areas = [_LARGEST * circle.memory / biggest for circle in circles]
    axes.set_ylabel("test accuracy, %")
    logarithmic = max(speeds) > 6 * min(speeds)
    if logarithmic:
        axes.set_xscale("log")
    axes.set_xlim(*widened(min(speeds), max(speeds), logarithmic=logarithmic))
    axes.set_ylim(*widened(min(heights), max(heights), logarithmic=False))
    texts = [
        f"{name}, {quantity(circle.memory, 'B', most=2)}" if len(circles) <= _ROOMY else name
        for name, circle in zip(short_names([c.row for c in circles]), circles, strict=True)
    ]
    if len(circles) > _CROWDED:
        named = {id(circle) for circle in members(circles)}
        anchors = (EXACT, NO_MIXING)
        texts = [
            text if id(circle) in named or circle.row.mechanism in anchors else ""
            for circle, text in zip(circles, texts, strict=True)
        ]
    paint_circles(axes, circles, points, areas, looks)
    size = ((WIDTH - 0.9) * 72, (_HEIGHT - 1.2) * 72)
    name_circles(axes, circles, points, areas, texts, size, looks)
    if exact is not None:
        speed = batch / exact
        top = axes.secondary_xaxis("top", functions=_ratio_to(speed))
        top.set_xlabel(f"{TIMES} the speed of {EXACT}", color=MUTED)
        plain_ticks(top.xaxis, logarithmic=logarithmic)
    plain_ticks(axes.xaxis, logarithmic=logarithmic)


def _ratio_to(speed: float) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Functions from examples per second to the ratio and back."""
    return (lambda x: x / speed), (lambda x: x * speed)
