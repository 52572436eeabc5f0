"""Pathfinder at 256 x 256 pixels: 65,536 tokens.

Long Range Arena, Tay et al., ICLR 2021 (arXiv 2011.04006); the images are those of `pathfinder` at
this length, the report keeps them in a column of their own.
"""

from __future__ import annotations

import msgspec

from tasks.pathfinder import Pathfinder


class Pathfinder256(Pathfinder):
    """See `tasks.pathfinder.Pathfinder`."""

    card = msgspec.structs.replace(Pathfinder.card, title="Pathfinder 256", length=256**2)
