"""Two trainings held against each other."""

from __future__ import annotations

import msgspec
import pytest
import torch

from lra.core.protocol import TrainSpec
from lra.core.records import CurvePoint
from lra.training.outcome import Trained


def changed(spec: TrainSpec, **fields: object) -> TrainSpec:
    return msgspec.structs.replace(spec, **fields)


def numbers(curve: tuple[CurvePoint, ...]) -> list[CurvePoint]:
    """A curve without its clock."""
    return [msgspec.structs.replace(point, seconds=0.0) for point in curve]


def assert_same(
    one: Trained, other: Trained, model: torch.nn.Module, other_model: torch.nn.Module
) -> None:
    """Bit for bit, but for the clock."""
    assert numbers(one.curve) == numbers(other.curve)
    assert (one.test, one.best_step) == (other.test, other.best_step)
    assert one.validation_accuracy == other.validation_accuracy
    for name, value in model.state_dict().items():
        assert torch.equal(value, other_model.state_dict()[name]), name


def closeness(model: torch.nn.Module, other: torch.nn.Module) -> float:
    pairs = zip(model.parameters(), other.parameters(), strict=True)
    return max((a - b).abs().max().item() for a, b in pairs)


def assert_near(
    one: Trained, other: Trained, model: torch.nn.Module, other_model: torch.nn.Module
) -> None:
    """Up to the order in which a GPU adds up, of float64 models."""
    assert (one.test.correct, one.best_step) == (other.test.correct, other.best_step)
    for point, twin in zip(one.curve, other.curve, strict=True):
        assert point.train_loss == pytest.approx(twin.train_loss, rel=1e-6)
    assert closeness(model, other_model) < 1e-6
