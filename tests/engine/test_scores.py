"""Score of a training, in the task's own unit."""

from __future__ import annotations

import math

import pytest

from lra.core.cards import TaskMetric
from lra.engine.work.quality import _scores
from lra.training.loop import Trained
from lra.training.outcome import Score


def trained(loss: float) -> Trained:
    return Trained(
        test=Score(correct=30, answers=40, loss=loss),
        validation_accuracy=0.7,
        curve=(),
        best_step=1,
        seconds=1.0,
        steps_per_second=1.0,
    )


def test_bits_are_nats_over_the_logarithm_of_two_and_the_fewer_the_better() -> None:
    found = _scores(trained(3 * math.log(2)), "bits_per_byte")
    assert found["bits_per_byte"].value == pytest.approx(3.0)
    assert (found["bits_per_byte"].unit, found["bits_per_byte"].better) == ("bit", "lower")
    assert found["test_loss"].value == pytest.approx(3 * math.log(2))
    assert "test_accuracy" not in found


def test_a_loss_in_nat_is_quoted_as_it_is() -> None:
    found = _scores(trained(1.5), "nat")
    assert (found["nat"].value, found["nat"].unit, found["nat"].better) == (1.5, "nat", "lower")
    assert set(found) == {"nat", "test_loss"}


@pytest.mark.parametrize("metric", ["bits_per_byte", "nat"])
def test_a_loss_that_is_not_finite_has_no_figure_and_says_why(metric: TaskMetric) -> None:
    found = _scores(trained(math.inf), metric)[metric]
    assert (found.value, found.why_null) == (None, "it is inf")


def test_an_accuracy_is_the_share_of_right_answers() -> None:
    found = _scores(trained(0.5), "accuracy")
    assert found["test_accuracy"].value == 0.75
    assert found["test_accuracy"].better == "higher"
