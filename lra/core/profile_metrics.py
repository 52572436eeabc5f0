"""Names of the figures in the record of a training step's profile, and what follows from them."""

from __future__ import annotations

import math

from lra.core.protocol import Rows, TrainSpec

PARTS = ("prepare", "rows", "batch", "forward", "backward", "clip", "update", "after")
"""Parts of a step, in order."""
OPERATOR = "operator "
"""The name of an operator's metric begins with it."""


def part_metric(part: str) -> str:
    """Return the name of the metric that has a part's seconds a step."""
    return f"{part}_seconds"


def training_seconds(training: TrainSpec, rows: Rows, *, step: float, row: float) -> float:
    """Return how long a whole training takes, with its validations and its test.

    `step` is seconds a training step, `row` seconds an evaluated example.
    """
    validations = math.ceil(training.steps / training.evaluate_every)
    return training.steps * step + (validations * rows.validation + rows.test) * row
