"""The tasks' own rules, applied to tokens alone: generated labels follow from what is given."""

import msgspec
import numpy as np
import pytest

from lra.core.catalogue import find, load
from lra.core.dataset import UNASKED, Split
from lra.core.scales import load_scale

SOLVED = ["listops", "text", "retrieval", "image", "recall"]


def made(name, scale):
    setting = load_scale(scale).task(name)
    kind = load(find("task", name))
    config = msgspec.convert(setting.parameters, kind.Config)
    return kind(config, length=setting.length)


def right(split, answers):
    asked = split.labels != UNASKED
    return np.mean(answers[asked] == split.labels[asked])


@pytest.mark.parametrize("name", SOLVED)
@pytest.mark.parametrize("scale", ["mini", "small"])
def test_the_rule_alone_tells_the_label(name, scale):
    task = made(name, scale)
    split = task.generate("test", 100 if scale == "mini" else 30)
    # Noise may turn one small shape into another.
    assert right(split, task.solve(split)) >= (0.97 if name == "image" else 1.0)


@pytest.mark.parametrize("name", SOLVED)
def test_labels_are_not_looked_at(name):
    task = made(name, "mini")
    split = task.generate("test", 50)
    blind = np.where(split.labels == UNASKED, UNASKED, 0).astype(split.labels.dtype)
    hidden = Split(split.tokens, split.starts, blind, split.inputs, split.by_token)
    assert np.array_equal(task.solve(split), task.solve(hidden))
