"""The tasks of the catalogue as a scale has them, and their examples."""

from math import isqrt

import msgspec

from lra.core.catalogue import find, names
from lra.core.loading import load
from lra.core.scales import load_scale

LONGEST = 2048
"""Tokens of the longest sequence that laws are tried on, for time: 1,300 rows of 4,096 pixels take
a generator of pictures a quarter of a minute, each time. Tasks of one longer length have tests of
their own (test_path_x)."""


def tried():
    """The names of all but what does not load, and those of a length that takes too long."""
    for name in names("task"):
        try:
            length = load(find("task", name)).card.length
        except Exception:  # `test_every_task_loads` says what is wrong with it
            continue
        if length is None or length <= LONGEST:
            yield name


def made(name, scale="mini", **changes):
    """A task as a scale has it, or at the one length of its card, with parameters changed."""
    named = load_scale(scale)
    setting = named.task(name)
    kind = load(find("task", name))
    length = kind.card.length or setting.length
    if kind.card.picture and name not in named.tasks and kind.card.length is None:
        # The default of a scale need not be a square.
        length = (isqrt(length - 1) + 1) ** 2
    config = msgspec.convert({**setting.parameters, **changes}, kind.Config)
    return kind(config, length=length)


def examples(split):
    """The bytes of each example, of a pair in either order."""
    inputs, number = split.inputs, len(split) * split.inputs
    sequences = [split.sequence(s).tobytes() for s in range(number)]
    return [tuple(sorted(sequences[i : i + inputs])) for i in range(0, number, inputs)]


def pictures(split):
    """The pictures of a split, (rows, side, side)."""
    side = isqrt(split.lengths[0, 0])
    return split.tokens.reshape(len(split), side, side)
