"""The kit is itself verified: every planted fault is caught by the law made for it.

Other people's mechanisms have no oracle to be compared with, and no card: the second column says
which law catches the fault in one of theirs, if any does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from attention_impls.contract import MechanismConfig
from lra.core.findings import Case
from lra.verify import kit
from lra.verify.laws import LAWS
from lra.verify.subject import Subject
from verify.faults import claims, future, numbers, padding, pattern, state
from verify.faults.dense import Dense
from verify.faults.strangers import stranger

NOT_CAUGHT = ""
"""Nothing that a stranger is held to tells it from honest attention."""

CAUGHT: dict[type[Dense], tuple[str, str]] = {
    # fault: (the law made for it, the law that catches it in a stranger)
    future.SharedMaximum: ("causality", "causality"),
    future.MeanOfAll: ("causality", "causality"),
    future.LengthInConstant: ("causality", "causality"),
    future.MaximumOfAllUnderflows: ("causality", "causality"),
    future.MaskInPlaceOfCausal: ("causality", "causality"),
    future.LooksAheadByOne: ("causality", "causality"),
    future.CausalIgnored: ("causality", "causality"),
    future.LeaksInTraining: ("causality", "causality"),
    future.ValuesFromTheFuture: ("values_causality", "values_causality"),
    future.AlignedAtTheStart: ("cross", NOT_CAUGHT),
    future.AlignedAtTheStartInTheOracleToo: ("cross", NOT_CAUGHT),
    future.OffsetNeverNegative: ("cross", NOT_CAUGHT),
    future.FutureChoosesThePast: ("causality", "causality"),
    padding.PaddingInTheSum: ("padding_count", "causality"),
    padding.FiniteFill: ("empty_rows", "empty_rows"),
    padding.MeanOnEmptyRows: ("empty_rows", "empty_rows"),
    padding.VectorOnEmptyRows: ("empty_rows", "empty_rows"),
    padding.NotANumberOnEmptyRows: ("empty_rows", "empty_rows"),
    padding.EmptySourceNotANumber: ("empty_rows", "empty_rows"),
    padding.ReadsItselfWhereNothingIs: ("nothing", NOT_CAUGHT),
    padding.MaskIgnored: ("padding_content", "padding_content"),
    padding.QueriesTakenForKeys: ("oracle", "cross"),
    padding.MeanOfPadding: ("empty_rows", NOT_CAUGHT),
    padding.ZeroedByMultiplication: ("padding_content", NOT_CAUGHT),
    padding.ShiftsPadding: ("padding_content", NOT_CAUGHT),
    padding.SortedByMultiplication: ("batch", "batch"),
    padding.BatchNormaliser: ("batch", "batch"),
    padding.BatchMinimumPruning: ("batch", "batch"),
    padding.RaggedTruncated: ("oracle", "causality"),
    pattern.OffByOneWindow: ("support", NOT_CAUGHT),
    pattern.WindowThatWraps: ("support", "causality"),
    pattern.OracleShowsMore: ("support", NOT_CAUGHT),
    pattern.OracleIsTheFastPath: ("oracle", NOT_CAUGHT),
    pattern.OracleIsTheFastPathOfItsClass: ("oracle", NOT_CAUGHT),
    pattern.KeysTwice: ("oracle", NOT_CAUGHT),
    pattern.RootInverted: ("oracle", NOT_CAUGHT),
    pattern.WrongGroupOrder: ("oracle", NOT_CAUGHT),
    pattern.MaskForgottenInCross: ("padding_content", "padding_content"),
    numbers.HalfAccumulator: ("precision", NOT_CAUGHT),
    numbers.AnglesRounded: ("precision", NOT_CAUGHT),
    numbers.LogarithmOfTheLength: ("output", "output"),
    numbers.NoMaximum: ("extremes", "extremes"),
    numbers.PowersOverflow: ("extremes", "extremes"),
    numbers.SoftplusByHand: ("extremes", "extremes"),
    numbers.BoundedOnAverage: ("extremes", "extremes"),
    numbers.GateByHand: ("extremes", NOT_CAUGHT),
    numbers.ContiguousTakenForGranted: ("strides", "strides"),
    numbers.ContiguousInputTakenForGranted: ("strides", NOT_CAUGHT),
    numbers.GradientStopped: ("gradcheck", "gradcheck"),
    numbers.NormaliserDetached: ("oracle", "gradcheck"),
    numbers.UnusedParameter: ("gradient_flow", "gradient_flow"),
    numbers.QuadraticBehindLinear: ("memory_growth", NOT_CAUGHT),
    numbers.QuadraticWhenPadded: ("memory_growth", NOT_CAUGHT),
    numbers.WeightsOfMoreThanOne: ("constant_values", NOT_CAUGHT),
    numbers.RisesAboveItsValues: ("convexity", NOT_CAUGHT),
    numbers.NegativeWeights: ("convexity", NOT_CAUGHT),
    numbers.SinkSubtracted: ("convexity", NOT_CAUGHT),
    numbers.ValuesSquashed: ("linearity", NOT_CAUGHT),
    claims.RootInvertedInTheOracleToo: ("exact_softmax", NOT_CAUGHT),
    claims.ExactNowhere: ("exact_softmax", NOT_CAUGHT),
    claims.ComesNoNearer: ("convergence", NOT_CAUGHT),
    claims.ComesNearAtNoRate: ("convergence", NOT_CAUGHT),
    claims.RotaryIgnored: ("rotary", NOT_CAUGHT),
    claims.BiasIgnored: ("bias", NOT_CAUGHT),
    claims.StateTakenInSilence: ("refusal", NOT_CAUGHT),
    claims.RefusesWhatItClaims: ("refusal", NOT_CAUGHT),
    state.DrawnAtEachCall: ("determinism", "determinism"),
    state.SeedsEverything: ("determinism", "determinism"),
    state.SeedIgnored: ("determinism", "determinism"),
    state.SeedLeftBehind: ("determinism", "determinism"),
    state.EveryLayerAlike: ("determinism", "determinism"),
    state.FixedGenerator: ("determinism", NOT_CAUGHT),
    state.AveragesInEvaluation: ("determinism", "determinism"),
    state.TurnsCountedInTheClass: ("determinism", "determinism"),
    state.DropsInEvaluation: ("determinism", NOT_CAUGHT),
    state.NoiseInTraining: ("training", NOT_CAUGHT),
    state.CapacityInTraining: ("training", NOT_CAUGHT),
    state.NoiseFromElsewhere: ("training", NOT_CAUGHT),
    state.DrawsMissing: ("state_dict", "state_dict"),
    state.SizeDrawn: ("state_dict", "state_dict"),
    state.DrawnInTheForwardPass: ("draws", "draws"),
    state.WritesItsParameters: ("draws", "draws"),
    state.StochasticInSilence: ("draws", NOT_CAUGHT),
    state.StochasticInName: ("draws", NOT_CAUGHT),
    state.RedrawnFromTheGlobalGenerator: ("draws", NOT_CAUGHT),
    state.RedrawnBehindTheGlobalGenerator: ("draws", NOT_CAUGHT),
    state.DecodesOffByOne: ("decode", NOT_CAUGHT),
    state.PaddedPromptForgotten: ("decode", NOT_CAUGHT),
    state.CacheDropsTheOldest: ("decode", NOT_CAUGHT),
    state.PieceAlignedAtTheStart: ("decode", NOT_CAUGHT),
    state.CountsOneForAll: ("decode", NOT_CAUGHT),
    state.TableThatWraps: ("length_limit", NOT_CAUGHT),
}

WITHOUT_A_FAULT = {"time_growth", "compiled"}
"""One reports and does not judge; the other is slow, and has its fault further down."""

UNDECLARED = {claims.ExactNowhere, claims.ComesNearAtNoRate}
"""What is wrong shows before any input is tried."""


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """As in the kit's own processes: inputs this small are slower on several."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class Few(Subject):
    """Asked at few lengths."""

    lengths = (1, 7, 37)  # type: ignore[assignment]

    @property
    def configs(self) -> tuple[MechanismConfig, ...]:
        return (self.config,)


def verdict(mechanism: type[Any], law: str) -> Any:
    """Return what one law finds, in this process."""
    return kit.try_law(kit.select([law])[0], Few(mechanism, mechanism.Config()))


@pytest.mark.parametrize("fault", CAUGHT, ids=lambda fault: fault.__name__)
def test_the_law_made_for_a_fault_catches_it(fault: type[Dense]) -> None:
    law, _ = CAUGHT[fault]
    found = verdict(fault, law)
    assert (found.verdict, found.ending) == ("failed", ""), found
    assert found.detail and (found.case is None) == (fault in UNDECLARED)


@pytest.mark.parametrize("fault", [f for f in CAUGHT if CAUGHT[f][1]], ids=lambda f: f.__name__)
def test_a_fault_of_a_stranger_is_caught_as_the_table_says(fault: type[Dense]) -> None:
    _, law = CAUGHT[fault]
    found = verdict(stranger(fault), law)
    assert (found.verdict, found.ending) == ("failed", ""), found


@pytest.mark.slow
def test_what_the_table_says_no_law_catches_is_caught_by_none() -> None:
    theirs = {fault: stranger(fault) for fault, (_, law) in CAUGHT.items() if law == NOT_CAUGHT}
    caught = [
        (fault.__name__, law)
        for fault, mechanism in theirs.items()
        for law in TRIED
        if verdict(mechanism, law).verdict == "failed"
    ]
    assert not caught, "the table may say more"


TRIED = [law.name for law in kit.select() if law.name not in {"memory_growth", "time_growth"}]
"""All that judges a stranger."""


@pytest.mark.parametrize("law", TRIED)
def test_an_honest_stranger_keeps_every_law(law: str) -> None:
    found = verdict(stranger(Dense), law)
    assert found.verdict != "failed", found


class KnowsTheCompiler(Dense):
    """Answers otherwise where it is compiled."""

    def attend(self, *args: Any, **kwargs: Any) -> tuple[Tensor, Any]:
        out, state = super().attend(*args, **kwargs)
        return (2 * out if torch.compiler.is_compiling() else out), state


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch by torch
@pytest.mark.parametrize(
    ("mechanism", "wanted", "words"),
    [(Dense, "held", ""), (KnowsTheCompiler, "failed", "compiled output against eager: ")],
)
def test_what_is_compiled_answers_as_it_does_eagerly(
    mechanism: type[Dense], wanted: str, words: str
) -> None:
    subject = Subject(mechanism, mechanism.Config(), only=Case(n=37))
    found = kit.try_law(kit.select(["compiled"])[0], subject)
    assert (found.verdict, found.ending) == (wanted, ""), found
    assert found.detail.startswith(words)


def test_there_is_a_fault_for_every_law() -> None:
    assert len(CAUGHT) >= 24
    assert {law for law, _ in CAUGHT.values()} == {law.name for law in LAWS} - WITHOUT_A_FAULT


@pytest.mark.parametrize("law", [law.name for law in kit.select()])
def test_an_honest_mechanism_keeps_every_law(law: str) -> None:
    found = verdict(Dense, law)
    assert found.verdict != "failed", found
