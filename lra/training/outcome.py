"""Progress and outcome of a training."""

from __future__ import annotations

from dataclasses import dataclass

from lra.core.errors import LraError
from lra.core.records import CurvePoint


@dataclass(frozen=True)
class Score:
    """Correct answers and loss on a split."""

    correct: int
    answers: int
    """Number of labels: one for each example, or one for each token."""
    loss: float
    """Mean cross-entropy of an answer, in nat."""

    @property
    def accuracy(self) -> float:
        """Share of answers that are right."""
        return self.correct / self.answers


@dataclass(frozen=True)
class Progress:
    """Progress of a training."""

    step: int
    steps: int
    seconds: float
    """Seconds of training so far, validation left out."""
    point: CurvePoint | None
    """Validation just done; None between validations."""


@dataclass(frozen=True)
class Trained:
    """A finished training."""

    test: Score
    """Test score of the kept weights, which the model now holds."""
    best_step: int
    """Step of the kept weights: the best by validation, or the last where the protocol tests
    that."""
    validation_accuracy: float
    """Validation accuracy at that step."""
    curve: tuple[CurvePoint, ...]
    seconds: float
    """Seconds of training, validation and checkpoints left out, over all interruptions."""
    steps_per_second: float


class Diverged(LraError):  # noqa: N818  an ending, as Interrupted is
    """The loss became infinite or not a number."""

    def __init__(self, step: int, curve: tuple[CurvePoint, ...]) -> None:
        super().__init__(
            f"the loss was no longer finite when looked at after step {step}; "
            "lower the learning rate or clip the gradient"
        )
        self.step = step
        """Optimiser steps done when this was noticed."""
        self.curve = curve
        """Validations so far."""


class Interrupted(LraError):  # noqa: N818
    """`stop` asked for an end; the checkpoint, where there is one, has the progress."""

    def __init__(self, step: int, steps: int) -> None:
        super().__init__(f"stopped after step {step} of {steps}; run again to continue")
        self.step = step
        self.steps = steps
