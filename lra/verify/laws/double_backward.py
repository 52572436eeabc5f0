"""The gradient of a gradient is right, or refused in one line; never lost in silence.

Right: it agrees with finite differences of the gradient. A backward pass that works on numbers
alone gives a part of it, or zero. In float32, where kernels differ, it is that of float64.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import torch
from torch import Tensor

from lra.core.findings import Case
from lra.verify.law import Broken, Law, Untried, binds_all
from lra.verify.laws.gradcheck import STEPS, TOLERANCE, finite_difference_error
from lra.verify.mixed_requests import biased, differentiated, every_request
from lra.verify.rotation import spread
from lra.verify.subject import Subject

COUNT = 14
"""Number of cases of the short form."""
LENGTHS = (2, 7, 37, 129)
ROUNDED = 1e-3
"""Largest norm of a difference in float32, relative to the gradient's: sums of hundreds of products
of four factors, each rounded by 6e-8."""
_REFUSAL = re.compile(
    r"twice|double|second(?! time)|higher|create_graph|derivative|differentia|"
    r"incompatible with \.grad",
    re.IGNORECASE,
)
"""Words by which a refusal says what was asked for. Torch's complaints that a tensor requires no
gradient, or that a graph is passed a second time, have none of them: a graph was lost. A reentrant
checkpoint works with `backward` alone, and says so."""


def cases(subject: Subject) -> Iterator[Case]:
    """Every kind of request in turn."""
    own = every_request(subject, LENGTHS, heads=2)
    yield from spread(own, COUNT, subject, "double_backward")


def check(subject: Subject, case: Case) -> None:
    """Compare the gradient of the input's gradient with differences of it; that in float32 with
    that in float64."""
    if subject.precise != torch.float64:
        raise Untried("it takes no float64, which finite differences need")
    double = _Second(subject, case, torch.float64)
    found = double.gradients()
    if found is None:
        return
    double.require_differences(found)
    single = _Second(subject, case, torch.float32).gradients()
    if single is None:
        return
    one, other = (torch.cat([x.flatten().double() for x in each]) for each in (single, found))
    gap, norm = float((one - other).norm()), max(1.0, float(other.norm()), double.size)
    if not gap <= ROUNDED * norm:
        raise Broken(
            "the gradient of a gradient in float32 is neither that in float64 nor refused: "
            f"{gap:.1e} off, its norm {float(other.norm()):.1e}"
        )


class _Second:
    """The gradient of what a layer reads, along a direction, and its own gradients."""

    def __init__(self, subject: Subject, case: Case, dtype: torch.dtype) -> None:
        self._subject = subject
        self._layer = subject.build(case, dtype=dtype)
        self._x_BND, self._source_BMD = subject.inputs(case, dtype=dtype)
        context = subject.context(case, self._layer)
        self._context = biased(context, case, self._layer, subject)
        every = differentiated(self._layer, self._context, self._x_BND, self._source_BMD)
        self._leaves = list(every.values())
        self._generator = torch.Generator().manual_seed(case.seed)
        y_BND = self._run()
        self._trained = y_BND.requires_grad
        self._read = self._x_BND if self._source_BMD is None else self._source_BMD
        self._upstream, self._along = self._normal(y_BND), self._normal(self._read)
        self.size = 0.0
        """Size of the gradient itself, once there is one."""

    def gradients(self) -> list[Tensor] | None:
        """Return the gradients of the gradient; None where it has none or is refused clearly."""
        if not self._trained:
            return None
        try:
            slope = self._slope(kept=True)
            self.size = float(slope.detach().abs())
            if not slope.requires_grad:
                return [torch.zeros_like(leaf) for leaf in self._leaves]
            return list(
                torch.autograd.grad(slope, self._leaves, allow_unused=True, materialize_grads=True)
            )
        except RuntimeError as error:  # refused; torch's own errors of this kind are RuntimeErrors
            _require_clear(error)
            return None

    def require_differences(self, found: list[Tensor]) -> None:
        """Require these gradients to be those that finite differences show."""
        is_ours = self._subject.is_ours
        directions = [self._normal(leaf) for leaf in self._leaves]
        norm = sum(float(gradient.square().sum()) for gradient in found) ** 0.5
        # Relative to the gradient too: where second derivatives vanish, differences are rounding.
        allowed = TOLERANCE[is_ours] * max(norm, self.size, 1.0)
        gaps = []
        for step in STEPS[is_ours]:
            gaps.append(
                finite_difference_error(self._projected, self._leaves, found, directions, step)
            )
            if gaps[-1] <= allowed:
                return
        raise Broken(
            "the gradient of a gradient is neither right nor refused: along a random direction it "
            f"is {min(gaps):.1e} off from finite differences, its norm {norm:.1e}"
        )

    def _run(self) -> Tensor:
        y_BND: Tensor = self._layer(self._x_BND, self._context, source_BMD=self._source_BMD).y_BND
        return y_BND

    def _slope(self, *, kept: bool) -> Tensor:
        """Return the gradient of what is read, along a direction."""
        (gradient,) = torch.autograd.grad(
            self._run(),
            self._read,
            self._upstream,
            create_graph=kept,
            allow_unused=True,
            materialize_grads=True,
        )
        return (gradient * self._along).sum()

    def _projected(self) -> float:
        with torch.enable_grad():
            return float(self._slope(kept=False))

    def _normal(self, like: Tensor) -> Tensor:
        numbers = torch.randn(like.shape, dtype=torch.float64, generator=self._generator)
        return numbers.to(like.device, like.dtype)


def _require_clear(error: RuntimeError) -> None:
    line = str(error).strip()
    if "\n" in line or not _REFUSAL.search(line):
        short = " ".join(line.split())
        raise Broken(f"the gradient of a gradient is refused without saying so: {short}") from error


LAW = Law(
    name="double_backward",
    says="the gradient of a gradient is right, or refused in one line",
    claimed=binds_all,
    cases=cases,
    check=check,
    in_single=lambda subject, case: True,
)
