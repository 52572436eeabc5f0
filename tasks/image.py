"""Image: classify a grey picture read pixel by pixel.

Grey CIFAR-10 (Krizhevsky 2009) in Long Range Arena, Tay et al., ICLR 2021 (arXiv 2011.04006);
offline, drawn shapes at any resolution.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from typing import Annotated, cast

import msgspec
import numpy as np
import numpy.typing as npt

from lra.core.cards import TaskCard
from lra.core.dataset import Dataset, Split, SplitName
from lra.core.errors import DataError, UsageError
from lra.core.protocol import Rules
from tasks import _preview
from tasks.contract import Part, Task, TaskConfig
from tasks.generators.counter import U64, stream_key
from tasks.generators.disjoint import Drawn, disjoint_split
from tasks.generators.shapes import FRAMED, LARGEST_PERCENT, NARROWEST, SHAPES, draw_shapes


class ImageConfig(TaskConfig, frozen=True):
    """Parameters of the drawn shapes; real pictures have none."""

    shapes: Annotated[int, msgspec.Meta(ge=2, le=len(SHAPES))] = len(SHAPES)
    """Different shapes, and so classes: the first so many."""
    levels: Annotated[int, msgspec.Meta(ge=2, le=256)] = 8
    """Grey levels, spread evenly over 0 ... 255."""
    smallest_percent: Annotated[int, msgspec.Meta(ge=50, le=LARGEST_PERCENT)] = 50
    """Width of the smallest shape in percent of the picture's; that of the largest is 90."""
    noise_percent: Annotated[int, msgspec.Meta(ge=0, le=50)] = 5
    """Chance of a pixel to take a random grey level."""


class Image(Task):
    """Ten-way classification of a square picture; token ids are grey values, 0 is a black pixel."""

    card = TaskCard(
        title="Image",
        source="CIFAR-10, Krizhevsky 2009; LRA, Tay et al. 2021 (arXiv 2011.04006)",
        classes=len(SHAPES),
        vocabulary=256,
        picture=True,
        stand_in=f"one drawn shape of ten: {', '.join(SHAPES)}",
    )
    Config = ImageConfig
    hub = "uoft-cs/cifar10"
    cuttable = False

    def __init__(self, config: TaskConfig, *, length: int, rules: Rules = "fixed") -> None:
        super().__init__(config, length=length, rules=rules)
        self.side = _side(length)
        _check_shapes(self.side, cast(ImageConfig, config))

    @property
    def classes(self) -> int:
        """One class for each shape that is drawn."""
        return cast(ImageConfig, self.config).shapes

    def generate(self, split: SplitName, rows: int) -> Split:
        """Make `rows` pictures of side x side pixels, row by row; tokens are uint8."""
        config = cast(ImageConfig, self.config)

        def draw(keys_R: U64) -> Drawn:
            return draw_shapes(
                keys_R,
                side=self.side,
                shapes=config.shapes,
                smallest_percent=config.smallest_percent,
                levels=config.levels,
                noise_percent=config.noise_percent,
            )

        return disjoint_split(draw, stream_key("image", config.data_seed), split, rows)

    def solve(self, split: Split) -> npt.NDArray[np.integer]:
        """Return the shape that each picture fits best, tried in all sizes and places."""
        from tasks.solvers.shapes_solver import told_shapes

        config = cast(ImageConfig, self.config)
        return told_shapes(
            split.tokens.reshape(len(split), -1),
            side=self.side,
            shapes=config.shapes,
            smallest_percent=config.smallest_percent,
        )

    def parts(self, source: str) -> Sequence[Part]:
        """Return CIFAR-10's pictures; see `tasks.sources.cifar10_files` for their forms."""
        from tasks.sources.cifar10 import picture_parts
        from tasks.sources.cifar10_pixels import PIXELS

        if self.length != PIXELS:
            raise DataError(
                f"image: real pictures have {PIXELS} pixels, the length here is {self.length}; "
                f"use a scale with image at length {PIXELS}: small, compact, paper",
                reached=False,
            )
        return picture_parts(source, self.rules)

    def shown(self, tokens: npt.NDArray[np.integer]) -> str:
        """Return the picture in shaded blocks."""
        return _preview.picture(tokens)

    def rules_of_thumb(self, data: Dataset) -> dict[str, float]:
        """Return the test accuracy of looking at the shape's area alone, fitted on train.

        Nothing for photographs, which show no shape: they have more grey levels.
        """
        from tasks.solvers.pictures import first_pictures
        from tasks.solvers.shapes_rule import area

        train, test = (first_pictures(part, (self.length,)) for part in (data.train, data.test))
        if len(np.unique(train[0])) > cast(ImageConfig, self.config).levels:
            return {}
        return {"area": area(train, test, self.classes)}


def _side(length: int) -> int:
    """The side of a square picture of `length` pixels."""
    side = isqrt(length)
    if side * side != length:
        raise UsageError(
            f"image: {length} pixels are no square; use length {side**2} or {(side + 1) ** 2}"
        )
    return side


def _check_shapes(side: int, config: ImageConfig) -> None:
    """Refuse sizes at which two shapes may be one and the same picture."""
    narrowest = side * config.smallest_percent // 100
    if narrowest < NARROWEST:
        enough = -(-NARROWEST * 100 // config.smallest_percent)
        remedy = f"use length {enough**2} or more"
        percent = -(-NARROWEST * 100 // max(side, 1))
        if percent <= LARGEST_PERCENT:
            remedy += f" or smallest_percent {percent} or more"
        raise UsageError(
            f"image: at {side} x {side} pixels the smallest shapes are {narrowest} wide and some "
            f"look the same; {remedy}"
        )
    unframed = SHAPES.index("frame")
    if side < FRAMED and config.shapes > unframed:
        raise UsageError(
            f"image: at {side} x {side} pixels a frame may look like a square; "
            f"use length {FRAMED**2} or more or at most {unframed} shapes"
        )
