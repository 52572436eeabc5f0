"""A failure of somebody's class is looked at again: it may lie in how the class was read or tried.

B batch   N queries   M keys   D model width   H heads
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
import torch
from torch import Tensor, nn

from lra.adapters.adapt import adapt
from lra.core.findings import Finding
from lra.verify import kit
from lra.verify.clear_difference import is_as_clear
from lra.verify.subject import Subject


def found(what: Any, law: str, **settings: Any) -> Finding:
    mechanism = adapt(what, "mine")
    return kit.try_law(kit.select([law])[0], Subject(mechanism, mechanism.Config(**settings)))


def advised(finding: Finding) -> dict[str, str]:
    return dict(re.findall(r"--set (\w+)=(\w+)", finding.advice))


class Base(nn.Module):
    """Attention of one head; each of the others reads its mask in another way."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.project, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def attend(self, x: Tensor, keep: Tensor | None) -> Tensor:
        q, k, v = self.project(x).chunk(3, -1)
        logits = q @ k.mT / q.shape[-1] ** 0.5
        if keep is not None:
            logits = logits.masked_fill(~keep.expand_as(logits), -1e4)
        y: Tensor = self.out(logits.softmax(-1) @ v)
        return y


class Turned(Base):
    def forward(self, x: Tensor, mask: Any = None) -> Tensor:
        return self.attend(x, None if mask is None else ~mask[:, None, :])


class Adds(Base):
    def forward(self, x: Tensor, mask: Any = None) -> Tensor:
        if mask is not None and not mask.is_floating_point():
            raise TypeError("an additive mask, please")
        return self.attend(x, None if mask is None else mask[:, None, :] == 0)


class PerHead(Base):
    """Its product has no heads, but its mask has; and it is no additive one."""

    def forward(self, hidden_states: Tensor, mask: Any = None) -> Tensor:
        (_, _, _, _) = (1, 1, 1, 1) if mask is None else mask.shape
        return self.attend(hidden_states, None if mask is None else ~mask[:, 0].bool())


class OfNames(nn.Module):
    """Pairs whose True means ignore, under a name whose True usually means attend."""

    def forward(self, query: Tensor, key: Tensor, value: Tensor, attn_mask: Any = None) -> Tensor:
        logits = query @ key.mT
        if attn_mask is None:
            return logits.softmax(-1) @ value
        weights = logits.masked_fill(attn_mask, -1e4).softmax(-1)
        return weights.masked_fill(attn_mask, 0.0) @ value


@pytest.mark.parametrize(
    ("what", "law", "settings"),
    [
        (Turned, "padding_content", {"mask_form": "ignore"}),
        (Adds, "padding_content", {"mask_form": "additive"}),
        (Adds, "output", {"mask_form": "additive"}),
        (PerHead, "padding_content", {"mask_form": "ignore", "mask_per_head": "true"}),
        (OfNames, "causality", {"mask_form": "ignore"}),
    ],
)
def test_another_reading_is_tried_before_it_is_failed(
    what: Any, law: str, settings: dict[str, str]
) -> None:
    finding = found(what, law)
    assert (finding.verdict, finding.case) == ("skipped", None), finding
    assert advised(finding) == settings and finding.advice in finding.detail
    config = adapt(what, "mine").Config
    right: Any = msgspec.convert(settings, config, strict=False)
    again = found(what, law, **msgspec.to_builtins(right))
    assert again.verdict == "held", again


class IgnoresItsMask(Base):
    def forward(self, x: Tensor, mask: Any = None) -> Tensor:
        return self.attend(x, None)


class TurnedWhenLong(Base):
    """Right in one meaning up to a length, in the other beyond."""

    def forward(self, x: Tensor, mask: Any = None) -> Tensor:
        keep = None if mask is None else mask[:, None, :]
        return self.attend(x, keep if keep is None or x.shape[1] < 100 else ~keep)


class MaskOfQueries(Base):
    """Its mask lies along queries. Turned round it hides all that is real from who is real."""

    def forward(self, x: Tensor, mask: Any = None) -> Tensor:
        if mask is None:
            return self.attend(x, None)
        rows = mask[:, :, None]
        return self.attend(x, rows) * rows


@pytest.mark.parametrize("what", [IgnoresItsMask, TurnedWhenLong, MaskOfQueries])
def test_without_a_right_reading_it_is_failed(what: Any) -> None:
    finding = found(what, "padding_content")
    assert finding.verdict == "failed" and not finding.advice


class OneMeaning(Base):
    """Its mask is read rightly; it mixes examples."""

    def forward(self, x: Tensor, mask: Any = None) -> Tensor:
        y = self.attend(x, None if mask is None else mask[:, None, :])
        return y + y.mean(0, keepdim=True)


def test_what_no_mask_changes_is_failed() -> None:
    assert found(OneMeaning, "batch").verdict == "failed"


class NotInDouble(Base):
    """Its output is no number where its input is float64."""

    def forward(self, x: Tensor) -> Tensor:
        y = self.attend(x, None)
        return y * torch.nan if x.dtype == torch.float64 else y


class NaNInBoth(Base):
    def forward(self, x: Tensor) -> Tensor:
        return self.attend(x, None) * torch.nan


def test_a_verdict_that_depends_on_float64_says_so() -> None:
    alone, both = (found(what, "output") for what in (NotInDouble, NaNInBoth))
    assert alone.verdict == both.verdict == "failed"
    assert "float64 alone" in alone.detail and "float64 alone" not in both.detail


class Scales(Base):
    def forward(self, x: Tensor) -> Tensor:
        return self.attend(x.mul_(1.5), None)


class ScalesWithoutGradients(Base):
    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            x.add_(0.1)
        return self.attend(x, None)


def scales_its_queries(q: Tensor, k: Tensor, v: Tensor, mask: Any = None) -> Tensor:
    q *= 1.5
    logits = q @ k.mT
    if mask is not None:
        logits = logits.masked_fill(~mask[:, None, None, :], -1e4)
    return logits.softmax(-1) @ v


@pytest.mark.parametrize(
    ("what", "law", "name"),
    [
        (Scales, "gradcheck", "x"),
        (Scales, "batch", "x"),
        (ScalesWithoutGradients, "batch", "x"),
        (scales_its_queries, "padding_content", "q"),
    ],
)
def test_a_change_of_an_argument_is_named_as_that(what: Any, law: str, name: str) -> None:
    finding = found(what, law)
    assert finding.verdict == "failed", finding
    assert finding.detail.endswith(f"; it writes into its argument '{name}'")


def test_what_writes_nowhere_is_not_said_to() -> None:
    assert "writes" not in found(OneMeaning, "batch").detail


class LeaksMoreWhenLonger(Base):
    """Each output reads the mean of all: a tiny part of it in short inputs, half of it in long
    ones."""

    def forward(self, x: Tensor, causal: bool = False) -> Tensor:
        y = self.attend(x, torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril())
        return y + (0.5 if x.shape[1] > 6 else 3e-4) * x.mean(1, keepdim=True)


def test_the_smallest_case_shown_is_none_whose_difference_may_be_rounding() -> None:
    finding = found(LeaksMoreWhenLonger, "causality")
    assert finding.verdict == "failed" and finding.case is not None
    shown = float(re.findall(r"differs by (\S+),", finding.detail)[0])
    assert finding.case.n == 7 and shown > 1e-2, finding


@pytest.mark.parametrize(
    ("smaller", "first", "clear"),
    [
        ("differs by 2e-4, allowed 1e-04", "differs by 3.1e-01, allowed 1e-04", False),
        ("differs by 2e-4, allowed 1e-04", "differs by 4e-4, allowed 1e-04", True),
        ("differs by 1.1e-02", "differs by 4.4e+03", True),
        ("multiplied by -16: differs by 9e-9", "multiplied by -16: differs by 1.0", False),
        ("multiplied by 1000: differs by nan", "multiplied by 1000: differs by inf", True),
        ("(1, 1) goes in, (1, 2) comes out", "(1, 3) goes in, (1, 2) comes out", True),
    ],
)
def test_how_clear_a_difference_is(smaller: str, first: str, clear: bool) -> None:
    assert is_as_clear(smaller, first) == clear
