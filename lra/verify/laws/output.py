"""An ordinary input gives a finite output of the same shape."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from lra.core.findings import Case
from lra.verify.law import Broken, Law, binds_all, require_finite
from lra.verify.requests import masks, requests
from lra.verify.subject import Subject


def cases(subject: Subject) -> Iterator[Case]:
    """Every request, at every length."""
    return requests(subject, masks=masks(subject, "behind"))


@torch.no_grad()
def check(subject: Subject, case: Case) -> None:
    """Call the layer, and check shape and finiteness."""
    layer = subject.build(case)
    x_BND = subject.inputs(case)[0].detach()
    y_BND = layer(x_BND, subject.context(case, layer)).y_BND
    if y_BND.shape != x_BND.shape:
        raise Broken(f"{tuple(x_BND.shape)} goes in, {tuple(y_BND.shape)} comes out")
    if y_BND.dtype != x_BND.dtype:
        raise Broken(f"{x_BND.dtype} goes in, {y_BND.dtype} comes out")
    require_finite([("the output", y_BND)])


LAW = Law(
    name="output",
    says="an input gives a finite output of its own shape",
    claimed=binds_all,
    cases=cases,
    check=check,
)
