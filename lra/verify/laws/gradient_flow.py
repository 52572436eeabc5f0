"""Every parameter is trained by something: none is without effect."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from lra.core.findings import Case
from lra.verify.law import Broken, Law, binds_all
from lra.verify.requests import directions, half_dtypes
from lra.verify.subject import PROBES, Subject


def cases(subject: Subject) -> Iterator[Case]:
    """One input for each configuration, long enough to cross the borders of its blocks: a choice
    among blocks is not trained by a single one. Blocks of all but the first are small."""
    for trial in range(len(subject.configs)):
        yield Case(n=max(37, *subject.lengths if trial == 0 else PROBES), trial=trial)
    for dtype in half_dtypes(subject):
        yield Case(n=max(PROBES), dtype=dtype)


def check(subject: Subject, case: Case) -> None:
    """Require a gradient that is not zero for each parameter, in training, in any direction."""
    layer = subject.build(case).train()
    x_BND, _ = subject.inputs(case)
    for causal in directions(subject):
        context = subject.context(Case(n=case.n, causal=causal), layer)
        y_BND = layer(x_BND, context).y_BND
        y_BND.square().sum().backward()
    unused, dtype = subject.mechanism.unused, str(subject.dtype(case)).removeprefix("torch.")
    trained = ((name, one) for name, one in layer.named_parameters() if one.requires_grad)
    for name, parameter in trained:
        reached = parameter.grad is not None and bool(torch.any(parameter.grad != 0))
        if reached == name.startswith(unused):
            raise Broken(
                f"parameter {name} is declared unused and gets a gradient, in {dtype}"
                if reached
                else f"parameter {name} never gets a gradient, in {dtype}"
            )


LAW = Law(
    name="gradient_flow",
    says="every parameter gets a gradient",
    claimed=binds_all,
    cases=cases,
    check=check,
    measured=True,
)
