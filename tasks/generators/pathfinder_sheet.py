"""A contact sheet of Pathfinder images: `python -m tasks.generators.pathfinder_sheet OUT.png`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from tasks.generators.pathfinder_fixed import I64
from tasks.generators.pathfinder_images import choose_search, make
from tasks.generators.pathfinder_settings import resolve
from tasks.generators.pathfinder_stamps import U8

SIDES = (8, 32, 64, 128)
OF_EACH_LABEL = 4


def draw_sheet(target: Path) -> None:
    """Write a sheet of the presets, one row each, label 1 on the left, as PNG."""
    figure = Figure(figsize=(11.2, 6.1), dpi=110, layout="constrained")
    columns = 2 * OF_EACH_LABEL
    axes = figure.subplots(len(SIDES), columns)
    for row, side in zip(axes, SIDES, strict=True):
        for axis, image in zip(row, _examples(side), strict=True):
            axis.imshow(image, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
            axis.set_xticks([])
            axis.set_yticks([])
        row[0].set_ylabel(f"{side} x {side}")
    for column, axis in enumerate(axes[0]):
        axis.set_title(f"label {int(column < OF_EACH_LABEL)}", fontsize=9)
    figure.savefig(target, metadata={"Software": None})


def _examples(side: int) -> U8:
    """The first test images of label 1, then those of label 0."""
    images, labels = make(resolve(side, {}), "test", 0, 8 * OF_EACH_LABEL, choose_search(side))
    shown: U8 = images[np.concatenate([_first(labels, 1), _first(labels, 0)])]
    return shown


def _first(labels: I64, label: int) -> I64:
    return np.flatnonzero(labels == label)[:OF_EACH_LABEL]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tasks.generators.pathfinder_sheet OUT.png")
    draw_sheet(Path(sys.argv[1]))
