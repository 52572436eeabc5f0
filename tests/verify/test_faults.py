"""The kit is itself verified: every planted fault is caught by the law made for it.

Strangers' mechanisms have no oracle to be compared with: the second column says which law catches
the fault without one.
"""

from __future__ import annotations

from typing import Any

import pytest

from attention_impls.contract import Attention
from lra.verify import kit
from lra.verify.subject import Subject
from verify.faults import future, numbers, padding, pattern, state
from verify.faults.dense import Dense

CAUGHT: dict[type[Dense], tuple[str, str]] = {
    # fault: (the law made for it, a law that catches it without an oracle)
    future.SharedMaximum: ("causality", "causality"),
    future.MeanOfAll: ("causality", "causality"),
    future.LengthInConstant: ("causality", "causality"),
    future.LooksAheadByOne: ("causality", "causality"),
    future.CausalIgnored: ("causality", "causality"),
    future.AlignedAtTheStart: ("cross", "cross"),
    future.FutureChoosesThePast: ("causality", "causality"),
    padding.PaddingInTheSum: ("padding_count", "padding_count"),
    padding.FiniteFill: ("empty_rows", "empty_rows"),
    padding.MeanOnEmptyRows: ("empty_rows", "empty_rows"),
    padding.NotANumberOnEmptyRows: ("empty_rows", "empty_rows"),
    padding.MaskIgnored: ("padding_content", "padding_content"),
    padding.BatchNormaliser: ("batch", "batch"),
    padding.BatchMinimumPruning: ("batch", "batch"),
    padding.RaggedTruncated: ("oracle", "constant_values"),
    pattern.OffByOneWindow: ("support", "support"),
    pattern.WindowThatWraps: ("support", "support"),
    pattern.KeysTwice: ("oracle", "exact_softmax"),
    pattern.RootInverted: ("oracle", "exact_softmax"),
    pattern.WrongGroupOrder: ("oracle", "exact_softmax"),
    pattern.MaskForgottenInCross: ("padding_content", "padding_content"),
    numbers.HalfAccumulator: ("precision", "precision"),
    numbers.LogarithmOfTheLength: ("output", "output"),
    numbers.NoMaximum: ("extremes", "extremes"),
    numbers.ContiguousTakenForGranted: ("strides", "strides"),
    numbers.GradientStopped: ("gradcheck", "gradcheck"),
    numbers.UnusedParameter: ("gradient_flow", "gradient_flow"),
    numbers.QuadraticBehindLinear: ("memory_growth", "memory_growth"),
    state.DrawnAtEachCall: ("determinism", "determinism"),
    state.DrawsMissing: ("state_dict", "state_dict"),
    state.DrawnInTheForwardPass: ("draws", "draws"),
    state.SeedsEverything: ("determinism", "determinism"),
    state.DecodesOffByOne: ("decode", "decode"),
    state.TableThatWraps: ("length_limit", "length_limit"),
}


def blind(fault: type[Dense]) -> type[Dense]:
    """Take a mechanism's oracle away."""
    return type(fault.__name__, (fault,), {"oracle": Attention.oracle})


def verdict(mechanism: type[Any], law: str) -> Any:
    """Return what one law finds, in this process."""
    return kit.try_law(kit.select([law])[0], Subject(mechanism, mechanism.Config()))


@pytest.mark.parametrize("fault", CAUGHT, ids=lambda fault: fault.__name__)
def test_the_law_made_for_a_fault_catches_it(fault: type[Dense]) -> None:
    law, _ = CAUGHT[fault]
    found = verdict(fault, law)
    assert found.verdict == "failed", found
    assert found.detail and found.case is not None


@pytest.mark.slow
@pytest.mark.parametrize("fault", CAUGHT, ids=lambda fault: fault.__name__)
def test_a_fault_is_caught_without_an_oracle_too(fault: type[Dense]) -> None:
    _, law = CAUGHT[fault]
    assert verdict(blind(fault), law).verdict == "failed"


def test_there_are_faults_of_every_kind() -> None:
    assert len(CAUGHT) >= 24


@pytest.mark.parametrize("law", [law.name for law in kit.select()])
def test_an_honest_mechanism_keeps_every_law(law: str) -> None:
    found = verdict(Dense, law)
    assert found.verdict != "failed", found
