"""Laws: the mechanisms that they bind, their cases, and their exceptions.

B batch   N queries   M keys   D model width   H heads
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import BackwardCFunction

from lra.core.cards import AttentionCard
from lra.core.findings import Case
from lra.verify.subject import Subject


class Broken(Exception):  # noqa: N818  a verdict, not a fault
    """A mechanism breaks a law; the message has the difference and its size."""


class Untried(Exception):  # noqa: N818
    """A law cannot be tried here; the message says why."""


class Partly(Exception):  # noqa: N818
    """A law holds of all that could be tried; the message says what could not."""


class Reported(Exception):  # noqa: N818
    """A finding of a check that is for the reader to judge."""


def is_not_empty(case: Case) -> bool:
    """Return whether a case has examples, queries and keys."""
    return 0 not in (case.batch, case.n, case.m)


@dataclass(frozen=True)
class Law:
    """One law of the kit. Its file's name is its name."""

    name: str
    says: str
    """Law in a few words, true where it holds."""
    claimed: Callable[[AttentionCard], bool]
    """Whether a card claims the law."""
    cases: Callable[[Subject], Iterable[Case]]
    """Cases to try, smallest first."""
    check: Callable[[Subject, Case], None]
    """Check of one case; raises `Broken` where the law does not hold."""
    takes: Callable[[Case], bool] = is_not_empty
    """Whether the sizes of a case make sense; all other fields must be as in one of the law's own
    cases."""
    claim: dict[str, object] | None = None
    """Capabilities to add to a card that lacks them, to find laws that hold unclaimed; None where
    that would mean nothing."""
    oracle: bool = False
    """Whether it compares with the dense oracle, which other people's mechanisms lack."""
    only_full: bool = False
    """Whether it is left out of the short form."""
    measured: bool = False
    """Whether smaller inputs would say less: failures are not shrunk, sizes do not take turns, and
    unclaimed laws are not tried."""
    dtypes: tuple[str, ...] = ()
    """Types that it tries each case in, whatever the case says."""
    in_single: Callable[[Subject, Case], bool] = lambda subject, case: False
    """Whether it tries a case in float32 too, beside the case's own type."""
    dropout: float = 0.0
    """Rate of dropout that it trains with."""


def binds_all(card: AttentionCard) -> bool:
    """Bind every mechanism."""
    return True


def relative_difference(found: Tensor, wanted: Tensor) -> float:
    """Return the largest difference, relative to the largest wanted size or 1; infinite where
    either has a NaN."""
    if found.shape != wanted.shape:
        raise Broken(f"shape {tuple(found.shape)} where {tuple(wanted.shape)} belongs")
    if not found.numel():
        return 0.0
    found, wanted = found.detach().double(), wanted.detach().double()
    gap = (found - wanted).abs()
    gap = torch.where(found == wanted, 0.0, gap)  # infinities agree with themselves
    size = wanted[wanted.isfinite()].abs().amax() if bool(wanted.isfinite().any()) else 0.0
    return float(gap.nan_to_num(nan=torch.inf).amax() / max(1.0, float(size)))


def require_same(found: Tensor, wanted: Tensor, what: str, tolerance: float) -> None:
    """Raise `Broken` where two tensors differ by more than the tolerance, or are not numbers."""
    if bool(wanted.isnan().any()) and bool(found.isnan().any()):
        raise Broken(f"{what}: NaN, and so is what it is compared with")
    gap = relative_difference(found, wanted)
    if gap > tolerance:
        allowed = f"{tolerance:.0e}" if tolerance else "nothing"
        raise Broken(f"{what}: differs by {gap:.1e}, allowed {allowed}")


def require_close(found: Tensor, wanted: Tensor, what: str, limit: float) -> None:
    """Raise `Broken` where two tensors differ by more than a share of the wanted one's norm, or of
    that of ones where it is less. Single elements say little in half precision."""
    if found.shape != wanted.shape:
        raise Broken(f"{what}: shape {tuple(found.shape)} where {tuple(wanted.shape)} belongs")
    found, wanted = found.detach().double(), wanted.detach().double()
    size = max(float(wanted.norm()), wanted.numel() ** 0.5, 1.0)
    gap = float((found - wanted).norm()) / size
    if not gap <= limit:
        raise Broken(f"{what}: off by {gap:.1e} of its norm, allowed {limit:g}")


def ordinal(number: int) -> str:
    """Return `1st`, `2nd`, `3rd`, `4th`, `11th`, ..."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10)
    return f"{number}{ending or 'th'}"


def require_finite(tensors: Iterable[tuple[str, Tensor]]) -> None:
    """Raise `Broken` for the first of these named tensors with a value that is not finite."""
    for name, tensor in tensors:
        if not bool(tensor.isfinite().all()):
            raise Broken(f"{name} is not finite")


def projected_gradients(out: Tensor, leaves: Iterable[Tensor]) -> list[Tensor]:
    """Return the gradients of a random projection of `out`; zero where a leaf is not reached."""
    generator = torch.Generator().manual_seed(1)
    upstream = torch.randn(out.shape, dtype=torch.float64, generator=generator)
    return gradients(out, leaves, upstream.to(out.device, out.dtype))


def gradients(
    out: Tensor, leaves: Iterable[Tensor], upstream: Tensor | None = None, *, kept: bool = False
) -> list[Tensor]:
    """Return gradients of `out`; zero where a leaf is not reached. The graph is good for another
    pass where it is `kept`.

    Through functions written in Python it is a pass to all leaves, as in training: those that pass
    back inside, as reentrant checkpoints and reversible layers do, give nothing to who asks for
    chosen gradients.
    """
    asked = list(leaves)
    if not out.requires_grad or not asked:
        return [torch.zeros_like(leaf) for leaf in asked]
    nodes = _nodes(out)
    if not any(isinstance(node, BackwardCFunction) for node in nodes):
        return list(
            torch.autograd.grad(
                out, asked, upstream, retain_graph=kept, allow_unused=True, materialize_grads=True
            )
        )
    filled = [*asked, *(node.variable for node in nodes if hasattr(node, "variable"))]
    before = [leaf.grad for leaf in filled]
    for leaf in filled:
        leaf.grad = None
    try:
        torch.autograd.backward(out, upstream, retain_graph=kept)
        return [torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for leaf in asked]
    finally:
        for leaf, grad in zip(filled, before, strict=True):
            leaf.grad = grad


def _nodes(out: Tensor) -> set[Any]:
    """Return the steps of a backward pass."""
    found: set[Any] = set()
    left = [out.grad_fn]
    while left:
        node = left.pop()
        if node is not None and node not in found:
            found.add(node)
            left += [one for one, _ in node.next_functions]
    return found
