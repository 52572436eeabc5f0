"""Pathfinder: are two discs joined by one dashed path? Grey images, read pixel by pixel.

Linsley, Kim, Veerabadran, Windolf, Serre, "Learning long-range spatial dependencies with
horizontal gated recurrent units", NeurIPS 2018; as a sequence task in Tay et al., "Long Range
Arena", ICLR 2021 (its Path-X is 128 x 128). See docs/pathfinder.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from lra.core.cards import TaskCard
from lra.core.dataset import Dataset, Split, SplitName
from lra.core.errors import UsageError
from lra.core.protocol import Rules
from tasks import _preview
from tasks.contract import Part, Task, TaskConfig
from tasks.generators import pathfinder_images
from tasks.generators.pathfinder_settings import resolve

_PIXELS_OF_A_PART = 1 << 22


class PathfinderConfig(TaskConfig, frozen=True, kw_only=True):
    """Parameters of the generator, lengths in pixels.

    A field of None takes the original's value at the resolution (see docs/pathfinder.md).
    """

    contour_length: int | None = None
    """Paddles in each of the two paths: 14 at the original's hard level, 9 and 6 at the others."""
    distractor_length: int | None = None
    """Paddles in each distractor; a third of the contour length."""
    distractors: int | None = None
    """Distractors to try for; fewer where they find no room."""
    paddle_length: int | None = None
    paddle_thickness: float | None = None
    paddle_margins: tuple[int, ...] | None = None
    """Half the gap between paddles; one of these is drawn for each image."""
    marker_radius: float | None = None
    seed_distance: int | None = None
    """Between the beginnings of the two paths."""
    band: int | None = None
    """Width of the edge that the first seed keeps out of; twice the seed distance."""
    padding: int | None = None
    """Width of the edge that paths keep out of."""
    continuity: float | None = None
    """Stiffness of paths: a turn is multiplied by it before its cosine is squared."""
    snake_contrast: float | None = None
    """Brightness of a distractor; that of a marker is 1."""
    paddle_contrast: float | None = None
    """Brightness of a path in units of `snake_contrast`."""
    antialias: int | None = None
    """Lines are drawn this many times larger and shrunk."""
    levels: int | None = None
    """Different grey values, spread over 0 ... 255."""
    probe: Literal["original", "centred"] | None = None
    """original: seeds look for room one pixel beside their place, as the original's do."""
    paddle_retries: int | None = None
    distractor_retries: int | None = None


class Pathfinder(Task):
    """Tokens are grey values 0 ... 255, row by row; label 1 where one path joins both markers."""

    card = TaskCard(
        title="Pathfinder",
        source="Linsley et al. 2018 (arXiv 1805.08315), through Long Range Arena (2011.04006)",
        classes=2,
        vocabulary=256,
        picture=True,
    )
    Config = PathfinderConfig
    cuttable = False

    def __init__(self, config: TaskConfig, *, length: int, rules: Rules = "fixed") -> None:
        super().__init__(config, length=length, rules=rules)
        if self.card.length not in (None, length):
            raise UsageError(
                f"{self.name}: every image has {self.card.length} pixels, the length is {length}; "
                f"use that length, or the task pathfinder at others"
            )
        self.side = math.isqrt(max(length, 0))
        if self.side**2 != length:
            raise UsageError(
                f"pathfinder: length {length} is no square of pixels; "
                f"use {self.side**2} or {(self.side + 1) ** 2}"
            )
        given = {k: v for k, v in msgspec.structs.asdict(config).items() if v is not None}
        self.seed = given.pop("data_seed")
        self.settings = resolve(self.side, given)

    def generate(self, split: SplitName, rows: int) -> Split:
        """Make `rows` images of a split, the same with and without numba."""
        return self.generate_part(split, 0, rows)

    @property
    def part_rows(self) -> int:
        """A few seconds' worth of images."""
        return max(1, _PIXELS_OF_A_PART // self.length)

    def generate_part(self, split: SplitName, first: int, rows: int) -> Split:
        """Make the images of some rows: each depends on its own number alone."""
        search = pathfinder_images.choose_search(self.side)
        images, labels = pathfinder_images.make(
            self.settings, split, self.seed, rows, search, first
        )
        starts = np.arange(rows + 1, dtype=np.int64) * self.length
        return Split(images.reshape(-1), starts, labels)

    def parts(self, source: str) -> Sequence[Part]:
        """Return the images of the release's folders; see `tasks.sources.pathfinder_files`."""
        from tasks.sources.pathfinder_files import pathfinder_parts

        assert isinstance(self.config, PathfinderConfig)
        return pathfinder_parts(source, self.side, self.config.contour_length)

    def shown(self, tokens: npt.NDArray[np.integer]) -> str:
        """Return the image in shaded blocks."""
        return _preview.picture(tokens)

    def rules_of_thumb(self, data: Dataset) -> dict[str, float]:
        """Return the test accuracy of looking at the markers' distance alone, fitted on train."""
        from tasks.generators.pathfinder_stamps import disc
        from tasks.solvers.pathfinder_rule import marker_distance
        from tasks.solvers.pictures import first_pictures

        marker = disc(self.settings.marker_radius, self.settings.antialias)
        train, test = (
            first_pictures(part, (self.side, self.side)) for part in (data.train, data.test)
        )
        return {"marker distance": marker_distance(train, test, marker)}
