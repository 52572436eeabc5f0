"""Mechanisms that do nothing wrong in a way that few do: no law may fail them."""

from __future__ import annotations

import os
import threading
from collections import deque
from typing import Any

import pytest
import torch
from torch import Tensor

from lra.core.findings import Case
from lra.verify import kit
from lra.verify.subject import Subject
from verify.faults.dense import Dense
from verify.faults.sizes import ScratchOfTheLayer

pytestmark = pytest.mark.usefixtures("one_thread")


class KeepsTheLast(Dense):
    """Keeps the largest query of the last 64 calls."""

    def attend(self, q: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Any]:
        if not hasattr(self, "largest"):
            self.largest: deque[float] = deque(maxlen=64)
        if q.numel():
            self.largest.append(float(q.detach().abs().amax()))
        return super().attend(q, *args, **kwargs)


class ReadsItsHome(Dense):
    """Needs the user's home at each call."""

    def attend(self, q: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Any]:
        assert os.environ["HOME"]
        return super().attend(q, *args, **kwargs)


class KeepsTheLastOutput(Dense):
    """Keeps its last output, for a picture."""

    def attend(self, *args: Any, **kwargs: Any) -> tuple[Tensor, Any]:
        out, state = super().attend(*args, **kwargs)
        self.last = torch.where(out.detach() > 0, 1.0, 0.0)
        return out, state


class LocksItsScratch(ScratchOfTheLayer):
    """Shares an array between its calls, which wait for each other."""

    def prepare(self) -> None:
        super().prepare()
        self.lock = threading.Lock()

    def attend(self, *args: Any, **kwargs: Any) -> tuple[Tensor, Any]:
        with self.lock:
            return super().attend(*args, **kwargs)


def test_two_callers_may_wait_for_each_other() -> None:
    subject = Subject(LocksItsScratch, LocksItsScratch.Config(), only=Case(n=7))
    found = kit.try_law(kit.select(["threads"])[0], subject)
    assert found.verdict == "held", found


class DropsNothing(Dense):
    """Has no dropout."""

    def dropped(self, weights: Tensor) -> Tensor:
        return weights


@pytest.mark.parametrize("mechanism", [KeepsTheLast, ReadsItsHome, KeepsTheLastOutput])
@pytest.mark.parametrize("law", ["side_effects", "sequel", "determinism", "copies"])
def test_no_law_fails_it(mechanism: type[Dense], law: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "here")
    found = kit.try_law(kit.select([law])[0], Subject(mechanism, mechanism.Config()))
    assert found.verdict == "held", found


@pytest.mark.parametrize(("mechanism", "rate"), [(Dense, 0.25), (DropsNothing, 0.0)])
def test_a_rate_of_dropout_is_told_where_there_is_dropout(
    mechanism: type[Dense], rate: float
) -> None:
    subject = Subject(mechanism, mechanism.Config(), only=Case(n=7, training=True))
    found = kit.try_law(kit.select(["second_backward"])[0], subject)
    assert found.tried is not None and found.tried.dropout == rate
