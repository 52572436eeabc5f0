"""Attention rollout on pictures: the share of an answer that comes from each pixel of an input.

Abnar and Zuidema 2020; drawn on Pathfinder as in the Long Range Arena paper.
"""

from __future__ import annotations

from typing import Any

from lra.core.cells import QualityCell
from lra.core.escape import escape_controls
from lra.core.trained_attention import Rollout, TrainedAttention
from lra.report.model import Figure
from lra.report.plots.style import MUTED, draw

_SIDE = 0.98
"""Side of a picture in inches."""


def rollout_figure(label: str, cell: QualityCell, seen: TrainedAttention, number: int) -> Figure:
    """Return each picture above the share of the answer that comes from each of its pixels."""
    shown = seen.rollouts
    right = sum(one.answer == one.label for one in shown)

    def paint(figure: Any) -> None:
        panels = figure.subplots(2, len(shown), squeeze=False)
        for column, one in enumerate(shown):
            panels[0][column].imshow(one.pixels_YX(), cmap="gray", vmin=0, vmax=255)
            panels[1][column].imshow(one.shares_YX(), cmap="magma", vmin=0.0)
            panels[0][column].set_title(_title(one), fontsize=8)
        for axes in panels.flat:
            axes.set_xticks([])
            axes.set_yticks([])
        panels[0][0].set_ylabel("picture", fontsize=8.5, color=MUTED)
        panels[1][0].set_ylabel("rollout", fontsize=8.5, color=MUTED)

    side, task = shown[0].side, escape_controls(cell.data.task)
    return Figure(
        id=f"rollout-{number}",
        title=f"Attention rollout: {label} on {task} at scale {cell.scale}, "
        f"{side} x {side}, seed {cell.seed}",
        alt=f"{len(shown)} pictures of {side} x {side} pixels and, below each, the share of the "
        f"answer that attention takes from each pixel; {right} of {len(shown)} answers are right.",
        caption="The brighter a pixel, the more of the class token's output comes from it (heads "
        f"averaged, half of each layer its residual); {right} of {len(shown)} answers are right.",
        svg=draw(paint, 0.4 + len(shown) * (_SIDE + 0.08), 2 * _SIDE + 0.45),
    )


def _title(one: Rollout) -> str:
    wrong = "" if one.answer == one.label else f", said {one.answer}"
    return f"label {one.label}{wrong}"
