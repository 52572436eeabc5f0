"""Names of the metrics of a training step's profile, and the training time that they give."""

from __future__ import annotations

import math

from lra.core.protocol import Rows, TrainSpec

PARTS = ("prepare", "rows", "batch", "forward", "backward", "clip", "update", "after")
"""Parts of a step, in order."""
OPERATOR = "operator "
"""Prefix of the metrics of operators."""


def part_metric(part: str) -> str:
    """Return the name of the metric that has a part's seconds a step."""
    return f"{part}_seconds"


def training_seconds(training: TrainSpec, rows: Rows, *, step: float, row: float) -> float:
    """Return the seconds of a whole training, with its validations and its test.

    `step` is seconds a training step, `row` seconds an evaluated example.
    """
    validations = math.ceil(training.steps / training.evaluate_every)
    return training.steps * step + (validations * rows.validation + rows.test) * row
