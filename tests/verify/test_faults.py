"""The kit is itself verified: every planted fault is caught by the law made for it.

Other people's mechanisms have no oracle to be compared with, and no card: a fault of theirs may be
caught by another law, or by none.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from attention_impls.contract import MechanismConfig
from lra.core.findings import Case, Finding
from lra.verify import kit
from lra.verify.laws import LAWS
from lra.verify.subject import Subject
from lra.verify.trial import try_case
from verify.faults import claims
from verify.faults.dense import FAULTS, Dense
from verify.faults.pairs import Paired
from verify.faults.places import Placed
from verify.faults.strangers import stranger

pytestmark = pytest.mark.usefixtures("one_thread")

WITHOUT_A_FAULT = {"time_growth", "compiled"}
"""One reports and does not judge; the other is slow, and has its fault further down."""

UNDECLARED = {claims.ExactNowhere, claims.ComesNearAtNoRate}
"""Faults that show before any input is tried."""


@pytest.fixture(autouse=True)
def _kernels_as_they_were() -> Iterator[None]:
    """Undo what a fault does to the process."""
    enabled = torch.backends.cuda.mem_efficient_sdp_enabled()  # type: ignore[no-untyped-call]
    log = logging.getLogger()
    level, handlers = log.level, list(log.handlers)
    softmax, precision = F.softmax, torch.get_float32_matmul_precision()
    yield
    F.softmax = softmax
    torch.set_float32_matmul_precision(precision)
    torch.set_flush_denormal(False)
    log.level, log.handlers = level, handlers
    torch.backends.cuda.enable_mem_efficient_sdp(enabled)


class Few(Subject):
    """Asked at few lengths."""

    lengths = (1, 7, 37)  # type: ignore[assignment]

    @property
    def configs(self) -> tuple[MechanismConfig, ...]:
        return (self.config,)


def verdict(mechanism: type[Any], law: str) -> Any:
    """Return what one law finds, in this process."""
    return kit.try_law(kit.select([law])[0], Few(mechanism, mechanism.Config()))


def caught(mechanism: type[Any], law: str) -> Finding:
    """Return the same of one of ours and a law that it claims, at the first input that breaks it:
    no smaller one is searched for."""
    subject, (own,) = Few(mechanism, mechanism.Config()), kit.select([law])
    assert own.claimed(subject.card)
    return try_case(own, subject)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_the_law_made_for_a_fault_catches_it(fault: type[Dense]) -> None:
    found = caught(fault, FAULTS[fault].law)
    assert (found.verdict, found.ending) == ("failed", ""), found
    assert found.detail and (found.case is None) == (fault in UNDECLARED)


@pytest.mark.parametrize(
    "fault", [f for f in FAULTS if FAULTS[f].stranger], ids=lambda f: f.__name__
)
def test_a_fault_of_a_stranger_is_caught_too(fault: type[Dense]) -> None:
    found = verdict(stranger(fault), FAULTS[fault].stranger)
    assert (found.verdict, found.ending) == ("failed", ""), found


@pytest.mark.slow
def test_what_no_law_is_said_to_catch_is_caught_by_none() -> None:
    theirs = {fault: stranger(fault) for fault in FAULTS if not FAULTS[fault].stranger}
    caught = [
        (fault.__name__, law)
        for fault, mechanism in theirs.items()
        for law in TRIED
        if verdict(mechanism, law).verdict == "failed"
    ]
    assert not caught, "the fault may name the law"


REPORTED = {"memory_growth", "operation_growth", "time_growth"}
TRIED = [law.name for law in kit.select() if law.name not in REPORTED]
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
    assert {law for law, _ in FAULTS.values()} == {law.name for law in LAWS} - WITHOUT_A_FAULT


@pytest.mark.parametrize("law", [law.name for law in kit.select()])
def test_an_honest_mechanism_keeps_every_law(law: str) -> None:
    found = verdict(Dense, law)
    assert found.verdict != "failed", found


@pytest.mark.parametrize(
    ("mechanism", "law"), [(Paired, "arbitrary_mask"), (Placed, "positions_by_index")]
)
def test_what_faults_of_a_claim_are_made_of_keeps_its_law(mechanism: type[Dense], law: str) -> None:
    found = verdict(mechanism, law)
    assert found.verdict == "held", found
