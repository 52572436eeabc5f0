"""A fault of somebody's attention is a finding of the law that names it, and nothing else."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
import zoo
from torch import Tensor, nn

from lra.adapters.adapt import adapt
from lra.core.findings import Finding
from lra.verify import kit
from lra.verify.subject import Subject


def findings(what: Callable[..., Any], *laws: str, timeout: float = 120.0) -> list[Finding]:
    mechanism = adapt(what, "mine")
    subject = Subject(mechanism, mechanism.Config())
    return list(kit.verify(subject, kit.select(laws), timeout=timeout))


class CausalIgnored(zoo.BuiltCausal):
    def forward(self, x: Tensor) -> Tensor:
        return self.attend(x)


class CausalFlagIgnored(zoo.CausalCore):
    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Any = None, causal: bool = False):
        return super().forward(q, k, v, mask)


class MaskIgnored(zoo.Keeps):
    def forward(self, x: Tensor, mask: Any = None) -> Tensor:
        return self.attend(x)


class ContextMaskIgnored(zoo.ReadsContext):
    def forward(self, x: Tensor, context: Any = None, mask: Any = None, context_mask: Any = None):
        return super().forward(x, context, mask)


class LengthFirst(zoo.BuiltCausal):
    """Takes the first axis for the positions, and does not say so."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.transpose(0, 1)).transpose(0, 1)


@pytest.mark.parametrize(
    ("what", "law"),
    [
        (CausalIgnored, "causality"),
        (CausalFlagIgnored, "causality"),
        (MaskIgnored, "padding_content"),
        (ContextMaskIgnored, "padding_content"),
        (LengthFirst, "batch"),
    ],
)
def test_a_broken_promise_fails_the_law_made_for_it(what: type[nn.Module], law: str) -> None:
    output, broken = findings(what, "output", law)
    assert output.verdict == "held"
    assert broken.verdict == "failed" and not broken.ending, broken
    (parent,) = what.__bases__
    assert findings(parent, law)[0].verdict == "held"


class AnotherShape(zoo.Keeps):
    def forward(self, x: Tensor, mask: Any = None) -> Tensor:
        return super().forward(x, mask)[..., :-1]


class NotANumber(zoo.Keeps):
    def forward(self, x: Tensor, mask: Any = None) -> Tensor:
        return super().forward(x, mask) / 0.0


class NeedsMore(zoo.Keeps):
    def __init__(self, dim: int, heads: int, rank: int) -> None:
        super().__init__(dim, heads)


class Raises(zoo.Keeps):
    def forward(self, x: Tensor, mask: Any = None) -> Tensor:
        raise KeyError("q")


class SystemExits(zoo.Keeps):
    def forward(self, x: Tensor, mask: Any = None) -> Tensor:
        raise SystemExit("enough")


class SystemExitsWell(zoo.Keeps):
    def forward(self, x: Tensor, mask: Any = None) -> Tensor:
        sys.exit()


class EndsItsProcess(zoo.Keeps):
    def forward(self, x: Tensor, mask: Any = None) -> Tensor:
        os._exit(0)


class Halves(zoo.Keeps):
    def forward(self, x: Tensor, mask: Any = None) -> Tensor:
        return super().forward(x, mask).to(torch.bfloat16)


@pytest.mark.parametrize(
    ("what", "ending", "words"),
    [
        (AnotherShape, "error", "belongs"),
        (NotANumber, "", "not finite"),
        (NeedsMore, "error", "'rank'"),
        (Raises, "error", "KeyError: 'q'"),
        (SystemExits, "crash", "exit('enough') (test_broken.py, line "),
        (SystemExitsWell, "crash", "exit() (test_broken.py, line "),
        (EndsItsProcess, "crash", "exit code 0, as os._exit does"),
        (Halves, "", "torch.bfloat16"),
    ],
)
def test_without_an_output_there_is_one_reason_and_no_more_questions(
    what: type[nn.Module], ending: str, words: str
) -> None:
    """`test_kit.py` has those that hang, are killed or exit."""
    output, *others = findings(what, "output", "causality", "batch")
    assert (output.verdict, output.ending) == ("failed", ending), output
    assert words in output.detail and "\n" not in output.detail
    if ending:
        assert [other.verdict for other in others] == ["not claimed", "skipped"]


class HangsAfterwards(zoo.Keeps):
    def forward(self, x: Tensor, mask: Any = None) -> Tensor:
        if torch.is_grad_enabled():
            time.sleep(60)
        return super().forward(x, mask)


def test_who_lets_two_laws_wait_is_asked_no_more() -> None:
    laws = ("output", "gradcheck", "empty_rows", "batch", "padding_content")
    found = findings(HangsAfterwards, *laws, timeout=6.0)
    assert {(f.law, f.ending or f.verdict) for f in found} == {
        ("output", "held"),
        ("gradcheck", "timeout"),
        ("padding_content", "timeout"),
        ("empty_rows", "skipped"),
        ("batch", "skipped"),
    }
