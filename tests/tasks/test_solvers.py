"""The tasks' own rules, applied to tokens alone: generated labels follow from what is given.

A new task that has a `solve` is tested here without a line of its own.
"""

import numpy as np
import pytest
from every_task import made, tried

from lra.core.catalogue import find
from lra.core.dataset import UNASKED, Split
from lra.core.loading import load
from tasks.contract import Task

SOLVED = [name for name in tried() if load(find("task", name)).solve is not Task.solve]
ALMOST = {"image": 0.97}
"""The share that a rule gets right at least, where labels do not follow from tokens for certain:
noise may turn one small shape into another."""


def test_there_are_solved_tasks():
    assert {"listops", "text", "retrieval", "image", "recall"} <= set(SOLVED)


@pytest.mark.parametrize("name", SOLVED)
@pytest.mark.parametrize(("scale", "rows"), [("mini", 100), ("small", 30)])
def test_the_rule_alone_tells_the_label_and_looks_at_no_label(name, scale, rows):
    task = made(name, scale)
    split = task.generate("test", rows)
    blind = np.where(split.labels == UNASKED, UNASKED, 0).astype(split.labels.dtype)
    answers = task.solve(Split(split.tokens, split.starts, blind, split.inputs, split.by_token))
    if answers is None:
        pytest.skip("so set, nothing is solved")
    assert np.array_equal(answers, task.solve(split))
    asked = split.labels != UNASKED
    share = np.mean(answers[asked] == split.labels[asked])
    assert share >= ALMOST.get(name, 1.0), (
        f"{name}: solve gets {share:.1%} of what is asked; mend it, or, if labels do not follow "
        "from tokens for certain, say so in ALMOST of tests/tasks/test_solvers.py"
    )
