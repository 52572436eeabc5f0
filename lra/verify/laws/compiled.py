"""torch.compile changes nothing: outputs and gradients are those of eager mode."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import torch

from lra.core.findings import Case
from lra.verify.law import Law, binds_all, projected_gradients, require_same
from lra.verify.requests import directions, masks
from lra.verify.subject import Subject

TOLERANCE = 1e-4
"""Tolerance for float32 sums in another order."""


def cases(subject: Subject) -> Iterator[Case]:
    """One length per direction, padded or not."""
    for causal, mask in product(directions(subject), masks(subject, "behind")):
        yield Case(n=37, causal=causal, mask=mask)


def check(subject: Subject, case: Case) -> None:
    """Compare a compiled call with an eager one."""
    torch._dynamo.reset()
    layer = subject.build(case, dtype=torch.float32)
    context = subject.context(case, layer)
    x_BND, _ = subject.inputs(case, dtype=torch.float32)
    compiled = torch.compile(layer)
    wanted = layer(x_BND, context).y_BND
    found = compiled(x_BND, context).y_BND
    require_same(found, wanted, "compiled output against eager", subject.allowed(TOLERANCE))
    (actual,), (expected,) = (projected_gradients(y, [x_BND]) for y in (found, wanted))
    require_same(actual, expected, "compiled gradient against eager", subject.allowed(TOLERANCE))


LAW = Law(
    name="compiled",
    says="torch.compile changes nothing",
    claimed=binds_all,
    cases=cases,
    check=check,
    only_full=True,
    measured=True,
    dtypes=("float32",),
)
