"""Faults at some lengths or places only are found where nobody says where to look."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lra.adapters.adapt import adapt
from lra.verify import kit
from lra.verify.law import ordinal
from lra.verify.subject import Subject
from verify.faults.dense import Dense
from verify.faults.strangers import stranger


class FewerQueriesOnly(Dense):
    """Attends to another sequence, unless that is shorter."""

    def attend(self, q: Tensor, k: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Any]:
        if q.shape[2] > k.shape[2]:
            raise ValueError("more queries than keys")
        return super().attend(q, k, *args, **kwargs)


class GradientStoppedWhenLong(Dense):
    """The gradient of the keys is lost beyond eight positions."""

    def attend(self, q: Tensor, k: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Any]:
        return super().attend(q, k if k.shape[2] <= 8 else k.detach(), *args, **kwargs)


class LeaksAtBorders(Dense):
    """The last query of each block of 20 reads the first key of the next."""

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        n, m = logits.shape[-2:]
        rows, columns = torch.arange(n)[:, None], torch.arange(m)
        leak = (rows % 20 == 19) & (columns == rows + 1)
        leaky = super().permitted(logits, causal, None) | leak
        return leaky if mask is None else leaky & mask[:, None, None, :]


@pytest.mark.parametrize(
    ("fault", "law", "words"),
    [
        (FewerQueriesOnly, "cross", "more queries than keys"),
        (GradientStoppedWhenLong, "gradcheck", "finite differences"),
        (LeaksAtBorders, "causality", "outputs up to position 19 when later inputs"),
    ],
)
def test_it_is_found(fault: type[Dense], law: str, words: str) -> None:
    theirs = stranger(fault)
    found = kit.try_law(kit.select([law])[0], Subject(theirs, theirs.Config()))
    assert found.verdict == "failed" and words in found.detail, found


def core(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.mT).softmax(-1) @ v


def test_what_a_core_claims_of_rotary_positions_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = adapt(core, "mine")
    law, subject = kit.select(["rotary"])[0], Subject(theirs, theirs.Config())
    assert subject.card.capabilities.rotary
    found = kit.try_law(law, subject)
    assert (found.verdict, found.detail) == ("held", "") and found.cases > 1
    monkeypatch.setattr(theirs, "project", without_positions(theirs))
    found = kit.try_law(law, subject)
    assert found.verdict == "failed" and "queries and keys turned by the kit" in found.detail


def without_positions(theirs: Any) -> Any:
    project = theirs.project
    return lambda self, x, context, *rest: project(self, x, replace(context, position=None), *rest)


def minus_infinity(q: Tensor, k: Tensor, v: Tensor, mask: Any = None) -> Tensor:
    """Gives NaN where nothing is permitted."""
    logits = q @ k.mT
    if mask is not None:
        logits = logits.masked_fill(~mask[:, None, None, :], -torch.inf)
    return (logits.softmax(-1) @ v).nan_to_num()


def overflowing(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    weights = (q @ k.mT).exp()
    return weights / weights.sum(-1, keepdim=True) @ v


def divided_by_nothing(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return v / (v - v)


class Unused(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.part = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        return x


class Counts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.seen += 1.0
        return x


@pytest.mark.parametrize(
    ("what", "law", "words"),
    [
        (minus_infinity, "empty_rows", "2nd gradient that BmmBackward0 returns"),
        (overflowing, "extremes", "queries and keys multiplied by 100"),
        (divided_by_nothing, "extremes", "not finite"),
        (Unused, "gradient_flow", "part.weight"),
        (Counts, "persistent_draws", "seen after a training pass"),
    ],
)
def test_what_is_said_needs_no_knowledge_of_our_code(what: Any, law: str, words: str) -> None:
    theirs = adapt(what, "mine")
    found = kit.try_law(kit.select([law])[0], Subject(theirs, theirs.Config()))
    assert found.verdict == "failed" and words in found.detail


def test_ordinals() -> None:
    wanted = ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "102nd", "111th"]
    assert [ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 102, 111)] == wanted


@pytest.mark.parametrize("law", ["memory_growth", "operation_growth", "time_growth"])
def test_what_claims_no_growth_is_reported(law: str) -> None:
    theirs = stranger(Dense)
    found = kit.try_law(kit.select([law])[0], Subject(theirs, theirs.Config()))
    assert found.verdict == "reported" and "as n^" in found.detail, found
