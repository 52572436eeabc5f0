"""Cross maps: the tokens of a source that each token of a target reads, layer by layer."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from lra.core.cells import QualityCell
from lra.core.escape import escape_controls
from lra.core.trained_attention import TrainedAttention
from lra.report.model import Figure
from lra.report.plots.style import MUTED, draw
from lra.report.words import count

_SIDE = 2.2
"""Side of a map in inches."""


def cross_map_figure(label: str, cell: QualityCell, seen: TrainedAttention, number: int) -> Figure:
    """Return a map for each layer, targets by rows and sources by columns."""
    shown = seen.crosses

    def paint(figure: Any) -> None:
        panels = figure.subplots(1, len(shown), squeeze=False)[0]
        for layer, (axes, one) in enumerate(zip(panels, shown, strict=True), start=1):
            axes.imshow(one.shares_NM(), cmap="magma", vmin=0.0, aspect="auto")
            axes.set_title(f"layer {layer}, top {one.top:.0%}", fontsize=8)
            axes.set_xlabel("source", fontsize=8.5, color=MUTED)
            axes.tick_params(labelsize=7)
            axes.grid(False)
        panels[0].set_ylabel("target", fontsize=8.5, color=MUTED)

    task = escape_controls(cell.data.task)
    slots = cell.model.slots
    beside = "" if slots is UNSET or "cross" not in slots else slots["cross"].name
    reader = f"{escape_controls(beside)} beside {label}" if beside else label
    return Figure(
        id=f"cross-{number}",
        title=f"Cross-attention: {reader} on {task} at scale {cell.scale}, seed {cell.seed}",
        alt=f"{count(len(shown), 'map')} of {shown[0].targets} target tokens by "
        f"{shown[0].sources} source tokens: the brighter, the more of it is read.",
        caption=f"How much each token of the target reads of each of the source; the mean over "
        f"heads and {seen.examples} validation examples.",
        svg=draw(paint, 0.7 + len(shown) * (_SIDE + 0.3), _SIDE + 0.6),
    )
