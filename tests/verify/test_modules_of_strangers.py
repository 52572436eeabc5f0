"""Somebody's modules: what hides a fault from a law, and what an honest one may do.

A gradient that is wrong by little, a norm that undoes a change of its input, a scale that starts at
as good as zero.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lra.adapters.adapt import adapt
from lra.verify import kit
from lra.verify.subject import Subject


class Times(torch.autograd.Function):
    """The identity, whose gradient is too large."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None]:
        return ctx.factor * upstream[0], None


class Block(nn.Module):
    """Attention of one head between projections, causal where it is asked to be, on inputs of norm
    one or as they are."""

    norm = False

    def __init__(self, dim: int, causal: bool = False) -> None:
        super().__init__()
        self.before = nn.LayerNorm(dim, elementwise_affine=False) if self.norm else nn.Identity()
        self.project = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)
        self.causal = causal

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.projected(self.before(x)).chunk(3, -1)
        logits: Tensor = self.logits(q, k)
        permitted = self.permitted(torch.ones(logits.shape[-2:], dtype=torch.bool))
        y: Tensor = self.out(logits.masked_fill(~permitted, -torch.inf).softmax(-1) @ v)
        return y

    def projected(self, x: Tensor) -> Tensor:
        projected: Tensor = self.project(x)
        return projected

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return q @ k.mT / q.shape[-1] ** 0.5

    def permitted(self, everything: Tensor) -> Tensor:
        return everything.tril() if self.causal else everything


class KeysDetached(Block):
    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return super().logits(q, k.detach())


class LogitsGradientTooLarge(Block):
    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return Times.apply(super().logits(q, k), 1.1)  # type: ignore[no-any-return]


class WeightGradientTooLarge(Block):
    def projected(self, x: Tensor) -> Tensor:
        weight: Tensor = Times.apply(self.project.weight, 3.0)
        return x @ weight.mT


class LeaksBehindANorm(Block):
    """The last position of each 25 reads the next one."""

    norm = True

    def permitted(self, everything: Tensor) -> Tensor:
        leaky = super().permitted(everything)
        rows = torch.arange(len(leaky) - 1)[24::25]
        leaky[rows, rows + 1] = True
        return leaky


class NotCausal(Block):
    def permitted(self, everything: Tensor) -> Tensor:
        return everything


class HiddenByAZero(NotCausal):
    """Its last projection is zero at first."""

    def __init__(self, dim: int, causal: bool = False) -> None:
        super().__init__(dim, causal)
        nn.init.zeros_(self.out.weight)


class HiddenByAScale(NotCausal):
    """Its output is scaled down at first."""

    norm = True

    def __init__(self, dim: int, causal: bool = False) -> None:
        super().__init__(dim, causal)
        self.scale = nn.Parameter(torch.full((dim,), 1e-5))

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * super().forward(x)


@pytest.mark.parametrize(
    ("fault", "law", "words"),
    [
        (KeysDetached, "gradcheck", "gradient"),
        (LogitsGradientTooLarge, "gradcheck", "input"),
        (WeightGradientTooLarge, "gradcheck", "parameters"),
        (LeaksBehindANorm, "causality", "position 24"),
        (HiddenByAZero, "causality", "position 0"),
        (HiddenByAScale, "causality", "position 0"),
    ],
)
def test_what_is_small_or_undone_by_a_norm_is_found(
    fault: type[nn.Module], law: str, words: str
) -> None:
    theirs = adapt(fault, "mine")
    found = kit.try_law(kit.select([law])[0], Subject(theirs, theirs.Config()))
    assert found.verdict == "failed" and f" {words} " in found.detail, found


class FromZero(Block):
    """Right, and the identity at first in what is around it."""

    def __init__(self, dim: int, causal: bool = False) -> None:
        super().__init__(dim, causal)
        nn.init.zeros_(self.out.weight)


class Float32Inside(Block):
    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return super().logits(q.float(), k.float()).to(q.dtype)


class Kinked(Block):
    def projected(self, x: Tensor) -> Tensor:
        return super().projected(x).relu()


class Normed(Block):
    norm = True


class OtherNumbers(Block):
    """It keeps numbers that are not trained, of other kinds."""

    def __init__(self, dim: int, causal: bool = False) -> None:
        super().__init__(dim, causal)
        self.flag = nn.Parameter(torch.zeros(2, dtype=torch.bool), requires_grad=False)
        self.count = nn.Parameter(torch.zeros(1, dtype=torch.long), requires_grad=False)


@pytest.mark.parametrize("law", ["gradcheck", "causality", "gradient_flow"])
@pytest.mark.parametrize("right", [Block, FromZero, Float32Inside, Kinked, Normed, OtherNumbers])
def test_what_is_right_is_not_failed(right: type[nn.Module], law: str) -> None:
    theirs = adapt(right, "mine")
    found = kit.try_law(kit.select([law])[0], Subject(theirs, theirs.Config()))
    assert found.verdict == "held", found


class AlwaysCausal(nn.Module):
    """It cannot be asked for anything else, and says so nowhere."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.block = Block(dim, causal=True)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.block(x)
        return y


def test_what_is_causal_without_being_asked_is_found_to_be() -> None:
    theirs = adapt(AlwaysCausal, "mine")
    found = kit.try_law(kit.select(["causality"])[0], Subject(theirs, theirs.Config()))
    assert found.verdict == "unclaimed", found
