"""The gradient of a gradient is right, or refused in one line; never lost in silence.

Right: it agrees with finite differences of the gradient. A backward pass that works on numbers
alone gives a part of it, or zero.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import torch
from torch import Tensor

from lra.core.findings import Case
from lra.verify.law import Broken, Law, Untried, binds_all
from lra.verify.laws.gradcheck import STEPS, TOLERANCE, finite_difference_error
from lra.verify.mixture import biased, differentiated, every_request
from lra.verify.rotation import spread
from lra.verify.subject import Subject

COUNT = 14
"""Number of cases of the short form."""
LENGTHS = (2, 7, 37, 129)
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
    """Compare the gradient of the input's gradient with differences of it."""
    if subject.precise != torch.float64:
        raise Untried("it takes no float64, which finite differences need")
    layer = subject.build(case)
    x_BND, source_BMD = subject.inputs(case)
    context = biased(subject.context(case, layer), case, layer, subject)
    read = x_BND if source_BMD is None else source_BMD
    leaves = list(differentiated(layer, context, x_BND, source_BMD).values())
    generator = torch.Generator().manual_seed(case.seed)

    def normal(like: Tensor) -> Tensor:
        numbers = torch.randn(like.shape, dtype=torch.float64, generator=generator)
        return numbers.to(like.device, like.dtype)

    y_BND = layer(x_BND, context, source_BMD=source_BMD).y_BND
    upstream, along_first = normal(y_BND), normal(read)
    directions = [normal(leaf) for leaf in leaves]

    def first(*, kept: bool) -> Tensor:
        """Return the gradient of what is read, along a direction."""
        out = layer(x_BND, context, source_BMD=source_BMD).y_BND
        (gradient,) = torch.autograd.grad(
            out, read, upstream, create_graph=kept, allow_unused=True, materialize_grads=True
        )
        return (gradient * along_first).sum()

    if not y_BND.requires_grad:
        return
    try:
        slope = first(kept=True)
        found = (
            torch.autograd.grad(slope, leaves, allow_unused=True, materialize_grads=True)
            if slope.requires_grad
            else tuple(torch.zeros_like(leaf) for leaf in leaves)
        )
    except RuntimeError as error:  # refused; torch's own errors of this kind are RuntimeErrors
        _require_clear(error)
        return

    def projected() -> float:
        with torch.enable_grad():
            return float(first(kept=False))

    norm = sum(float(gradient.square().sum()) for gradient in found) ** 0.5
    # Relative to the gradient too: where second derivatives vanish, differences are rounding.
    allowed = TOLERANCE[subject.is_ours] * max(norm, float(slope.detach().abs()), 1.0)
    gaps = []
    for step in STEPS[subject.is_ours]:
        gaps.append(finite_difference_error(projected, leaves, found, directions, step))
        if gaps[-1] <= allowed:
            return
    raise Broken(
        "the gradient of a gradient is neither right nor refused: along a random direction it is "
        f"{min(gaps):.1e} off from finite differences, its norm {norm:.1e}"
    )


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
)
