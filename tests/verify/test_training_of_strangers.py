"""Somebody's classes in training: checkpoints, and dropout that keeps its mean or need not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from lra.adapters.adapt import adapt
from lra.core.findings import Finding
from lra.verify import kit
from lra.verify.subject import Subject

pytestmark = pytest.mark.usefixtures("one_thread")


def finding(what: Any, law: str, **settings: Any) -> Finding:
    """Return what one law finds of a class."""
    theirs = adapt(what, "mine")
    return kit.try_law(kit.select([law])[0], Subject(theirs, theirs.Config(**settings)))


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v


class Checkpointed(nn.Module):
    """A core whose weights are made again in the backward pass."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        out: Tensor = checkpoint(attention, q, k, v, use_reentrant=True)
        return out


class CheckpointedKeysDetached(Checkpointed):
    """The same, but for the keys' gradient."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return super().forward(q, k.detach(), v)


class CheckpointedModule(nn.Module):
    """A module with its projections inside of the checkpoint."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.project, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = checkpoint(self.inside, x, use_reentrant=True)
        return out

    def inside(self, x: Tensor) -> Tensor:
        y: Tensor = self.out(attention(*self.project(x).chunk(3, -1)))
        return y


JUDGED = [law.name for law in kit.select() if not law.name.endswith("_growth")]


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
@pytest.mark.parametrize("law", JUDGED)
@pytest.mark.parametrize("what", [Checkpointed, CheckpointedModule])
def test_a_reentrant_checkpoint_keeps_every_law(what: type[nn.Module], law: str) -> None:
    found = finding(what, law)
    if (what, law) == (CheckpointedModule, "frozen"):
        # Behind a frozen input torch's checkpoint trains nothing: `backward` says so too.
        assert found.verdict == "failed" and "input" in found.detail, found
    else:
        assert found.verdict != "failed", found


def test_a_wrong_gradient_in_a_checkpoint_is_found() -> None:
    assert finding(CheckpointedKeysDetached, "gradcheck").verdict == "failed"


class Dropping(nn.Module):
    """A core that drops weights."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.rate = dropout

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return self.dropped((q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)) @ v

    def dropped(self, weights: Tensor) -> Tensor:
        return F.dropout(weights, self.rate, self.training)


class NotDivided(Dropping):
    """Leaves those kept as they are."""

    def dropped(self, weights: Tensor) -> Tensor:
        return weights * (F.dropout(torch.ones_like(weights), self.rate, self.training) > 0)


class DropsNothingInHalf(Dropping):
    """Its kernel for half precision knows no dropout."""

    def dropped(self, weights: Tensor) -> Tensor:
        return weights if weights.dtype == torch.bfloat16 else super().dropped(weights)


class AlikeInHeads(Dropping):
    """Drops the same weights in all heads."""

    def dropped(self, weights: Tensor) -> Tensor:
        return weights * F.dropout(torch.ones_like(weights[:, :1]), self.rate, self.training)


class ByNumpy(Dropping):
    """Draws from another generator."""

    def dropped(self, weights: Tensor) -> Tensor:
        rate = self.rate if self.training else 0.0
        kept = torch.from_numpy(np.random.random(weights.shape) >= rate)
        return weights * kept.to(weights) / (1 - rate)


class OfItsOwn(nn.Module):
    """A core with a rate that nobody can set."""

    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.25)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        weights: Tensor = self.drop((q @ k.mT / q.shape[-1] ** 0.5).softmax(-1))
        return weights @ v


class OfItsOwnNotDivided(OfItsOwn):
    """The same, and undoes the division."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return super().forward(q, k, v) * (0.75 if self.training else 1.0)


class Noisy(nn.Module):
    """A core with noise on its logits in training, which is no dropout."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        logits = q @ k.mT / q.shape[-1] ** 0.5
        if self.training:
            logits = logits + torch.randn_like(logits)
        return logits.softmax(-1) @ v


class NormedAfterwards(nn.Module):
    """A module with a norm behind its dropout, which keeps no mean."""

    def __init__(self, dim: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.project, self.norm = nn.Linear(dim, 3 * dim), nn.LayerNorm(dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.project(x).chunk(3, -1)
        y: Tensor = self.norm(self.drop((q @ k.mT).softmax(-1)) @ v)
        return y


@pytest.mark.parametrize(
    ("what", "wanted", "words"),
    [
        (Dropping, "held", ""),
        (nn.MultiheadAttention, "held", ""),
        (OfItsOwn, "held", ""),
        (NotDivided, "failed", "in size"),
        (OfItsOwnNotDivided, "failed", "in size"),
        (NormedAfterwards, "reported", "not linear"),
        (ByNumpy, "skipped", "torch's generator"),
        (Noisy, "skipped", "it draws there"),
        (Checkpointed, "skipped", "the same as evaluation"),
    ],
)
def test_the_mean_under_dropout_of_a_stranger(what: Any, wanted: str, words: str) -> None:
    found = finding(what, "dropout_mean")
    assert found.verdict == wanted and words in found.detail, found


@pytest.mark.parametrize(
    ("what", "wanted", "words"),
    [
        (Dropping, "held", ""),
        (nn.MultiheadAttention, "held", ""),
        (DropsNothingInHalf, "failed", "bfloat16"),
        (AlikeInHeads, "failed", "heads that are alike"),
    ],
)
def test_dropout_of_a_stranger(what: Any, wanted: str, words: str) -> None:
    found = finding(what, "dropout")
    assert found.verdict == wanted and words in found.detail, found
