"""What a training tells while it runs, and how it ends."""

from __future__ import annotations

from dataclasses import dataclass

from lra.core.errors import LraError
from lra.core.records import CurvePoint


@dataclass(frozen=True)
class Score:
    """What a model got right on a split."""

    correct: int
    answers: int
    """Labels asked for: one an example, or one a token."""
    loss: float
    """Mean cross-entropy of an answer, in nat."""

    @property
    def accuracy(self) -> float:
        """Share of answers that are right."""
        return self.correct / self.answers


@dataclass(frozen=True)
class Progress:
    """How far a training is."""

    step: int
    steps: int
    seconds: float
    """Of training so far, validation left out."""
    point: CurvePoint | None
    """The validation just done; None between validations."""


@dataclass(frozen=True)
class Trained:
    """A finished training."""

    test: Score
    """Of the weights that were kept, which the model now holds."""
    best_step: int
    """When they were: the best by validation, or the last where the protocol tests that."""
    validation_accuracy: float
    """At that step."""
    curve: tuple[CurvePoint, ...]
    seconds: float
    """Of training, validation and checkpoints left out, over all interruptions."""
    steps_per_second: float


class Diverged(LraError):  # noqa: N818  an ending, as Interrupted is
    """The loss became infinite or not a number."""

    def __init__(self, step: int, curve: tuple[CurvePoint, ...]) -> None:
        super().__init__(
            f"the loss was no longer finite when looked at after step {step}; "
            "lower the learning rate or clip the gradient"
        )
        self.step = step
        """Optimiser steps done when it was noticed."""
        self.curve = curve
        """Validations until then."""


class Interrupted(LraError):  # noqa: N818
    """`stop` said so; what was reached stands in the checkpoint, where there is one."""

    def __init__(self, step: int, steps: int) -> None:
        super().__init__(f"stopped after step {step} of {steps}; run again to continue")
        self.step = step
        self.steps = steps
