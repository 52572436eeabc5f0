"""Path-X: Pathfinder at 128 x 128 pixels, 16,384 tokens.

Long Range Arena, Tay et al., ICLR 2021 (arXiv 2011.04006); the images are those of `pathfinder` at
this length, the report keeps them in a column of their own.
"""

from __future__ import annotations

import msgspec

from tasks.pathfinder import Pathfinder


class PathX(Pathfinder):
    """See `tasks.pathfinder.Pathfinder`."""

    card = msgspec.structs.replace(Pathfinder.card, title="Path-X", length=128**2)
