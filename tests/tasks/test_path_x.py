"""The tasks that are Pathfinder at one length."""

import numpy as np
import pytest

from lra.core.catalogue import find, load
from lra.core.errors import UsageError

SIDES = {"pathfinder64": 64, "path_x": 128, "pathfinder256": 256}


@pytest.mark.parametrize(("name", "side"), SIDES.items())
def test_one_length_alone(name, side):
    kind = load(find("task", name))
    assert kind.card.length == side**2
    assert kind(kind.Config(), length=side**2).side == side
    with pytest.raises(UsageError, match=rf"{name}: every image has {side**2} pixels"):
        kind(kind.Config(), length=1024)


def test_the_images_are_those_of_pathfinder_at_that_length():
    path_x, pathfinder = (load(find("task", name)) for name in ("path_x", "pathfinder"))
    mine = path_x(path_x.Config(), length=128**2).generate("test", 2)
    theirs = pathfinder(pathfinder.Config(), length=128**2).generate("test", 2)
    assert np.array_equal(mine.tokens, theirs.tokens)
    assert np.array_equal(mine.labels, theirs.labels)
