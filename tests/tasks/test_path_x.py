"""The tasks that are Pathfinder at one length."""

import numpy as np
import pytest

from lra.core.catalogue import find
from lra.core.errors import UsageError
from lra.core.loading import load
from tasks.pathfinder import Pathfinder

SIDES = {"pathfinder64": 64, "path_x": 128, "pathfinder256": 256}


@pytest.mark.parametrize(("name", "side"), SIDES.items())
def test_one_length_alone_and_the_settings_of_pathfinder_there(name, side):
    kind = load(find("task", name))
    assert kind.card.length == side**2
    made, theirs = (one(one.Config(), length=side**2) for one in (kind, Pathfinder))
    assert made.side == side and (made.settings, made.seed) == (theirs.settings, theirs.seed)
    assert kind.generate is Pathfinder.generate and kind.generate_part is Pathfinder.generate_part
    with pytest.raises(UsageError, match=rf"{name}: every image has {side**2} pixels"):
        kind(kind.Config(), length=1024)


def test_the_images_are_those_of_pathfinder_at_that_length():
    kinds = load(find("task", "pathfinder64")), Pathfinder
    mine, theirs = (kind(kind.Config(), length=64**2).generate("test", 2) for kind in kinds)
    assert np.array_equal(mine.tokens, theirs.tokens)
    assert np.array_equal(mine.labels, theirs.labels)
